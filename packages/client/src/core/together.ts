import { onAbort } from "../base/abort.ts";
import { type Deferred, deferred } from "../base/clock.ts";
import { LeaseError, LeaseServiceError, saying } from "../base/errors.ts";
import { isOperational } from "../base/operational.ts";
import type { Renewals } from "../base/options.ts";
import { PriorityQueue } from "../base/priority-queue.ts";
import { mostUpdatesTogether, type UpdateRequest, type UpdateResult } from "../base/store.ts";
import type { TimedCall } from "../base/timed-call.ts";
import type { Write } from "../statements/statement.ts";
import type { Core } from "./core.ts";
import { firstBeatMs, type Keeper, nextBeatMs, retryBeatMs } from "./heartbeat.ts";
import type { HeldLease } from "./held-lease.ts";

/** A beat that is due within this share of its interval is sent together with a beat that is due now. */
const gatheringShare = 0.25;

/**
 * Renews a client's leases in shared requests, for processes that hold many: up to 25 leases in one request
 * (BatchExecuteStatement), and one timer for all of them.
 *
 * The leases that end first go first. A lease that is due within a quarter of its interval is renewed with one that is
 * due now. A lease that the service cannot renew with the others gets a request of its own.
 *
 * The role needs `dynamodb:PartiQLUpdate` beside the other actions; without it, each lease costs 1 request, as it does
 * without `together()`.
 *
 * ```ts
 * import { LeaseClient } from "@leasehold/client";
 * import { together } from "@leasehold/client/together";
 *
 * const client = new LeaseClient({ tableName: "leases", renewals: together() });
 * ```
 */
export function together(): Renewals {
  return { begin: (core: Core) => new Together(core) };
}

class Together implements Keeper {
  readonly #core: Core;
  readonly #kept = new Set<HeldLease>();
  /** By the time of the next renewal, on the monotonic clock. */
  readonly #scheduled = new PriorityQueue<HeldLease>();
  /** Due and not sent, by deadline. */
  readonly #due = new PriorityQueue<HeldLease>();
  #isWaitingForGate = false;
  #cancelTimer: () => void = () => undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(core: Core) {
    this.#core = core;
  }

  keep(lease: HeldLease): () => void {
    const stop = (): void => this.#forget(lease);
    this.#kept.add(lease);
    lease.onEnd(stop);
    this.#schedule(lease, firstBeatMs(lease, this.#core.randomness.fraction()));
    return stop;
  }

  #forget(lease: HeldLease): void {
    this.#kept.delete(lease);
    this.#scheduled.delete(lease);
    this.#due.delete(lease);
    if (this.#kept.size === 0) this.#disarm();
  }

  #schedule(lease: HeldLease, delayMs: number): void {
    if (!this.#kept.has(lease)) return;
    this.#scheduled.set(lease, this.#core.clock.monotonic() + delayMs);
    this.#arm();
  }

  /**
   * A timer that fires too early finds nothing due and is set again. This costs less than setting the timer for each
   * change.
   */
  #arm(): void {
    const { first } = this.#scheduled;
    if (first === undefined || first.priority >= this.#timerAt) return;
    this.#disarm();
    this.#timerAt = first.priority;
    // In whole milliseconds: a clock cannot resolve a time that is nearer than its own steps.
    const delay = Math.ceil(Math.max(0, first.priority - this.#core.clock.monotonic()));
    this.#cancelTimer = this.#core.clock.schedule(() => this.#fire(), delay, { background: true });
  }

  #disarm(): void {
    this.#cancelTimer();
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#core.clock.monotonic();
    for (let { first } = this.#scheduled; first !== undefined && first.priority <= now; ) {
      this.#makeDue(first.item, now);
      first = this.#scheduled.first;
    }
    this.#renewDue();
    this.#arm();
  }

  #makeDue(lease: HeldLease, now: number): void {
    this.#scheduled.delete(lease);
    try {
      const deadline = now + lease.remainingMs();
      // Reading the time that is left can end the lease.
      if (this.#kept.has(lease)) this.#due.set(lease, deadline);
    } catch (error) {
      lease.fail(error);
    }
  }

  /** Sends the due leases if the gate has room. At most one request waits, and it takes along the most urgent leases. */
  #renewDue(): void {
    const { first } = this.#due;
    if (first === undefined || this.#isWaitingForGate) return;
    this.#isWaitingForGate = true;
    void this.#core.gate.renew(first.priority, undefined, () => {
      this.#isWaitingForGate = false;
      const sent = this.#sendMostUrgent();
      this.#renewDue();
      return sent;
    });
  }

  async #sendMostUrgent(): Promise<void> {
    const now = this.#core.clock.monotonic();
    // A request that is sent anyway takes along leases that are due soon, up to its limit.
    for (let { first } = this.#scheduled; first !== undefined && this.#due.size < mostUpdatesTogether; ) {
      const { item: lease, priority: dueAt } = first;
      if (dueAt > now + lease.renewEveryMs * gatheringShare) break;
      this.#makeDue(lease, now);
      first = this.#scheduled.first;
    }
    const batch = new UpdateBatch(this.#core, this.#due.first?.priority ?? now);
    for (let count = 0; count < mostUpdatesTogether; count += 1) {
      const lease = this.#due.take();
      if (lease === undefined) break;
      void this.#renew(lease, batch).catch((error: unknown) => lease.fail(error));
    }
    await batch.send();
  }

  /**
   * Hands its request to the batch before its first await. Rejects with every error that is no failure of the service.
   */
  async #renew(lease: HeldLease, batch: UpdateBatch): Promise<void> {
    const { randomness } = this.#core;
    try {
      await lease.renew((write, call) => batch.update(write, call));
      this.#schedule(lease, nextBeatMs(lease, randomness.fraction()));
    } catch (error) {
      if (!isOperational(error)) throw error;
      this.#schedule(lease, retryBeatMs(lease, randomness.fraction()));
    }
  }
}

