import { getEventListeners } from "node:events";
import { LeaseClient, LeaseLostError } from "@leasehold/client";
import { acquireAll, type LeaseGroup } from "@leasehold/client/group";
import { coreOf } from "@leasehold/client/internal";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import type { HeldLease } from "../../packages/client/src/core/held-lease.ts";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let clock: ManualClock;
let store: ScriptedStore;
let client: LeaseClient;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  client = new LeaseClient({ store, clock, owner: "o", leaseDurationMs: 10_000 });
});

describe("a group with a lock that its owner had before", () => {
  const again = { owner: "o", reentrant: true };
  const orders = [{ keys: ["had", "won"] }, { keys: ["won", "had"] }];

  it.each(orders)(
    "as $keys ends and is fenced with the older lease, and has the token of the newer",
    async ({ keys }) => {
      const had = await client.acquire("had", again);
      await clock.advance(1_000);
      const group = await acquireAll(client, keys, again);
      const won = group.leases.get("won");
      expect(won?.fencingToken).toBeGreaterThan(had.fencingToken);
      expect(group).toMatchObject({
        token: won?.token,
        fencingToken: had.fencingToken,
        expiresAt: had.expiresAt,
      });
      expect(group.remainingMs()).toBe(9_000);
    },
  );

  it("leaves no listener on that lock when it is released, however often", async () => {
    const had = await client.acquire("had", again);
    const [lease] = coreOf(client).lifecycle.held as readonly [HeldLease];
    for (let count = 0; count < 3; count += 1) {
      const group = await acquireAll(client, ["had", "won"], again);
      await group.release();
      expect(group.signal.aborted).toBe(true);
    }
    // That of the handle that is still there.
    expect(getEventListeners(lease.signal, "abort")).toHaveLength(1);
    expect(had.held).toBe(true);
  });

  it("that was released renews it no more, and its signal has aborted, though the owner holds the lock", async () => {
    const had = await client.acquire("had", again);
    const group = await acquireAll(client, ["had"], again);
    await group.release();
    expect(group.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "released" });
    const requests = store.calls.length;
    await expect(group.renew()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "released" });
    expect([had.held, store.calls.length]).toEqual([true, requests]);
  });

  it("renews nothing that was lost, and says how it was lost", async () => {
    const group = await acquireAll(client, ["had", "won"], again);
    await clock.advance(10_000);
    await expect(group.renew()).rejects.toMatchObject({ key: "had", reason: "expired" });
  });
});

it("the entries for a transaction of one's own are those of its leases, in their order", async () => {
  const group = await acquireAll(client, ["b", "a"]);
  for (const options of [undefined, { format: "attributeValue" }] as const) {
    const entries = group.conditionChecks(options);
    expect(entries).toEqual(["b", "a"].map((key) => group.leases.get(key)?.conditionCheck(options)));
    expect(entries).toHaveLength(2);
  }
});

it("renewals that cannot travel together wait behind those of leases that end sooner", async () => {
  const { gate } = coreOf(client);
  const group = await acquireAll(client, ["a", "b"]);
  // As many requests are under way as may be.
  const answered = Promise.withResolvers<void>();
  const others = Array.from({ length: 48 }, () => gate.renew(0, undefined, () => answered.promise));
  store.next("rejected");
  const renewed = group.renew();
  await settled();
  expect(store.count("updateMany")).toBe(1);
  let sentBefore = -1;
  const sooner = gate.renew(clock.monotonic() + 9_999, undefined, async () => {
    sentBefore = store.count("update");
  });
  answered.resolve();
  await Promise.all([renewed, sooner, ...others]);
  expect(sentBefore).toBe(0);
  expect(store.count("update")).toBe(2);
});

describe("of several failures, a mistake in the program comes first", () => {
  const mistake = new TypeError("no such thing");
  let group: LeaseGroup;

  beforeEach(async () => {
    group = await acquireAll(client, ["a", "b", "c"]);
    await clock.advance(10);
  });

  it("of a renewal, before a loss", async () => {
    await adminOf(client).forceRelease("a", { token: group.token });
    store.next("rejected");
    const update = store.update.bind(store);
    store.update = async (request, call) => {
      if (request.key.pk === "c") throw mistake;
      return await update(request, call);
    };
    await expect(group.renew()).rejects.toBe(mistake);
    expect(group.signal.reason).toBeInstanceOf(LeaseLostError);
  });

  it("of a release, before a failure of the service", async () => {
    store.next("throttled");
    const update = store.update.bind(store);
    store.update = async (request, call) => {
      if (request.key.pk === "c") throw mistake;
      return await update(request, call);
    };
    await expect(group.release()).rejects.toBe(mistake);
  });
});
