import { LeaseServiceError } from "../errors/errors.ts";
import { attributeNames, type ItemKey } from "../schema.ts";
import type {
  CallOptions,
  GetRequest,
  Item,
  LeaseStore,
  QueryRequest,
  ScanPage,
  ScanRequest,
  TransactionEntry,
  TransactionResult,
  UpdateRequest,
  UpdateResult,
} from "../store.ts";
import { evaluateCondition } from "./condition.ts";
import { checkAllUsed, ExpressionError, ExpressionReader } from "./expression-parser.ts";
import { applyUpdate } from "./update.ts";

/** As many items make a page of a walk over the table. */
const itemsPerPage = 500;

/**
 * A lease table in memory, for your unit tests.
 *
 * It executes the very expressions that are sent to DynamoDB, one after the other, and its clock is the caller's.
 *
 * ```ts
 * const clock = new ManualClock();
 * const client = new LeaseClient({ store: new MemoryLeaseStore(), clock });
 * const lease = await client.acquire("import", { leaseDurationMs: 1000 });
 * await clock.advance(1000);
 * expect(lease.held).toBe(false);
 * ```
 */
export class MemoryLeaseStore implements LeaseStore {
  readonly tableName: string;
  readonly isLocal = true;
  readonly #items = new Map<string, Item>();

  constructor(tableName = "leases-in-memory") {
    this.tableName = tableName;
  }

  async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
    checkCall(call);
    return this.updateNow(request);
  }

  async updateMany(
    requests: readonly UpdateRequest[],
    call: CallOptions,
  ): Promise<readonly (UpdateResult | undefined)[]> {
    checkCall(call);
    return requests.map((request) => this.updateNow(request));
  }

  async transact(entries: readonly TransactionEntry[], call: CallOptions): Promise<TransactionResult> {
    checkCall(call);
    return this.transactNow(entries);
  }

  async query(request: QueryRequest, call: CallOptions): Promise<ScanPage> {
    checkCall(call);
    return this.queryNow(request);
  }

  /** What `query` does, at once. */
  queryNow(request: QueryRequest): ScanPage {
    const { keyCondition, descending = false, after, limit } = request;
    const direction = descending ? -1 : 1;
    const found = [...this.#items.values()]
      .filter((item) => evaluateCondition(new ExpressionReader(keyCondition, request), item))
      .sort((one, other) => direction * compare(sortKeyOf(one), sortKeyOf(other)))
      // As DynamoDB does: behind a sort key, whether there is still an item of that key or not.
      .filter((item) => after === undefined || direction * compare(sortKeyOf(item), after.sk) > 0);
    const items = found.slice(0, limit);
    const last = items.at(-1);
    if (last === undefined || items.length === found.length) return { items };
    return { items, next: { pk: String(last[attributeNames.partitionKey]), sk: sortKeyOf(last) } };
  }

  async get({ key }: GetRequest, call: CallOptions): Promise<Item | undefined> {
    checkCall(call);
    return this.#items.get(idOf(key));
  }

  async scan(request: ScanRequest, call: CallOptions): Promise<ScanPage> {
    checkCall(call);
    const ids = [...this.#items.keys()];
    const start = request.after === undefined ? 0 : ids.indexOf(idOf(request.after)) + 1;
    const page = ids.slice(start, start + itemsPerPage);
    const items = page
      .map((id) => this.#items.get(id) ?? {})
      .filter((item) => evaluateCondition(new ExpressionReader(request.filter, request), item));
    const last = page.at(-1);
    const isLast = start + page.length >= ids.length || last === undefined;
    return isLast ? { items } : { items, next: keyOf(last) };
  }

  /** What `update` does, at once. */
  updateNow(request: UpdateRequest): UpdateResult {
    const id = idOf(request.key);
    const before = this.#items.get(id);
    const condition = new ExpressionReader(request.condition, request);
    const update = new ExpressionReader(request.update, request);
    try {
      const holds = evaluateCondition(condition, before ?? {});
      const after = applyUpdate(update, before ?? { ...request.key }, holds);
      checkAllUsed(request, [condition, update]);
      if (holds) this.#items.set(id, after);
      return { applied: holds, item: holds ? after : before, retried: false };
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      throw new LeaseServiceError("LEASE_REQUEST_REJECTED", `the expression is not valid: ${error.message}`);
    }
  }

  /** What `transact` does, at once. */
  transactNow(entries: readonly TransactionEntry[]): TransactionResult {
    const ids = new Set(entries.map(({ key }) => idOf(key)));
    if (ids.size < entries.length || entries.length > 100) {
      throw new LeaseServiceError(
        "LEASE_REQUEST_REJECTED",
        "a transaction takes at most 100 entries, each about an item of its own",
      );
    }
    // Conditions are looked at before anything is written, on the items as they were.
    const trial = new MemoryLeaseStore(this.tableName);
    for (const { key } of entries) {
      const item = this.peek(key);
      if (item !== undefined) trial.#items.set(idOf(key), item);
    }
    const refusals = entries.map((entry) => trial.#apply(entry));
    const isApplied = refusals.every((refusal) => refusal === undefined);
    if (isApplied) for (const entry of entries) this.#apply(entry);
    return { applied: isApplied, refusals: isApplied ? [] : refusals, retried: false };
  }

  #apply(entry: TransactionEntry): { readonly item: Item | undefined } | undefined {
    const { action, ...expression } = entry;
    if (typeof action === "object") {
      const result = this.updateNow({ ...expression, update: action.update, returnsItem: false });
      return result.applied ? undefined : { item: result.item };
    }
    const id = idOf(entry.key);
    const item = this.#items.get(id);
    const reader = new ExpressionReader(entry.condition, entry);
    const holds = evaluateCondition(reader, item ?? {});
    checkAllUsed(entry, [reader]);
    if (holds && action === "delete") this.#items.delete(id);
    return holds ? undefined : { item };
  }

  /** The item under a key, as it is now. */
  peek(key: ItemKey): Item | undefined {
    return this.#items.get(idOf(key));
  }

  /** Removes what DynamoDB's ttl could have removed by now; gives the number of items removed. */
  collectGarbage(nowMs: number): number {
    const dead = [...this.#items].filter(
      ([, item]) => Number(item[attributeNames.timeToLive]) * 1000 < nowMs,
    );
    for (const [id] of dead) this.#items.delete(id);
    return dead.length;
  }
}

function idOf(key: ItemKey): string {
  return JSON.stringify([key.pk, key.sk]);
}

function keyOf(id: string): ItemKey {
  const [pk, sk] = JSON.parse(id) as [string, string];
  return { pk, sk };
}

function sortKeyOf(item: Item): string {
  return String(item[attributeNames.sortKey]);
}

/** As DynamoDB compares texts: by their bytes. */
function compare(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

function checkCall({ signal, isCurrent }: CallOptions): void {
  if (signal.aborted) throw new LeaseServiceError("LEASE_NO_ANSWER", "the call was cut off");
  if (!isCurrent()) throw new LeaseServiceError("LEASE_NO_ANSWER", "the request was too old to be sent");
}
