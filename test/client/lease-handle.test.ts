/** What a lease's handle says, and what another process knows by it. */
import { LeaseClient, type LeaseHandle } from "@leasehold/client";
import { limits } from "@leasehold/client/schema";
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

  it("says the slot of its lease and when the cooldown ends, also after it was adopted", async () => {
    const lease = await client.acquire("k", { slot: "7", lockAtLeastForMs: 5_000 });
    const handle = lease.toJSON();
    expect(handle).toMatchObject({ slot: "7", cooldownUntil: lease.acquiredAt + 5_000 });
    expect(client.adopt(handle).toJSON()).toMatchObject({ slot: "7", cooldownUntil: handle.cooldownUntil });
  });

  it("may have a cooldown for as long as a lease may last, and no longer", async () => {
    const handle = (await client.acquire("k")).toJSON();
    const latest = handle.acquiredAt + limits.durationMs;
    expect(client.adopt({ ...handle, cooldownUntil: latest }).key).toBe("k");
    expect(() => client.adopt({ ...handle, cooldownUntil: latest + 1 })).toThrow(
      `handle.cooldownUntil is ${latest + 1}; allowed: at most ${latest}`,
    );
  });

  it("says the version of the last renewal, so that who adopts it renews it with 1 request", async () => {
    const lease = await client.acquire("k");
    for (let count = 0; count < 3; count += 1) await lease.renew();
    const adopted = client.adopt(lease.toJSON());
    store.calls.length = 0;
    await adopted.renew();
    expect(store.calls).toHaveLength(1);
  });

  it("promises no more than its holder believes, by the earliest time that the service may have", async () => {
    store.isLocal = false;
    store.time = () => ({ earliest: clock.now() - 700, latest: clock.now() + 300 });
    const lease = await new LeaseClient({ store, clock, leaseDurationMs: 10_000 }).acquire("k");
    await lease.renew();
    const { expiresAt } = lease.toJSON();
    expect(expiresAt).toBeLessThan(lease.expiresAt);
    expect(expiresAt).toBeGreaterThan(clock.now());
  });

  it.each([
    ["its payload", { page: 1 }, { data: { page: 1 } }],
    ["no payload where it has none", undefined, {}],
  ])("of a permit says what it takes, and %s", async (_, data, said) => {
    const semaphore = new Semaphore(client, "k", { permits: 3 });
    const permit = await semaphore.acquire({ permits: 2, data });
    const handle = permit.toJSON();
    expect(handle.sortKey).toBe("semaphore");
    expect(handle.seat).toStrictEqual({ kind: "permit", permits: 2, reentrant: false, ...said });
    expect(semaphore.adopt(handle).data).toEqual(data);
  });
});

describe("a handle of another version", () => {
  it("is adopted without the members that are not known here, of a permit's seat as well", async () => {
    const lease = await client.acquire("k", { slot: "7" });
    const adopted = client.adopt({
      ...lease.toJSON(),
      region: "eu-central-1",
      renewedBy: { pid: 7 },
    } as LeaseHandle);
    await adopted.renew();
    expect(adopted).toMatchObject({ token: lease.token, slot: "7", held: true });
    expect(adopted.toJSON()).not.toHaveProperty("region");

    const semaphore = new Semaphore(client, "s", { permits: 3 });
    const permit = await semaphore.acquire({ permits: 2 });
    const { seat, ...handle } = permit.toJSON();
    const other = semaphore.adopt({ ...handle, seat: { ...seat, row: 4 } } as LeaseHandle);
    await other.renew();
    expect(await other.release()).toBe(true);
  });

  it("of the same format says so or not", async () => {
    const handle = (await client.acquire("k")).toJSON();
    expect(handle).not.toHaveProperty("format");
    expect(client.adopt({ ...handle, format: 1 }).key).toBe("k");
  });

  it.each([0, 2, "1", null])("of the format %j is refused by name, whatever else it says", async (format) => {
    const { key, tableName } = (await client.acquire("k")).toJSON();
    const handle = { key, tableName, format } as unknown as LeaseHandle;
    expect(() => client.adopt(handle)).toThrow(
      expect.objectContaining({
        code: "LEASE_INVALID_OPTIONS",
        option: "handle.format",
        allowed: "1",
      }),
    );
  });
});
