/** What a lease's handle says, and what another process knows by it. */
import { LeaseClient } from "@leasehold/client";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ScriptedStore } from "../support/scripted-store.ts";

let store: ScriptedStore;
let clock: ManualClock;
let client: LeaseClient;

beforeEach(() => {
  store = new ScriptedStore();
  clock = new ManualClock();
  client = new LeaseClient({ store, clock, owner: "me", leaseDurationMs: 10_000 });
});

describe("a handle", () => {
  it("of a plain lease says what every lease has, and nothing else", async () => {
    const lease = await client.acquire("k", { data: { page: 1 } });
    const { token, fencingToken, acquiredAt, expiresAt } = lease;
    expect(lease.toJSON()).toStrictEqual({
      ...{ tableName: store.tableName, key: "k", owner: "me", token, version: 1 },
      ...{ fencingToken, acquiredAt, expiresAt, leaseDurationMs: 10_000 },
    });
  });

  it("says the slot of its lease and when the cooldown ends", async () => {
    const lease = await client.acquire("k", { slot: "7", lockAtLeastForMs: 5_000 });
    expect(lease.toJSON()).toMatchObject({ slot: "7", cooldownUntil: lease.acquiredAt + 5_000 });
  });

  it("says the version of the last renewal, so that who adopts it renews it with 1 request", async () => {
    const lease = await client.acquire("k");
    for (let count = 0; count < 3; count += 1) await lease.renew();
    const adopted = client.adopt(lease.toJSON());
    store.calls.length = 0;
    await adopted.renew();
    expect(store.calls).toHaveLength(1);
  });

  it.each([
    ["its payload", { page: 1 }, { data: { page: 1 } }],
    ["no payload where it has none", undefined, {}],
  ])("of a permit says what it takes, and %s", async (_, data, said) => {
    const permit = await new Semaphore(client, "k", { permits: 3 }).acquire({ permits: 2, data });
    const handle = permit.toJSON();
    expect(handle.sortKey).toBe("semaphore");
    expect(handle.seat).toStrictEqual({ kind: "permit", permits: 2, reentrant: false, ...said });
    expect(client.adopt(handle).data).toEqual(data);
  });
});
