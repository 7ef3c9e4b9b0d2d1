/** What becomes of a lease that was won, or that another process has handed over: how often it is renewed, and who holds it. */
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { ClientClosedError, LeaseClient } from "@leasehold/client";
import { internalsOf } from "@leasehold/client/internal";
import { Semaphore } from "@leasehold/client/semaphore";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { Acquirer } from "../../packages/client/src/protocol/acquirer.ts";
import { systemRandomness } from "../../packages/client/src/protocol/context.ts";
import type { HeldLeaseTerms } from "../../packages/client/src/protocol/held-lease.ts";
import { leaseOf, refusalOf } from "../../packages/client/src/protocol/lease-form.ts";
import { LockForm } from "../../packages/client/src/protocol/lock-form.ts";
import { HeldSeat } from "../../packages/client/src/seats/held-seat.ts";
import { textPrefix } from "../../packages/client/src/seats/seat.ts";
import { type LeaseByHand, leaseByHand, leaseDurationMs } from "../support/lease-by-hand.ts";

let scene: LeaseByHand;
let acquirer: Acquirer;

beforeEach(async () => {
  scene = await leaseByHand();
  acquirer = new Acquirer({ ...scene.context, randomness: { token: () => "t", fraction: () => 0 } });
});

/** When a lease with a heartbeat was renewed, in twice its duration. */
async function renewals(heartbeatMs: number | undefined): Promise<number[]> {
  const times: number[] = [];
  const update = scene.store.update.bind(scene.store);
  scene.store.update = (request, call) => {
    times.push(scene.clock.monotonic());
    return update(request, call);
  };
  acquirer.keepAlive(scene.held(), heartbeatMs);
  await scene.clock.advance(leaseDurationMs);
  return times;
}

describe("a lease is renewed", () => {
  it.each([
    ["at its interval where that is less than half of the lease", 4_999, [4_999, 9_998]],
    ["every third of the lease where its interval is half of it", 5_000, [3_334, 6_668]],
    ["every third of the lease where its interval is longer", 60_000, [3_334, 6_668]],
    ["never where it has no interval", undefined, []],
  ])("%s", async (_, heartbeatMs, times) => {
    expect((await renewals(heartbeatMs)).slice(0, 2)).toEqual(times);
  });

  it("never where it has ended before", async () => {
    const lease = scene.held();
    lease.deadline.end("taken");
    const pending = scene.clock.pending;
    expect(acquirer.keepAlive(lease, 1_000)).toBe(lease);
    expect(scene.clock.pending).toBe(pending);
  });
});

describe("a lease of another process", () => {
  const adopt = (leftMs: number, heartbeatMs?: number, more: Partial<HeldLeaseTerms> = {}) => {
    const record = { ...scene.record, expiresAt: scene.clock.now() + leftMs };
    const terms = { record, leaseDurationMs, cooldownUntil: undefined, slot: undefined };
    return acquirer.adopt({ ...terms, ...more }, heartbeatMs);
  };
  const { held } = { held: () => scene.context.lifecycle.held };

  it("is believed in for the allowance less than the table shows, and for no more than a lease", () => {
    expect(scene.context.clockSkewMs).toBe(1_000);
    expect(adopt(6_000).deadline.remainingMs()).toBe(5_000);
    expect(adopt(6_000, undefined, { leaseDurationMs: 2_000 }).deadline.remainingMs()).toBe(2_000);
  });

  it.each([
    ["is held where it is believed in", 6_000, undefined, true],
    ["is held where it is to be renewed", 1_000, 3_000, true],
    ["is not held where nothing confirms it, for nothing would end it here", 1_000, undefined, false],
  ])("%s", (_, leftMs, heartbeatMs, isHeld) => {
    const lease = adopt(leftMs, heartbeatMs);
    expect(held()).toEqual(isHeld ? [lease] : []);
    expect(lease.deadline.lost).toBeUndefined();
  });

  it("is not adopted by a client that is closed", async () => {
    await scene.context.lifecycle.close(1_000);
    expect(() => adopt(6_000)).toThrow(ClientClosedError);
  });
});

it("a lease that is shared while its client closes is not given out", async () => {
  const client = new LeaseClient({ store: scene.store, clock: scene.clock, leaseDurationMs });
  const { lifecycle } = internalsOf(client).context;
  const again = { owner: "me", reentrant: true } as const;
  const first = await client.acquire("other", again);
  const shared = client.acquire("other", again);
  const closing = lifecycle.close(1_000);
  await expect(shared).rejects.toBeInstanceOf(ClientClosedError);
  await closing;
  expect(first.held).toBe(false);
});

it("tokens are drawn uncached: two clones of one snapshot would draw the same ones", () => {
  const draw = vi.spyOn(crypto, "randomUUID");
  syncBuiltinESMExports();
  try {
    expect(systemRandomness.token()).toMatch(/^[0-9a-f]{8}-/);
    expect(draw).toHaveBeenCalledWith({ disableEntropyCache: true });
  } finally {
    draw.mockRestore();
    syncBuiltinESMExports();
  }
  expect(systemRandomness.fraction()).toBeGreaterThanOrEqual(0);
  expect(systemRandomness.fraction()).toBeLessThan(1);
});

it("a seat is read in an item in which another's cannot be read", async () => {
  const client = new LeaseClient({ store: scene.store, clock: scene.clock, leaseDurationMs });
  const { token } = await new Semaphore(client, "s", { permits: 2 }).acquire();
  const item = { ...scene.store.table.peek({ pk: "s", sk: "semaphore" }), [`${textPrefix}other`]: "spoilt" };
  const form = new HeldSeat("s", "semaphore");
  expect(leaseOf(form, item, token)).toMatchObject({ token });
  expect(() => form.leasesIn(item)).toThrow();
});

it("a refusal names the lock where its form has no other word for it", () => {
  const call = { owner: "me", reentrant: false, waitMs: 0 };
  const { message } = refusalOf(new LockForm("k", "lease"), call, scene.record, 5);
  expect(message).toContain('the lock "k" is');
});
