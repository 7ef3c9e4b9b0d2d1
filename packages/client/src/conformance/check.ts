import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { attributeNames, type ItemKey } from "../schema.ts";
import type { CallOptions, Item, LeaseStore, UpdateResult } from "../store.ts";
import { systemClock } from "../time/clock.ts";
import { RecordingStore } from "./recording-store.ts";
import { render, type Write } from "./write.ts";

/** What a check is about. */
export type ConformanceGroup =
  | "writes"
  | "conditions"
  | "transactions"
  | "reads"
  | "limits"
  | "contention"
  | "calls"
  | "leases";

/** Options of a {@link ConformanceCheck}. */
export interface ConformanceOptions {
  /** What the keys of the check begin with; a random text follows. @default "leasehold-conformance/" */
  readonly keyPrefix?: string;
  /** Gets the keys of items that could not be removed after the check. @default - they are left without a word */
  readonly onLeftBehind?: (keys: readonly ItemKey[]) => void;
}

/** One thing that must hold of every store of leases. */
export interface ConformanceCheck {
  readonly group: ConformanceGroup;
  /** What must hold, as a sentence. */
  readonly name: string;
  /**
   * Looks whether it holds of a store. Writes items under a key of its own, and removes them afterwards.
   *
   * Resolves to undefined where it holds, and to the reason where it cannot be looked at in this store. Rejects with an
   * AssertionError of node:assert where it does not hold, and with what the store rejects with where a call fails that
   * has to succeed. Takes two minutes at most.
   */
  run(store: LeaseStore, options?: ConformanceOptions): Promise<string | undefined>;
}

/** What the keys of checks begin with, unless the caller names something else. */
export const defaultKeyPrefix = "leasehold-conformance/";

const longestCheckMs = 120_000;
/** As many items go in one transaction, whatever their size. */
const removedTogether = 8;

/** Makes a check of its sentence and what it does; that gives a reason where it cannot look. */
export function check(
  group: ConformanceGroup,
  name: string,
  // biome-ignore lint/suspicious/noConfusingVoidType: most checks end without a word.
  look: (table: CheckTable) => Promise<string | void>,
): ConformanceCheck {
  return {
    group,
    name,
    run: async (store, options = {}) => (await withTable(store, options, look)) ?? undefined,
  };
}

/** Works with a part of a table, and removes what was written. */
export async function withTable<T>(
  store: LeaseStore,
  { keyPrefix = defaultKeyPrefix, onLeftBehind }: ConformanceOptions,
  work: (table: CheckTable) => Promise<T>,
): Promise<T> {
  const table = new CheckTable(store, keyPrefix);
  try {
    return await inTime(work(table));
  } finally {
    const left = await table.clean();
    if (left.length > 0) onLeftBehind?.(left);
  }
}

async function inTime<T>(look: Promise<T>): Promise<T> {
  let cancel = (): void => {};
  const late = new Promise<never>((_, reject) => {
    const fail = (): void =>
      reject(new assert.AssertionError({ message: `no end within ${longestCheckMs} ms` }));
    cancel = systemClock.schedule(fail, longestCheckMs);
  });
  try {
    return await Promise.race([look, late]);
  } finally {
    cancel();
  }
}

/** The part of a table that is a check's own: one partition key, whose items are removed afterwards. */
export class CheckTable {
  /** The store itself; it remembers what was written. */
  readonly store: LeaseStore;
  /** The check's own key. */
  readonly pk: string;
  /** For calls without a bound of their own. */
  readonly call: CallOptions = { signal: new AbortController().signal, isCurrent: () => true };
  readonly #recording: RecordingStore;

  constructor(store: LeaseStore, keyPrefix: string) {
    this.#recording = new RecordingStore(store);
    this.store = this.#recording;
    this.pk = `${keyPrefix}${randomUUID()}`;
  }

  /** The key of an item of the check's. */
  key(sk: string): ItemKey {
    return { pk: this.pk, sk };
  }

  /** Sends one write of an item of the check's. */
  write(sk: string, write: Omit<Write, "key">, call: CallOptions = this.call): Promise<UpdateResult> {
    return this.store.update(render({ key: this.key(sk), ...write }), call);
  }

  /** Sets attributes of an item, whatever it holds. */
  async put(sk: string, set: Write["set"]): Promise<void> {
    const { applied } = await this.write(sk, { set, insist: always });
    assert.equal(applied, true, "a write whose condition holds is applied");
  }

  /** Reads an item consistently. */
  item(sk: string): Promise<Item | undefined> {
    return this.store.get({ key: this.key(sk), consistent: true }, this.call);
  }

  /** What an item holds besides its key; undefined where there is no item. */
  async contents(sk: string): Promise<Item | undefined> {
    const item = await this.item(sk);
    return item && contentsOf(item);
  }

  /** Removes what was written; gives the keys of what may still be there. */
  async clean(): Promise<readonly ItemKey[]> {
    const keys = this.#recording.written;
    const left: ItemKey[] = [];
    for (let start = 0; start < keys.length; start += removedTogether) {
      const some = keys.slice(start, start + removedTogether);
      if (!(await this.#remove(some))) left.push(...some);
    }
    return left;
  }

  async #remove(keys: readonly ItemKey[]): Promise<boolean> {
    const holds = { condition: "attribute_not_exists(#never)", names: { "#never": "never" }, values: {} };
    try {
      const entries = keys.map((key) => ({ key, ...holds, action: "delete" as const }));
      return (await this.store.transact(entries, this.call)).applied;
    } catch {
      // Ignored: the caller is told of what is left, and the check itself has said what is wrong with the store.
      return false;
    }
  }
}

/** A condition that holds of every item of a check's, and where there is no item. */
export const always: Write["insist"] = [["never", "missing"]];

/** What an item holds besides its key. */
export function contentsOf(item: Item): Item {
  const { [attributeNames.partitionKey]: _, [attributeNames.sortKey]: __, ...contents } = item;
  return contents;
}
