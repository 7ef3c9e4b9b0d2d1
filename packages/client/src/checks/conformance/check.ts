import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { systemClock } from "../../base/clock.ts";
import { attributeNames, type ItemKey } from "../../base/schema.ts";
import type { CallOptions, Item, LeaseStore, UpdateResult } from "../../base/store.ts";
import type { Write } from "../../statements/statement.ts";
import { type Observer, observed } from "./observed.ts";
import { type ItemWrite, putOf, writeOf } from "./write.ts";

/** The subject of a check. */
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
  /** The prefix of the check's keys; a random text follows. @default "leasehold-conformance/" */
  readonly keyPrefix?: string;
  /** Gets the keys of items that could not be removed after the check. @default - they are left silently */
  readonly onLeftBehind?: (keys: readonly ItemKey[]) => void;
}

/** One property that every store of leases must have. */
export interface ConformanceCheck {
  readonly group: ConformanceGroup;
  /** The property, as a sentence. */
  readonly name: string;
  /**
   * Checks the property of a store. Writes items under its own key, and removes them afterwards.
   *
   * Resolves to undefined if the store has the property, and to the reason if this store does not allow the check.
   * Rejects with an AssertionError of node:assert if the store lacks the property, and with the store's error if a call
   * fails that must succeed. Takes two minutes at most.
   */
  run(store: LeaseStore, options?: ConformanceOptions): Promise<string | undefined>;
}

/** The default prefix of the checks' keys. */
export const defaultKeyPrefix = "leasehold-conformance/";

const longestCheckMs = 120_000;
/** The items of one transaction, whatever their size. */
const removedTogether = 8;

/** Returns a check by its sentence and its function. The function returns a reason if it cannot check. */
export function defineCheck(
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

/** A check's own part of a table: one partition key, whose items are removed afterwards. */
export class CheckTable {
  /** The store; it remembers what was written. */
  readonly store: LeaseStore;
  /** The check's own key. */
  readonly pk: string;
  /** For calls without their own limit. */
  readonly call: CallOptions = { signal: new AbortController().signal, isCurrent: () => true };
  readonly #written = new Map<string, ItemKey>();

  constructor(store: LeaseStore, keyPrefix: string) {
    const writing: Observer["writing"] = (writes) => {
      for (const write of writes) {
        const isNoWrite = "action" in write && typeof write.action === "string";
        if (!isNoWrite) this.#written.set(JSON.stringify([write.key.pk, write.key.sk]), write.key);
      }
    };
    this.store = observed(store, { writing });
    this.pk = `${keyPrefix}${randomUUID()}`;
  }

  /** The key of an item of the check. */
  key(sk: string): ItemKey {
    return { pk: this.pk, sk };
  }

  /** A write of an item of the check. */
  writeOf(sk: string, write: ItemWrite): Write {
    return writeOf(this.key(sk), write);
  }

  /** Sends one write of an item of the check. */
  write(sk: string, write: ItemWrite): Promise<UpdateResult> {
    return this.store.update(this.writeOf(sk, write).request(), this.call);
  }

  /** Sends one write of an item of the check, which shows the item after a success too. */
  writeAndSee(sk: string, write: ItemWrite): Promise<UpdateResult> {
    return this.store.update(this.writeOf(sk, write).returning().request(), this.call);
  }

  /** Sets attributes of an item, whatever it holds. */
  async put(sk: string, attributes: Item): Promise<void> {
    const { applied } = await this.store.update(putOf(this.key(sk), attributes).request(), this.call);
    assert.equal(applied, true, "a write whose condition holds is applied");
  }

  /** Reads an item consistently. */
  item(sk: string): Promise<Item | undefined> {
    return this.store.get({ key: this.key(sk), consistent: true }, this.call);
  }

  /** An item's attributes besides its key; undefined without an item. */
  async contents(sk: string): Promise<Item | undefined> {
    const item = await this.item(sk);
    return item && contentsOf(item);
  }

  /** Removes what was written; returns the keys of items that may still be there. */
  async clean(): Promise<readonly ItemKey[]> {
    const keys = [...this.#written.values()];
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
      // Ignored: the caller gets the keys that are left, and the check itself has reported what is wrong with the
      // store.
      return false;
    }
  }
}

/** An item's attributes besides its key. */
export function contentsOf(item: Item): Item {
  const { [attributeNames.partitionKey]: _, [attributeNames.sortKey]: __, ...contents } = item;
  return contents;
}
