/** Holds the model's table of writes against the code: the real write, in the same state, on the store in memory. */
import { MemoryLeaseStore } from "@leasehold/client/testing";
import type { Item as StoredItem } from "../../packages/client/src/base/store.ts";
import { putItem } from "../support/recomposed.ts";
import { absent, type Item, type Sent, tickMs, type WriteName, writes } from "./writes.ts";

const key = { pk: "k", sk: "lease" };

/**
 * Tells where the real write differs from the model's: in whether it is accepted, or in what it makes of the item;
 * undefined where they agree.
 */
export function differenceOf(
  name: WriteName,
  item: Item | undefined,
  sent: Sent,
  after: Item | undefined,
): string | undefined {
  const store = new MemoryLeaseStore();
  if (item !== undefined) putItem(store, stored(item));
  const { applied } = store.updateNow(writes[name].write(sent).request());
  if (applied !== (after !== undefined))
    return `${name} is ${applied ? "accepted" : "refused"} by the real condition, and not in the model`;
  const found = abstracted(store.peek(key));
  const expected = after ?? item;
  if (JSON.stringify(found) === JSON.stringify(expected)) return undefined;
  return `${name} gives ${JSON.stringify(found)}, and in the model ${JSON.stringify(expected)}`;
}

/** The item as it is in a table: what the model leaves out follows from the token. */
function stored({ token, version, expiresAt, fence, released, ttl }: Item): StoredItem {
  const attributes = {
    ...{ token, version, fence, ttl, releasedToken: released },
    ...(expiresAt !== undefined && { expiresAt: expiresAt * tickMs, leaseDurationMs: tickMs, acquiredAt: 1 }),
    ...(token !== undefined && { owner: `owner of ${token}` }),
  };
  const given = Object.entries(attributes).filter(([, value]) => value !== undefined);
  return { ...key, ...(Object.fromEntries(given) as StoredItem) };
}

function abstracted(item: StoredItem | undefined): Item | undefined {
  if (item === undefined) return undefined;
  const { token, version, expiresAt, fence, releasedToken: released, ttl } = item;
  return {
    ...absent,
    ...({ token, version, fence, released, ttl } as Partial<Item>),
    expiresAt: expiresAt === undefined ? undefined : Number(expiresAt) / tickMs,
  };
}
