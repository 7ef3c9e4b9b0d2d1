import { InvalidOptionsError } from "./errors/errors.ts";
import {
  breakLease,
  type LeaseAddress,
  leasesByPrefix,
  leasesOf,
  requestRevocation,
  takeBackSlot,
} from "./expressions.ts";
import { leasesIn, recordsIn, unreadableIn } from "./looks.ts";
import { check, checkKey, checkKnown, checkSlot, checkText } from "./options/check-values.ts";
import type { ProtocolContext } from "./protocol/context.ts";
import { type LeaseRecord, lastDoneSlot, wasBroken } from "./record.ts";
import { type ItemKey, leaseItemKey, limits } from "./schema.ts";
import { isSeatSortKey } from "./seats/schema.ts";
import { seatOf } from "./seats/seat.ts";
import { askSeatToStop, breakSeat } from "./seats/seat-form.ts";
import type { Item, UpdateResult } from "./store.ts";

/** Which of a key's leases is meant, where it has several. */
export interface SortKeyOptions {
  /** The lease's sort key, as `LeaseRecord.sortKey` has it. @default "lease", the lock's own */
  readonly sortKey?: string;
}

/** Which holder is to be asked to stop, or is to lose its lease. */
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
  /** What keys begin with. @default - all keys */
  readonly prefix?: string;
  /** Whether the leases of the other primitives are wanted too: permits, readers, runs, tasks. @default false */
  readonly all?: boolean;
}

/** Options of {@link LeaseClient.takeBackSlot}. */
export interface TakeBackSlotOptions {
  /** The slot that is to count as done no more, as `doneSlot` has shown it. */
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

/** Looks after other holders' leases, for people and tools: reads them, asks their holders to stop, breaks them. */
export class LeaseAdmin {
  readonly #context: ProtocolContext;

  constructor(context: ProtocolContext) {
    this.#context = context;
  }

  async inspect(key: string, options: SortKeyOptions): Promise<LeaseRecord | undefined> {
    return leasesIn(await this.#read(addressOf(key, options, []).lease))[0];
  }

  async inspectAll(key: string): Promise<LeaseRecord[]> {
    const query = { ...leasesOf(checkKey(key)), consistent: true };
    const leases: LeaseRecord[] = [];
    let after: ItemKey | undefined;
    do {
      const request = after === undefined ? query : { ...query, after };
      const { items, next } = await this.#context.table.query(request);
      leases.push(...recordsIn(items, unreadableIn(this.#context)));
      after = next;
    } while (after !== undefined);
    return leases;
  }

  async *listPages(options: ListPagesOptions): AsyncGenerator<LeasePage, void, undefined> {
    const given = checkKnown(options, ["prefix", "all", "after"], "options");
    const { prefix = "", all = false } = given;
    if (prefix !== "") checkText("prefix", prefix, limits.keyBytes);
    check(typeof all === "boolean", "all", all, "true or false");
    let after = given.after === undefined ? undefined : checkCursor(given.after);
    const filter = leasesByPrefix(prefix, all);
    do {
      const request = after === undefined ? filter : { ...filter, after };
      const { items, next } = await this.#context.table.scan(request);
      const leases = [...recordsIn(items, unreadableIn(this.#context))];
      yield next === undefined ? { leases } : { leases, next };
      after = next;
    } while (after !== undefined);
  }

  async forceRelease(key: string, options: HolderOptions): Promise<boolean> {
    const { lease, given } = addressOf(key, options, holderOptionNames);
    const token = checkToken(given);
    const result = isSeatSortKey(lease.sortKey)
      ? await this.#breakSeat(lease, token)
      : await this.#context.table.update(breakLease(lease, token));
    if (result.applied || wasBroken(result.item, token)) return true;
    given.onRefused?.(leasesIn(result.item)[0]);
    return false;
  }

  async doneSlot(key: string): Promise<string | undefined> {
    return lastDoneSlot(await this.#read({ key: checkKey(key) }));
  }

  async takeBackSlot(key: string, options: TakeBackSlotOptions): Promise<boolean> {
    const given = checkKnown(options, ["doneSlot", "to"], "options");
    const seen = checkSlot("doneSlot", given.doneSlot);
    const to = given.to === undefined ? undefined : checkSlot("to", given.to);
    check(to === undefined || to < seen, "to", to, `a slot before ${JSON.stringify(seen)}, or none`);
    const request = takeBackSlot({ key: checkKey(key), doneSlot: seen, to });
    const { applied, item } = await this.#context.table.update(request);
    // As it was wanted already: so one whose answer was lost finds itself.
    return applied || lastDoneSlot(item) === to;
  }

  async requestRevocation(
    key: string,
    options: HolderOptions & { readonly reason?: string },
  ): Promise<boolean> {
    const { lease, given } = addressOf(key, options, [...holderOptionNames, "reason"]);
    const token = checkToken(given);
    const reason = checkText("reason", given.reason ?? "revocation requested", limits.revocationBytes);
    const result = await this.#context.table.update(
      isSeatSortKey(lease.sortKey)
        ? askSeatToStop(lease, token, reason)
        : requestRevocation(lease, token, reason),
    );
    if (!result.applied) given.onRefused?.(leasesIn(result.item)[0]);
    return result.applied;
  }

  /** What a seat takes is counted in its item: it has to be seen before it can be taken away. */
  async #breakSeat(lease: LeaseAddress, token: string): Promise<Pick<UpdateResult, "applied" | "item">> {
    const item = await this.#read(lease);
    const seat = seatOf(item, token);
    return seat === undefined ? { applied: false, item } : await this.#context.table.update(breakSeat(seat));
  }

  #read({ key, sortKey }: LeaseAddress): Promise<Item | undefined> {
    return this.#context.table.get({ key: leaseItemKey(key, sortKey), consistent: true });
  }
}

const holderOptionNames: readonly (keyof HolderOptions)[] = ["token", "onRefused"];

function checkToken({ token, onRefused }: HolderOptions): string {
  check(onRefused === undefined || typeof onRefused === "function", "onRefused", onRefused, "a function");
  if (token !== undefined) return checkText("token", token, limits.ownerBytes);
  const allowed = "the token of the lease that is meant, as inspect(key), inspectAll(key) or list() shows it";
  throw new InvalidOptionsError("token", token, allowed);
}

function addressOf<Options extends SortKeyOptions>(
  key: string,
  // Missing options get an error that names what is missing in them.
  options: Options | undefined,
  others: readonly string[],
): { readonly lease: LeaseAddress; readonly given: Options } {
  const given = checkKnown(options ?? ({} as Options), [...others, "sortKey"], "options");
  const { sortKey } = given;
  if (sortKey !== undefined) checkText("sortKey", sortKey, limits.sortKeyBytes);
  return { lease: { key: checkKey(key), sortKey }, given };
}

function checkCursor(after: ListCursor): ItemKey {
  const { pk, sk } = (typeof after === "object" && after !== null ? after : {}) as Partial<ListCursor>;
  const isKey = [pk, sk].every((part) => typeof part === "string" && part !== "");
  check(
    isKey,
    "after",
    after,
    "the `next` of an earlier page, or a lease's key as pk and its sort key as sk",
  );
  return after;
}