interface BatchEntry {
  readonly request: UpdateRequest;
  readonly call: TimedCall;
  readonly answered: Deferred<UpdateResult>;
}

/**
 * Conditional writes that are added in one turn of the event loop and sent together.
 *
 * Each of them ends by itself: a write whose signal aborts leaves the others in the batch. A write that the store can
 * settle only by a request of its own gets one when the gate has room for it.
 */
export class UpdateBatch {
  readonly #core: Pick<Core, "store" | "gate">;
  /** The earliest end of all leases in the batch, on the monotonic clock. */
  readonly #deadline: number;
  /** By item: one batch takes one write for each item. */
  readonly #entries = new Map<string, BatchEntry>();
  /** Entries that still wait for the batch. */
  readonly #present = new Set<BatchEntry>();
  readonly #cut = new AbortController();
  #isOpen = true;

  constructor(core: Pick<Core, "store" | "gate">, deadline: number) {
    this.#core = core;
    this.#deadline = deadline;
  }

  /** Adds a write to the batch. A write that comes too late, or is the second for its item, is sent alone. */
  async update(write: Write, call: TimedCall): Promise<UpdateResult> {
    const item = JSON.stringify(write.key);
    const entry = { request: write.request(), call, answered: deferred<UpdateResult>() };
    onAbort(call.signal, () => this.#leave(entry));
    if (!this.#isOpen || this.#entries.has(item)) this.#sendAlone(entry);
    else {
      this.#entries.set(item, entry);
      this.#present.add(entry);
    }
    return await entry.answered.promise;
  }

  /** Sends the added writes. Resolves when the batch itself is over, and never rejects. */
  async send(): Promise<void> {
    this.#isOpen = false;
    const [first, ...others] = this.#entries.values();
    if (first === undefined) return;
    if (others.length > 0) return await this.#sendTogether([first, ...others]);
    await this.#sendOne(first);
  }

  async #sendTogether(entries: readonly [BatchEntry, ...BatchEntry[]]): Promise<void> {
    const { signal } = this.#cut;
    const requests = entries.map(({ request }) => request);
    const isCurrent = (): boolean => [...this.#present].every(({ call }) => call.isCurrent());
    const timed = (): ReturnType<TimedCall["timed"]> => entries[0].call.timed();
    try {
      const results = await this.#core.store.updateMany(requests, { signal, isCurrent, timed });
      for (const [index, entry] of entries.entries()) this.#settle(entry, results[index]);
    } catch (error) {
      if (error instanceof LeaseError) for (const entry of entries) this.#settle(entry, error);
      else for (const { answered } of entries) answered.reject(error);
    }
  }

  /** Repeating a write at once would add to the service's trouble, if that was the cause. */
  #settle(entry: BatchEntry, result: UpdateResult | LeaseError | undefined): void {
    const isRefusedInBatch = result instanceof LeaseServiceError && !result.retryable;
    if (result === undefined || isRefusedInBatch) {
      if (this.#present.has(entry)) this.#sendAlone(entry);
    } else if (result instanceof LeaseError) entry.answered.reject(result);
    else entry.answered.resolve(result);
  }

  #sendAlone(entry: BatchEntry): void {
    const { call, answered } = entry;
    this.#core.gate
      .renew(this.#deadline, call.signal, () => this.#sendOne(entry))
      .catch((error: unknown) => answered.reject(error));
  }

  #sendOne({ request, call, answered }: BatchEntry): Promise<void> {
    return this.#core.store.update(request, call).then(answered.resolve, answered.reject);
  }

  #leave(entry: BatchEntry): void {
    const { signal } = entry.call;
    const message = `the renewal's answer was not awaited any longer: ${saying(signal.reason)}`;
    entry.answered.reject(new LeaseServiceError("LEASE_NO_ANSWER", message, { cause: signal.reason }));
    if (this.#present.delete(entry) && this.#present.size === 0) this.#cut.abort(signal.reason);
  }
}
