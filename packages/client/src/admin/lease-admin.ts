import {
  aFunction,
  check,
  checkKey,
  checkKnown,
  checkOptions,
  checkSlot,
  checkText,
  label,
  type Rules,
  rule,
  text,
  trueOrFalse,
} from "../base/check-values.ts";
import { type LeaseItemError, quoted } from "../base/errors.ts";
import { unlessUnreadable } from "../base/item-values.ts";
import type { LastHolder, LeaseRecord } from "../base/lease-record.ts";
import { lastDoneSlot, lastHolderIn, wasBroken } from "../base/record.ts";
import { attributeNames, type ItemKey, leaseItemKey, leaseSortKey, limits } from "../base/schema.ts";
import type { Item, ScanPage, UpdateResult } from "../base/store.ts";
import { pagesOf } from "../base/store.ts";
import type { LeaseClient } from "../core/client.ts";
import { type Core, coreOf, query, scan, unreadableIn } from "../core/core.ts";
import { isSeatSortKey, seatOf } from "../primitives/seats/seat.ts";
import { askSeatToStop, breakSeat } from "../primitives/seats/seat-writes.ts";
import type { LeaseAddress } from "../statements/lock.ts";
import { leasesIn, recordsIn } from "./looks.ts";
import { breakLease, leasesByPrefix, leasesOf, requestRevocation, takeBackSlot } from "./statements.ts";

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

/** Options of {@link LeaseAdmin.takeBackSlot}. */
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

/**
 * Reads the leases of others, asks their holders to stop, and breaks them: for people and tools. It leaves no trace of
 * its actions; {@link LeaseOperator} does. It works on a closed client too.
 *
 * Every method rejects with InvalidOptionsError before it sends anything, with LeaseTableError,
 * LeaseConfigurationError and LeaseServiceError; a method on one lease or slot with LeaseItemError too, when another
 * program has spoilt the item.
 *
 * ```ts
 * const admin = new LeaseAdmin(client);
 * for await (const { key, owner } of admin.list()) console.log(key, owner);
 * ```
 */
