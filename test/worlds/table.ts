import type {
  Item,
  QueryRequest,
  ScanPage,
  TransactionEntry,
  TransactionResult,
  UpdateRequest,
  UpdateResult,
} from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import type { World } from "./world.ts";

type ItemKey = UpdateRequest["key"];

/** By how much a read that is not consistent may lag. */
export const longestLagMs = 2_000;

/** What has become of an item. */
export interface Change {
  readonly key: ItemKey;
  readonly before: Item | undefined;
  readonly after: Item | undefined;
}

/** The table of a simulation: tells of every write that takes effect, and remembers what it was a moment ago. */
export class Table {
  readonly #memory = new MemoryLeaseStore();
  readonly #world: World;
  readonly #onChange: (changes: readonly Change[]) => void;
  readonly #past = new Map<string, { readonly until: number; readonly item: Item | undefined }[]>();

  /** Writes that take effect together are told of together. */
  constructor(world: World, onChange: (changes: readonly Change[]) => void = () => undefined) {
    this.#world = world;
    this.#onChange = onChange;
  }

  update(request: UpdateRequest): UpdateResult {
    return this.#noting([request.key], () => this.#memory.updateNow(request));
  }

  transact(entries: readonly TransactionEntry[]): TransactionResult {
    const keys = entries.map(({ key }) => key);
    return this.#noting(keys, () => this.#memory.transactNow(entries));
  }

  peek(key: ItemKey): Item | undefined {
    return this.#memory.peek(key);
  }

  /** The item as it was some time ago. */
  at(key: ItemKey, agoMs: number): Item | undefined {
    const then = this.#world.now - agoMs;
    const state = agoMs > 0 ? this.#past.get(idOf(key))?.find(({ until }) => until > then) : undefined;
    return state === undefined ? this.#memory.peek(key) : state.item;
  }

  /** Item by item, each as it was at a moment of its own: a query that is not consistent is no snapshot. */
  query(request: QueryRequest, agoMs: () => number): ScanPage {
    const page = this.#memory.queryNow(request);
    const items = page.items.map(({ pk, sk }) => this.at({ pk: String(pk), sk: String(sk) }, agoMs()));
    return { ...page, items: items.filter((item) => item !== undefined) };
  }

  /** Removes what DynamoDB's ttl could have removed by now; gives the number of items removed. */
  collectGarbage(): number {
    const removed = this.#memory.collectGarbage(this.#world.clock.now());
    if (removed > 0) this.#world.count("ttl removed an item");
    if (removed > 0) this.#world.tell("table", () => `ttl removed ${removed} items`);
    return removed;
  }

  #noting<Result extends { readonly applied: boolean }>(
    keys: readonly ItemKey[],
    write: () => Result,
  ): Result {
    const before = keys.map((key) => this.#memory.peek(key));
    const result = write();
    if (!result.applied) return result;
    const changes = keys.map((key, index) => ({
      key,
      before: before[index],
      after: this.#memory.peek(key),
    }));
    for (const change of changes) this.#remember(change);
    this.#world.written(changes);
    this.#onChange(changes);
    return result;
  }

  #remember({ key, before }: Change): void {
    const { now } = this.#world;
    const past = (this.#past.get(idOf(key)) ?? []).filter(({ until }) => until > now - longestLagMs);
    this.#past.set(idOf(key), [...past, { until: now, item: before }]);
  }
}

function idOf({ pk, sk }: ItemKey): string {
  return JSON.stringify([pk, sk]);
}
