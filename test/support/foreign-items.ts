import type { Item, LeaseStore } from "@leasehold/client";
import { attributeNames, leaseItemKey } from "@leasehold/client/schema";
import type { MemoryLeaseStore } from "@leasehold/client/testing";
import fc from "fast-check";
import { everyItem } from "../../packages/client/src/statements/queries.ts";

/** What the table has in place of a value that is neither a string nor a number. */
export const neither = Number.NaN;

/** The attributes of a lease that another client holds. */
export const heldLease: Item = {
  [attributeNames.token]: "token-of-another",
  [attributeNames.version]: 1,
  [attributeNames.fence]: 1_767_225_600_001,
  [attributeNames.owner]: "another",
  [attributeNames.acquiredAt]: 1_767_225_600_000,
  [attributeNames.expiresAt]: 1_767_225_610_000,
  [attributeNames.leaseDurationMs]: 10_000,
  [attributeNames.timeToLive]: 1_767_830_410,
};

/** All that is in a table; in another process's store it has to fit into one page. */
export async function itemsOf(store: LeaseStore): Promise<readonly Item[]> {
  const call = { signal: new AbortController().signal, isCurrent: () => true };
  return (await store.scan(everyItem(), call)).items;
}

/** Puts an item into a table as another program would: with whatever attributes, in place of what was there. */
export function put(table: MemoryLeaseStore, key: string, sortKey: string, attributes: Item): void {
  const itemKey = leaseItemKey(key, sortKey);
  const old = Object.keys(table.peek(itemKey) ?? {}).filter((name) => !(name in itemKey));
  const names = Object.keys(attributes);
  const set = names.map((_, index) => `#n${index} = :v${index}`).join(", ");
  const gone = old.filter((name) => !names.includes(name));
  const remove = gone.map((_, index) => `#g${index}`).join(", ");
  table.updateNow({
    key: itemKey,
    update: [set && `SET ${set}`, remove && `REMOVE ${remove}`].filter(Boolean).join(" "),
    condition: "attribute_not_exists(#never)",
    names: {
      "#never": "never",
      ...Object.fromEntries(names.map((name, index) => [`#n${index}`, name])),
      ...Object.fromEntries(gone.map((name, index) => [`#g${index}`, name])),
    },
    values: Object.fromEntries(names.map((name, index) => [`:v${index}`, attributes[name] ?? neither])),
    returnsItem: false,
  });
}

/** Any value that an attribute can have. */
export const anyValue: fc.Arbitrary<string | number> = fc.oneof(
  fc.string(),
  fc.json(),
  fc.constantFrom("", "{", "closed:x", "[".repeat(50_000), "2026-01-01T00:00:00.000Z", "\ud800"),
  fc.integer(),
  fc.double(),
  fc.constantFrom(neither, -1, 0.5, 2 ** 53, 1e125, 8_640_000_000_000_001, Number.MAX_SAFE_INTEGER),
);

/** A held lease, or nothing, some of whose attributes, and of the others that are given, have any value. */
export function anyItem(others: readonly string[]): fc.Arbitrary<Item> {
  const names = [...new Set([...Object.values(attributeNames), ...others])].filter(
    (name) => name !== attributeNames.partitionKey && name !== attributeNames.sortKey,
  );
  return fc
    .tuple(
      fc.boolean(),
      fc.subarray(names),
      fc.dictionary(fc.constantFrom(...names), anyValue, { maxKeys: names.length }),
    )
    .map(([isHeld, without, odd]) => {
      const item: Record<string, string | number> = { ...(isHeld ? heldLease : {}) };
      if (without.length < 3) for (const name of without) delete item[name];
      return { ...item, ...odd };
    });
}