export class LeaseAdmin {
  readonly #core: Core;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient) {
    this.#core = coreOf(client);
  }

  /**
   * Reads which lease holds a lock; undefined when the lock is free. Shows a lease that has expired and was not
   * released. 1 consistent read.
   *
   * With `sortKey`, reads another lease under the key. Of a semaphore or a read-write lock it gives the lease that
   * was acquired first; `inspectAll` shows all.
   */
  async inspect(key: string, options: SortKeyOptions = {}): Promise<LeaseRecord | undefined> {
    const { sortKey } = checkOptions(options, sortKeyRules);
    return leasesIn(await this.#read(key, sortKey))[0];
  }

  /**
   * Reads all leases under a key that are held or have not been released, of all primitives: the lock, permits of a
   * semaphore, readers and writer, runs of a job, tasks. Their `sortKey` tells them apart.
   *
   * 1 consistent query for each megabyte of the items under the key. An item that cannot be read is left out, and the
   * `unreadable` event names it.
   */
  async inspectAll(key: string): Promise<LeaseRecord[]> {
    const asked = { ...leasesOf(checkKey(key)), consistent: true };
    const leases: LeaseRecord[] = [];
    for await (const page of this.#pages((after) => query(this.#core, { ...asked, ...after }))) {
      leases.push(...page.leases);
    }
    return leases;
  }

  /**
   * Reads the state of a key: its leases, the last holder of the lock, the latest slot that is done. For people and
   * tools; `LeaseOperator.describe` of `@leasehold/client/admin` shows more: states, waiting callers, permits, the
   * audit.
   *
   * 1 consistent query for each megabyte of the items under the key, runs and tasks included. The key's history
   * (`LeaseTable({ history })`) is not read. An item that cannot be read is left out, and the `unreadable` event
   * names it.
   *
   * ```ts
   * const { leases, lastHolder } = await admin.describe("label-printer");
   * console.log(leases[0]?.owner ?? "free", lastHolder?.owner);
   * ```
   */
  async describe(key: string): Promise<KeyDescription> {
    const core = this.#core;
    const { clock } = core;
    const asked = { ...leasesOf(checkKey(key)), consistent: true };
    const leases: LeaseRecord[] = [];
    const onUnreadable = unreadableIn(this.#core);
    let lock: Item | undefined;
    for await (const { items } of pagesOf((after) => query(core, { ...asked, ...after }))) {
      leases.push(...recordsIn(items, onUnreadable));
      lock ??= items.find((item) => item[attributeNames.sortKey] === leaseSortKey);
    }
    return descriptionOf({ key, readAt: clock.now(), leases, lock }, onUnreadable);
  }

  /**
   * Goes through the locks that are held or have not been released, in no order, and reads pages on demand. With
   * `all`, the leases of the other primitives are included.
   *
   * Reads the whole table, 1 request for each megabyte: for people and tools, not for hot paths. May lag a moment
   * behind. An item that cannot be read is left out, and the `unreadable` event names it.
   *
   * ```ts
   * for await (const lease of admin.list({ prefix: "import/" })) console.log(lease.key, lease.owner);
   * ```
   */
  async *list(options: ListOptions = {}): AsyncGenerator<LeaseRecord, void, undefined> {
    checkKnown(options, ["prefix", "all"], "options");
    for await (const { leases } of this.listPages(options)) yield* leases;
  }

  /**
   * Lists the same by the pages in which it is read. Each page has a cursor from which another process can go on,
   * when this one has too little time for the whole table. A page may be empty, and others follow.
   *
   * 1 request for each page of a megabyte. Leases that are acquired behind the cursor are not seen.
   *
   * ```ts
   * for await (const { leases, next } of admin.listPages({ prefix: "desk/" })) {
   *   console.log(leases.length, next === undefined ? "and that was all" : `more behind ${next.pk}`);
   * }
   * ```
   */
  async *listPages(options: ListPagesOptions = {}): AsyncGenerator<LeasePage, void, undefined> {
    const { prefix = "", all = false, after } = checkOptions(options, pagesRules);
    const filter = leasesByPrefix(prefix, all);
    yield* this.#pages((next) => scan(this.#core, { ...filter, ...next }), after);
  }

  /**
   * Breaks the lease of a holder that does not release it. BE CAREFUL: the holder is not asked, and works on until
   * its next renewal or its deadline.
   *
   * Needs the token of the lease (see {@link LeaseAdmin.inspect}), so that it cannot hit a later holder, and the
   * `sortKey` of a lease that is not the lock's own. A task whose claim is broken waits again; after its last attempt
   * the next worker parks it. A run shows as lost. 1 request; 2 for a permit, a read lock or a write lock. Resolves
   * to false when another token, or none, holds the lock: `onRefused` is told which of the two.
   *
   * ```ts
   * for (const { key, sortKey, token } of await admin.inspectAll("payment-api")) {
   *   await admin.forceRelease(key, { sortKey, token });
   * }
   * ```
   */
  async forceRelease(key: string, options: HolderOptions): Promise<boolean> {
    const { token, sortKey, onRefused } = checkOptions(options ?? {}, holderRules, "options", ["token"]);
    const lease = { key: checkKey(key), sortKey };
    const result = isSeatSortKey(sortKey)
      ? await this.#breakSeat(lease, token)
      : await this.#core.update(breakLease(lease, token, this.#core.clock.now()));
    if (result.applied || wasBroken(result.item, token)) return true;
    onRefused?.(leasesIn(result.item)[0]);
    return false;
  }

  /**
   * Takes back a slot that is done, so that it and earlier slots can be run again. For an operator, when a slot was
   * done by mistake: a slot far ahead keeps out every run until then.
   *
   * Needs the slot as it was read (see `client.doneSlot`), so that it cannot hit a later one. `to` is the
   * last slot that stays done. The holder of the lock keeps it. 1 request. Resolves to whether `to` is the latest
   * slot that is done: false when it is neither the slot that was read nor `to`.
   *
   * ```ts
   * const doneSlot = await client.doneSlot("close-unpaid-orders");
   * if (doneSlot !== undefined && doneSlot > new Date().toISOString()) {
   *   await admin.takeBackSlot("close-unpaid-orders", { doneSlot, to: "2026-11-21T08:00:00.000Z" });
   * }
   * ```
   */
  async takeBackSlot(key: string, options: TakeBackSlotOptions): Promise<boolean> {
    const { doneSlot, to } = checkOptions(options, slotRules, "options", ["doneSlot"]);
    check(to === undefined || to < doneSlot, "to", to, `a slot before ${quoted(doneSlot)}, or none`);
    const request = takeBackSlot({ key: checkKey(key), doneSlot, to });
    const { applied, item } = await this.#core.update(request);
    // Already done, perhaps by a first try whose reply was lost.
    return applied || lastDoneSlot(item) === to;
  }

  /**
   * Asks the holder of a lease to stop: its signal aborts with the reason `revoked` at its next renewal. A holder
   * that does not renew does not notice. The lock is held until it is released or expires.
   *
   * Needs the token of the lease, and the `sortKey` of a lease that is not the lock's own. 1 request. Resolves to
   * false when another token, or none, holds the lock: `onRefused` is told which of the two.
   */
  async requestRevocation(
    key: string,
    options: HolderOptions & { readonly reason?: string },
  ): Promise<boolean> {
    const given = checkOptions(options ?? {}, revocationRules, "options", ["token"]);
    const { token, sortKey, onRefused, reason = "revocation requested" } = given;
    const ask = isSeatSortKey(sortKey) ? askSeatToStop : requestRevocation;
    const request = ask({ key: checkKey(key), sortKey }, token, reason);
    const { applied, item } = await this.#core.update(request);
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
    return seat === undefined ? { applied: false, item } : await this.#core.update(breakSeat(seat));
  }

  #read(key: string, sortKey?: string): Promise<Item | undefined> {
    return this.#core.get({ key: leaseItemKey(checkKey(key), sortKey), consistent: true });
  }

  async *#pages(
    read: (from: { readonly after?: ItemKey }) => Promise<ScanPage>,
    after?: ItemKey,
  ): AsyncGenerator<LeasePage, void, undefined> {
    for await (const { items, next } of pagesOf(read, after)) {
      const leases = [...recordsIn(items, unreadableIn(this.#core))];
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
