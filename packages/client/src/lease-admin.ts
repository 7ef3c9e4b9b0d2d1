import { type LeaseItemError, quoted } from "./errors/errors.ts";
import { leasesIn, recordsIn, unlessUnreadable, unreadableIn } from "./looks.ts";
import {
  aFunction,
  check,
  checkKey,
  checkOptions,
  checkSlot,
  checkText,
  label,
  type Rules,
  rule,
  text,
  trueOrFalse,
} from "./options/check-values.ts";
import type { ProtocolContext } from "./protocol/context.ts";
import { type LastHolder, type LeaseRecord, lastDoneSlot, lastHolderIn, wasBroken } from "./record.ts";
import { attributeNames, type ItemKey, leaseItemKey, leaseSortKey, limits } from "./schema.ts";
import { isSeatSortKey } from "./seats/schema.ts";
import { seatOf } from "./seats/seat.ts";
import { askSeatToStop, breakSeat } from "./seats/seat-writes.ts";
import { breakLease, type LeaseAddress, requestRevocation, takeBackSlot } from "./statements/lock.ts";
import { leasesByPrefix, leasesOf } from "./statements/queries.ts";
import { pagesOf } from "./store/pages.ts";
import type { Item, ScanPage, UpdateResult } from "./store.ts";

/** Selects one of a key's leases. */
export interface SortKeyOptions {
  /** The lease's sort key, as `LeaseRecord.sortKey` has it. @default "lease", the lock's own */
  readonly sortKey?: string;
}

/** Selects the holder that the call is about. */
export interface HolderOptions extends SortKeyOptions {
  /** The lease's token, as `inspect`, `inspectAll` and `list` show it, so that no later holder is hit. */
  readonly token: string;
  /**
   * Called before the call resolves to false: with the lease of another token that is there instead, or with
   * undefined when the lock is free.
   * @default - none
   */
  readonly onRefused?: (holder: LeaseRecord | undefined) => void;
}

/** Options of a list. */
export interface ListOptions {
  /** The text that keys begin with. @default - all keys */
  readonly prefix?: string;
  /** Whether to list the leases of the other primitives too: permits, readers, runs, tasks. @default false */
  readonly all?: boolean;
}

/** The state of a key. */
export interface KeyDescription<Lease extends LeaseRecord = LeaseRecord> {
  readonly key: string;
  /** When it was read: epoch milliseconds of the service's clock, as the client knows it. `leaseState` wants it. */
  readonly readAt: number;
  /** All leases that have not been released, of all primitives, in the order of their sort keys. */
  readonly leases: readonly Lease[];
  /** The last holder before the present one, or before the lock became free; undefined if none is remembered. */
  readonly lastHolder: LastHolder | undefined;
  /** The latest slot that is done. */
  readonly doneSlot: string | undefined;
}

/** Options of {@link LeaseClient.takeBackSlot}. */
export interface TakeBackSlotOptions {
  /** The slot that no longer counts as done, as `doneSlot` has shown it. */
  readonly doneSlot: string;
  /** An earlier slot that counts as the latest that is done from then on. @default - none is done */
  readonly to?: string;
}

/** Where a page of a list has ended, or any lease in it: plain JSON values, so that another process can go on there. */
export interface ListCursor {
  /** A lease's `key`. */
  readonly pk: string;
  /** A lease's `sortKey`. */
  readonly sk: string;
}

/** Options of a list by pages. */
export interface ListPagesOptions extends ListOptions {
  /** Where an earlier page has ended. @default - the beginning */
  readonly after?: ListCursor;
}

/** One page of a list. */
export interface LeasePage {
  readonly leases: readonly LeaseRecord[];
  /** Where it ended; absent on the last page. */
  readonly next?: ListCursor;
}

const sortKeyRules: Rules<SortKeyOptions> = { sortKey: text(limits.sortKeyBytes) };
const holderRules: Rules<HolderOptions> = {
  ...sortKeyRules,
  token: (option, value) => {
    const allowed =
      "the token of the lease that is meant, as inspect(key), inspectAll(key) or list() shows it";
    check(value !== undefined, option, value, allowed);
    return label(option, value);
  },
  onRefused: aFunction,
};
const revocationRules: Rules<HolderOptions & { readonly reason?: string }> = {
  ...holderRules,
  reason: text(limits.revocationBytes),
};
const slotRules: Rules<TakeBackSlotOptions> = { doneSlot: checkSlot, to: checkSlot };
const pagesRules: Rules<ListPagesOptions> = {
  prefix: (option, value) => (value === "" ? "" : checkText(option, value, limits.keyBytes)),
  all: trueOrFalse,
  after: rule("the `next` of an earlier page, or a lease's key as pk and its sort key as sk", isCursor),
};

/** Manages other holders' leases, for people and tools: reads them, asks their holders to stop, breaks them. */
export class LeaseAdmin {
  readonly #context: ProtocolContext;

  constructor(context: ProtocolContext) {
    this.#context = context;
  }

