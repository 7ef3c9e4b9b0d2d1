// Handles of leases that come from elsewhere: garbage, of other versions, with other types, huge.

import { type Lease, type LeaseClient, LeaseLostError } from "@leasehold/client";
import { Semaphore } from "@leasehold/client/semaphore";
import fc from "fast-check";
import { expect } from "vitest";
import { Bench, isNamed } from "./bench.ts";
import { fuzz } from "./fuzz.ts";
import { hostileText, hostileValue, made, mostly, type Recipe } from "./hostile.ts";

/** What is done to a handle: members are replaced, removed and added. */
interface Change {
  readonly member: string;
  readonly to: Recipe | "removed";
}

const members = [
  "tableName",
  "key",
  "owner",
  "token",
  "version",
  "fencingToken",
  "acquiredAt",
  "expiresAt",
  "leaseDurationMs",
  "cooldownUntil",
  "sortKey",
  "slot",
  "seat",
  "__proto__",
  "unknown",
];
const values = mostly(
  fc.oneof(
    hostileText,
    fc.nat(),
    fc.constant("lease"),
    fc.constant({ kind: "permit", permits: 1, reentrant: false }),
  ),
);
const change: fc.Arbitrary<Change> = fc.record({
  member: fc.constantFrom(...members),
  to: fc.oneof(values, fc.constant("removed" as const)),
});

fuzz(
  "a handle of a lock with any members is refused by name, or stands for a lease that can hurt no holder",
  fc.array(change, { maxLength: 3 }),
  async (changes) => {
    const bench = new Bench();
    const { client } = bench;
    const lease = await client.acquire("k");
    const handle: Record<string, unknown> = JSON.parse(JSON.stringify(lease));
    for (const { member, to } of changes) {
      if (to === "removed") delete handle[member];
      else
        Object.defineProperty(handle, member, {
          value: made(to),
          enumerable: true,
          configurable: true,
          writable: true,
        });
    }
    const isAdopted = await useHandle(bench, handle);
    // The lease itself is still there, unless its own handle has ended it.
    const record = await client.inspect("k");
    const isSame = changes.every(({ member }) => member === "unknown") || handle.token === lease.token;
    if (record === undefined) expect(isSame).toBe(true);
    // A release with a cooldown keeps the lock closed: under the token of the lease that it has ended.
    else expect([lease.token, ...(isSame ? [`closed:${lease.token}`] : [])]).toContain(record.token);
    return isAdopted ? [] : undefined;
  },
  { few: 300, many: 20_000, accepted: { share: 0.1, options: [] } },
);

fuzz(
  "any value in place of a handle is refused by name, before anything is sent",
  fc.oneof(
    hostileValue,
    fc.json().map((value) => ({ value: JSON.parse(value) as unknown })),
  ),
  async (recipe) => {
    const bench = new Bench();
    for (const adopter of [bench.client, new Semaphore(bench.client, "k", { permits: 1 })]) {
      expect(await adopted(adopter, made(recipe))).toBeUndefined();
    }
    expect(bench.store.calls).toEqual([]);
  },
  { few: 200, many: 50_000 },
);

type Adopter = Pick<LeaseClient | Semaphore, "adopt">;

async function adopted(adopter: Adopter, handle: unknown): Promise<Lease | undefined> {
  try {
    return adopter.adopt(handle as never);
  } catch (error) {
    if (!isNamed(error)) throw new Error("not a named error", { cause: error });
    return undefined;
  }
}

/** Renews and releases what a handle stands for; tells whether it stands for a lease. */
async function useHandle({ store, clock, client }: Bench, handle: unknown): Promise<boolean> {
  const sent = store.calls.length;
  const lease = await adopted(client, handle);
  if (lease === undefined) {
    expect(store.calls.length).toBe(sent);
    return false;
  }
  for (const call of [() => lease.renew(), () => lease.release()]) {
    await call().catch((error: unknown) => {
      if (!(error instanceof LeaseLostError) && !isNamed(error))
        throw new Error("not a named error", { cause: error });
    });
  }
  await clock.advance(1);
  return true;
}
