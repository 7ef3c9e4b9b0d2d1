import type {
  Item,
  QueryRequest,
  ScanPage,
  TransactionEntry,
  TransactionResult,
  UpdateRequest,
  UpdateResult,
} from "@leasehold/client";
import { type ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";

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
export class SimulatedTable {
  readonly memory: MemoryLeaseStore = new MemoryLeaseStore();
  readonly #clock: ManualClock;
  readonly #onChange: (changes: readonly Change[]) => void;
  readonly #past = new Map<string, { readonly until: number; readonly item: Item | undefined }[]>();

  /** Writes that take effect together are told of together. */
  constructor(clock: ManualClock, onChange: (changes: readonly Change[]) => void) {
    this.#clock = clock;
    this.#onChange = onChange;
  }

  update(request: UpdateRequest): UpdateResult {
    return this.#noting([request.key], () => this.memory.updateNow(request));
  }

  transact(entries: readonly TransactionEntry[]): TransactionResult {
    const keys = entries.map(({ key }) => key);
    return this.#noting(keys, () => this.memory.transactNow(entries));
  }

  /** The item as it was some time ago. */
  at(key: ItemKey, agoMs: number): Item | undefined {
    const then = this.#clock.monotonic() - agoMs;
    const state = this.#past.get(idOf(key))?.find(({ until }) => until > then);
    return state === undefined ? this.memory.peek(key) : state.item;
  }

  /** Item by item, each as it was at a moment of its own: a query that is not consistent is no snapshot. */
  async query(request: QueryRequest, agoMs: () => number): Promise<ScanPage> {
    const call = { signal: new AbortController().signal, isCurrent: () => true };
    const page = await this.memory.query(request, call);
    const items = page.items.map(({ pk, sk }) => this.at({ pk: String(pk), sk: String(sk) }, agoMs()));
    return { ...page, items: items.filter((item) => item !== undefined) };
  }

  /** Removes what DynamoDB's ttl could have removed by now; gives the number of items removed. */
  collectGarbage(): number {
    return this.memory.collectGarbage(this.#clock.now());
  }

  #noting<Result extends { readonly applied: boolean }>(
    keys: readonly ItemKey[],
    write: () => Result,
  ): Result {
    const before = keys.map((key) => this.memory.peek(key));
    const result = write();
    if (!result.applied) return result;
    const changes = keys.map((key, index) => ({
      key,
      before: before[index],
      after: this.memory.peek(key),
    }));
    for (const change of changes) this.#remember(change);
    this.#onChange(changes);
    return result;
  }

  #remember({ key, before }: Change): void {
    const now = this.#clock.monotonic();
    const past = (this.#past.get(idOf(key)) ?? []).filter(({ until }) => until > now - longestLagMs);
    this.#past.set(idOf(key), [...past, { until: now, item: before }]);
  }
}

function idOf({ pk, sk }: ItemKey): string {
  return JSON.stringify([pk, sk]);
}
