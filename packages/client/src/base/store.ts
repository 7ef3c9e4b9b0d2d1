import type { LeaseError } from "./errors.ts";
import type { ItemKey } from "./schema.ts";
import type { ServiceTime } from "./service-clock.ts";

/** The limits of one call to a store. */
export interface CallOptions {
  /** Once it aborts, the call rejects promptly with a {@link LeaseServiceError}; its write may have landed. */
  readonly signal: AbortSignal;
  /**
   * Call it before every attempt: a request that is too old must not be sent any more.
   *
   * A process that was frozen for days wakes with its retry due. By then ttl may have removed the item, and the
   * fencing tokens with it.
   */
  readonly isCurrent: () => boolean;
  /**
   * Call it when an attempt is sent. When the answer has arrived, call the returned function with the service's time in
   * the answer, or undefined.
   * @default - the caller does not need the time
   */
  readonly timed?: () => (time: ServiceTime | undefined) => void;
}

/** An item's attributes as plain values; a lease table holds no other kinds. */
export type Item = Readonly<Record<string, string | number>>;

/** The placeholders of an expression: attribute names by `#`, the caller's values by `:`. */
interface Expression {
  readonly names: Readonly<Record<string, string>>;
  readonly values: Item;
}

/** One conditional write of one item. */
export interface UpdateRequest extends Expression {
  readonly key: ItemKey;
  readonly update: string;
  readonly condition: string;
  /** Whether the caller also needs the item after a success; this costs the service a little time. */
  readonly returnsItem: boolean;
}

/** One entry of a transaction: a write on a condition, or the condition alone. */
export interface TransactionEntry extends Expression {
  readonly key: ItemKey;
  readonly condition: string;
  /** An update expression; `delete` removes the item, and `check` leaves it as it is. */
  readonly action: { readonly update: string } | "delete" | "check";
}

/**
 * The outcome of a transaction: all of it, or nothing.
 *
 * `refusals` has an entry for each entry of the transaction: the item that refused it, or undefined if its condition
 * held.
 */
export interface TransactionResult extends Pick<UpdateResult, "applied" | "retried"> {
  readonly refusals: readonly ({ readonly item: Item | undefined } | undefined)[];
}

/** One page of the items under a key. */
export interface QueryRequest extends Expression {
  readonly keyCondition: string;
  /** A consistent read sees every earlier write and costs twice as much as one that may lag. */
  readonly consistent: boolean;
  /** @default - as many as fit into a page of DynamoDB */
  readonly limit?: number;
  /** Whether the last sort keys come first. @default false */
  readonly descending?: boolean;
  /** Where the previous page ended. */
  readonly after?: ItemKey;
}

/** One read of one item. */
export interface GetRequest {
  readonly key: ItemKey;
  /** A consistent read sees every earlier write and costs twice as much as one that may lag. */
  readonly consistent: boolean;
}

/** One page of a walk over the table: as many items, before the filter, as fit into a page of the store. */
export interface ScanRequest extends Expression {
  readonly filter: string;
  /** Where the previous page ended. */
  readonly after?: ItemKey;
}

/** A page of a walk; `next` is absent on the last one. */
export interface ScanPage {
  readonly items: readonly Item[];
  readonly next?: ItemKey | undefined;
}

/**
 * The outcome of a conditional write.
 *
 * `item` is the item that refused the write, or the item after an applied write with `returnsItem`.
 */
export interface UpdateResult {
  readonly applied: boolean;
  readonly item: Item | undefined;
  /** True when the request was sent more than once: an earlier copy may still be under way. */
  readonly retried: boolean;
}

/** The most writes in one request: DynamoDB's limit for BatchExecuteStatement. */
export const mostUpdatesTogether = 25;

/**
 * The storage of leases: DynamoDB, or memory in tests.
 *
 * Every method rejects with a {@link LeaseError}; a condition that does not hold is a result, not an error. A store
 * executes expressions and knows nothing of leases. `@leasehold/client/conformance` checks your own store.
 */
export interface LeaseStore {
  readonly tableName: string;
  /** Whether the store is in the caller's own process: then its time is the caller's clock. @default false */
  readonly isLocal?: boolean;
  /** One conditional write. */
  update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult>;
  /**
   * Several independent conditional writes, each of another item, in as few requests as the store has.
   *
   * Returns, in the order of the requests, each result, or the error that `update` would reject with; undefined if only
   * a call to `update` can settle the write.
   */
  updateMany(
    requests: readonly UpdateRequest[],
    options: CallOptions,
  ): Promise<readonly (UpdateResult | LeaseError | undefined)[]>;
  /** Several conditional writes of different items: all of them or none. At most 100. */
  transact(entries: readonly TransactionEntry[], options: CallOptions): Promise<TransactionResult>;
  /** One read. */
  get(request: GetRequest, options: CallOptions): Promise<Item | undefined>;
  /** One page of the items under a key, in the order of their sort keys. */
  query(request: QueryRequest, options: CallOptions): Promise<ScanPage>;
  /** One page of all items that pass a filter. */
  scan(request: ScanRequest, options: CallOptions): Promise<ScanPage>;
}

/** Reads a walk page by page, from its beginning or from behind an item. */
export async function* pagesOf(
  read: (from: { readonly after?: ItemKey }) => Promise<ScanPage>,
  after?: ItemKey,
): AsyncGenerator<ScanPage, void, undefined> {
  for (let from = after && { after }; ; ) {
    const page = await read(from ?? {});
    yield page;
    if (page.next === undefined) return;
    from = { after: page.next };
  }
}
