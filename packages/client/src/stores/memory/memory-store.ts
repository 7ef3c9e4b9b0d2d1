import { LeaseServiceError } from "../../base/errors.ts";
import { itemKeyOf, sortKeyOf } from "../../base/item-values.ts";
import { attributeNames, type ItemKey } from "../../base/schema.ts";
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
} from "../../base/store.ts";
import { readCondition } from "./condition.ts";
import { checkDefined, checkPlaceholders, ExpressionError, type Placeholders } from "./expression-parser.ts";
import { readUpdate } from "./update.ts";

/** The items of one page of a walk over the table. */
const itemsPerPage = 500;

/** A write, or an entry of a transaction: its item, and its condition. */
interface Conditional extends Placeholders {
  readonly key: ItemKey;
  readonly condition: string;
}

/** The possible outcome of a write: the item before it, whether the condition holds, and the item after it. */
interface WriteOutcome {
  readonly before: Item | undefined;
  readonly holds: boolean;
  readonly after: Item;
}

/**
 * A lease table in memory, for your unit tests.
 *
 * It executes the same expressions that are sent to DynamoDB, one after the other, and its clock is the caller's.
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

  /** Does what `query` does, at once. */
  queryNow(request: QueryRequest): ScanPage {
    const { keyCondition, descending = false, after, limit } = request;
    const direction = descending ? -1 : 1;
    const found = [...this.#items.values()]
      .filter(selection(keyCondition, request))
      .sort((one, other) => direction * compare(sortKeyOf(one), sortKeyOf(other)))
      // As DynamoDB does: after a sort key, whether or not an item still has that key.
      .filter((item) => after === undefined || direction * compare(sortKeyOf(item), after.sk) > 0);
    const items = found.slice(0, limit);
    const last = items.at(-1);
    if (last === undefined || items.length === found.length) return { items };
    return { items, next: itemKeyOf(last) };
  }

  async get({ key }: GetRequest, call: CallOptions): Promise<Item | undefined> {
    checkCall(call);
    return this.#items.get(itemIdOf(key));
  }

  async scan(request: ScanRequest, call: CallOptions): Promise<ScanPage> {
    checkCall(call);
    const after = request.after === undefined ? "" : itemIdOf(request.after);
    // As in DynamoDB, the place behind a key is known whether or not an item still has that key.
    const ids = [...this.#items.keys()].filter((id) => id > after).sort();
    const walked = ids.slice(0, itemsPerPage).map((id) => this.#items.get(id) ?? {});
    const items = walked.filter(selection(request.filter, request));
    const last = walked.at(-1);
    return last === undefined || walked.length === ids.length ? { items } : { items, next: itemKeyOf(last) };
  }

  /** Does what `update` does, at once. */
  updateNow(request: UpdateRequest): UpdateResult {
    const { before, holds, after } = this.#outcome(request, request.update);
    if (holds) this.#items.set(itemIdOf(request.key), after);
    const item = holds ? after : before;
    return { applied: holds, item: request.returnsItem || !holds ? item : undefined, retried: false };
  }

  /** Does what `transact` does, at once. */
  transactNow(entries: readonly TransactionEntry[]): TransactionResult {
    const ids = entries.map(({ key }) => itemIdOf(key));
    if (new Set(ids).size < entries.length || entries.length > 100) {
      throw new LeaseServiceError(
        "LEASE_REQUEST_REJECTED",
        "a transaction takes at most 100 entries, each about an item of its own",
      );
    }
    // Conditions are checked before anything is written, on the unchanged items.
    const outcomes = entries.map((entry) =>
      this.#outcome(entry, typeof entry.action === "object" ? entry.action.update : ""),
    );
    if (!outcomes.every(({ holds }) => holds)) {
      const refusals = outcomes.map(({ holds, before }) => (holds ? undefined : { item: before }));
      return { applied: false, refusals, retried: false };
    }
    for (const [index, { action }] of entries.entries()) {
      const [id, outcome] = [ids[index], outcomes[index]];
      if (id === undefined || outcome === undefined || action === "check") continue;
      if (action === "delete") this.#items.delete(id);
      else this.#items.set(id, outcome.after);
    }
    return { applied: true, refusals: [], retried: false };
  }

  /** The possible outcome of a write; nothing is written. */
  #outcome(request: Conditional, update: string): WriteOutcome {
    const before = this.peek(request.key);
    const { names, values } = request;
    try {
      const condition = readCondition(request.condition);
      const change = readUpdate(update);
      checkPlaceholders(request, [condition, change]);
      const item = before ?? { ...request.key };
      const holds = condition.evaluate({ item: before ?? {}, names, values });
      return { before, holds, after: holds ? change.evaluate({ item, names, values }) : item };
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      throw new LeaseServiceError("LEASE_REQUEST_REJECTED", `the expression is not valid: ${error.message}`);
    }
  }

  /** The item under a key, as it is now. */
  peek(key: ItemKey): Item | undefined {
    return this.#items.get(itemIdOf(key));
  }

  /** Removes the items that DynamoDB's ttl could have removed by now; returns their number. */
  collectGarbage(nowMs: number): number {
    const dead = [...this.#items].filter(
      ([, item]) => Number(item[attributeNames.timeToLive]) * 1000 < nowMs,
    );
    for (const [id] of dead) this.#items.delete(id);
    return dead.length;
  }
}

/** Returns a function that tells whether an expression holds for an item. */
function selection(expression: string, placeholders: Placeholders): (item: Item) => boolean {
  const condition = readCondition(expression);
  checkDefined(placeholders, condition);
  const { names, values } = placeholders;
  return (item) => condition.evaluate({ item, names, values });
}

/** Different keys have different texts, whatever they contain. */
function itemIdOf({ pk, sk }: ItemKey): string {
  return `${pk.length} ${pk}${sk}`;
}

/** Compares texts by their bytes, as DynamoDB does. */
function compare(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

function checkCall({ signal, isCurrent }: CallOptions): void {
  if (signal.aborted) throw new LeaseServiceError("LEASE_NO_ANSWER", "the call was cut off");
  if (!isCurrent()) throw new LeaseServiceError("LEASE_NO_ANSWER", "the request was too old to be sent");
}
