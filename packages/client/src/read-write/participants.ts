import { askAbout, participantsOf, removeDead } from "../expressions-read-write.ts";
import { type LookOptions, lookAtAll } from "../looks.ts";
import { callBudgetMs, type ProtocolContext } from "../protocol/context.ts";
import { claimableIn, ExpiryDetector } from "../protocol/expiry-detector.ts";
import { type LeaseRecord, readRecord } from "../record.ts";
import { leaseItemKey } from "../schema.ts";
import { isReaderPlace, writerPlace } from "../schema-read-write.ts";
import type { LeaseStore, UpdateRequest, UpdateResult } from "../store.ts";
import { type CallOptions, withBudget } from "../time/budget.ts";

/** Somebody who stands in the way, and when that could end if nothing changes, on the monotonic clock. */
export interface Obstacle {
  readonly record: LeaseRecord;
  readonly claimableAt: number;
}

/** Who is at a read-write lock. */
export interface Present {
  readonly writer: LeaseRecord | undefined;
  readonly readers: readonly LeaseRecord[];
}

/** Sees who is at one read-write lock, judges who of them is dead, and takes the dead ones' leases away. */
export class Participants {
  readonly #context: ProtocolContext;
  readonly #key: string;
  readonly #detector: ExpiryDetector;

  constructor(context: ProtocolContext, key: string) {
    this.#context = context;
    this.#key = key;
    this.#detector = new ExpiryDetector(context.clock, context.clockSkewMs);
  }

  /** Reads the leases of all that have not released theirs: 1 request for each megabyte. */
  async read(look: LookOptions): Promise<Present> {
    const found = await lookAtAll(this.#context, participantsOf(this.#key), look);
    const readers = found.filter(({ sortKey }) => isReaderPlace(sortKey));
    return { writer: found.find(({ sortKey }) => sortKey === writerPlace), readers };
  }

  /** Reads the gate alone: 1 request. */
  async gate(look: LookOptions): Promise<LeaseRecord | undefined> {
    const request = { key: leaseItemKey(this.#key, writerPlace), consistent: look.consistent };
    return readRecord(await this.#call(look, (store, call) => store.get(request, call)));
  }

  /** Judges a record that an answer has just brought. */
  judged(record: LeaseRecord): Obstacle {
    const claimableInMs = claimableIn(this.#detector.judge(record));
    return { record, claimableAt: this.#context.clock.monotonic() + claimableInMs };
  }

  /** Whether an obstacle's time seems to be over. */
  isOver({ claimableAt }: Obstacle): boolean {
    return claimableAt <= this.#context.clock.monotonic();
  }

  /**
   * Takes the lease of one that seems dead away: 1 request that asks about it, for a look may lag, and 1 that is
   * conditional on what was judged. Gives the record that is there instead; undefined where nobody is.
   */
  async remove(dead: LeaseRecord, look: Omit<LookOptions, "consistent">): Promise<LeaseRecord | undefined> {
    const { clock, retentionMs } = this.#context;
    const asked = await this.#update(askAbout(dead, clock.now(), retentionMs), look);
    const record = readRecord(asked.item);
    if (record === undefined || !this.#detector.judge(record).expired) return record;
    const removed = await this.#update(removeDead(record, clock.now(), retentionMs), look);
    return removed.applied ? undefined : readRecord(removed.item);
  }

  async #update(request: UpdateRequest, look: Omit<LookOptions, "consistent">): Promise<UpdateResult> {
    return await this.#call(look, (store, call) => store.update(request, call));
  }

  #call<T>(
    { budgetMs = callBudgetMs, signal }: Omit<LookOptions, "consistent">,
    task: (store: LeaseStore, call: CallOptions) => Promise<T>,
  ): Promise<T> {
    const { clock, store } = this.#context;
    return withBudget(clock, budgetMs, signal, (call) => task(store, call));
  }
}