  async inspect(key: string, options: SortKeyOptions): Promise<LeaseRecord | undefined> {
    const { sortKey } = checkOptions(options, sortKeyRules);
    return leasesIn(await this.#read(key, sortKey))[0];
  }

  async inspectAll(key: string): Promise<LeaseRecord[]> {
    const query = { ...leasesOf(checkKey(key)), consistent: true };
    const leases: LeaseRecord[] = [];
    for await (const page of this.#pages((after) => this.#context.table.query({ ...query, ...after }))) {
      leases.push(...page.leases);
    }
    return leases;
  }

  async describe(key: string): Promise<KeyDescription> {
    const { clock, table } = this.#context;
    const query = { ...leasesOf(checkKey(key)), consistent: true };
    const leases: LeaseRecord[] = [];
    const onUnreadable = unreadableIn(this.#context);
    let lock: Item | undefined;
    for await (const { items } of pagesOf((after) => table.query({ ...query, ...after }))) {
      leases.push(...recordsIn(items, onUnreadable));
      lock ??= items.find((item) => item[attributeNames.sortKey] === leaseSortKey);
    }
    return descriptionOf({ key, readAt: clock.now(), leases, lock }, onUnreadable);
  }

  async *listPages(options: ListPagesOptions): AsyncGenerator<LeasePage, void, undefined> {
    const { prefix = "", all = false, after } = checkOptions(options, pagesRules);
    const filter = leasesByPrefix(prefix, all);
    yield* this.#pages((next) => this.#context.table.scan({ ...filter, ...next }), after);
  }

  async forceRelease(key: string, options: HolderOptions): Promise<boolean> {
    const { token, sortKey, onRefused } = checkOptions(options ?? {}, holderRules, "options", ["token"]);
    const lease = { key: checkKey(key), sortKey };
    const result = isSeatSortKey(sortKey)
      ? await this.#breakSeat(lease, token)
      : await this.#context.table.update(breakLease(lease, token, this.#context.clock.now()));
    if (result.applied || wasBroken(result.item, token)) return true;
    onRefused?.(leasesIn(result.item)[0]);
    return false;
  }

  async doneSlot(key: string): Promise<string | undefined> {
    return lastDoneSlot(await this.#read(key));
  }

  async takeBackSlot(key: string, options: TakeBackSlotOptions): Promise<boolean> {
    const { doneSlot, to } = checkOptions(options, slotRules, "options", ["doneSlot"]);
    check(to === undefined || to < doneSlot, "to", to, `a slot before ${quoted(doneSlot)}, or none`);
    const request = takeBackSlot({ key: checkKey(key), doneSlot, to });
    const { applied, item } = await this.#context.table.update(request);
    // Already done, perhaps by a first try whose reply was lost.
    return applied || lastDoneSlot(item) === to;
  }

  async requestRevocation(
    key: string,
    options: HolderOptions & { readonly reason?: string },
  ): Promise<boolean> {
    const given = checkOptions(options ?? {}, revocationRules, "options", ["token"]);
    const { token, sortKey, onRefused, reason = "revocation requested" } = given;
    const ask = isSeatSortKey(sortKey) ? askSeatToStop : requestRevocation;
    const request = ask({ key: checkKey(key), sortKey }, token, reason);
    const { applied, item } = await this.#context.table.update(request);
    if (!applied) onRefused?.(leasesIn(item)[0]);
    return applied;
  }

  /** The item counts what a seat takes, so the seat has to be read before it can be removed. */
  async #breakSeat(
    { key, sortKey }: LeaseAddress,
    token: string,
  ): Promise<Pick<UpdateResult, "applied" | "item">> {
    const item = await this.#read(key, sortKey);
    const seat = seatOf(item, token);
    return seat === undefined ? { applied: false, item } : await this.#context.table.update(breakSeat(seat));
  }

  #read(key: string, sortKey?: string): Promise<Item | undefined> {
    return this.#context.table.get({ key: leaseItemKey(checkKey(key), sortKey), consistent: true });
  }

  async *#pages(
    read: (from: { readonly after?: ItemKey }) => Promise<ScanPage>,
    after?: ItemKey,
  ): AsyncGenerator<LeasePage, void, undefined> {
    for await (const { items, next } of pagesOf(read, after)) {
      const leases = [...recordsIn(items, unreadableIn(this.#context))];
      yield next === undefined ? { leases } : { leases, next };
    }
  }
}

function isCursor(after: unknown): boolean {
  const { pk, sk } = Object(after) as Partial<Record<"pk" | "sk", unknown>>;
  return [pk, sk].every((part) => typeof part === "string" && part !== "");
}

/** Puts together what a key's leases and the lock's own item show. */
export function descriptionOf(
  { lock, ...read }: Pick<KeyDescription, "key" | "readAt" | "leases"> & { readonly lock: Item | undefined },
  onUnreadable: (error: LeaseItemError) => void,
): KeyDescription {
  const doneSlot = unlessUnreadable(() => lastDoneSlot(lock), onUnreadable);
  return { ...read, lastHolder: lastHolderIn(lock), doneSlot };
}
