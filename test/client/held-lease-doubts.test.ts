/** One lease's renewals where clocks disagree, where a handle says what it will, and where it ends meanwhile. */
import { beforeEach, describe, expect, it } from "vitest";
import type { UpdateResult } from "../../packages/client/src/base/store.ts";
import type { TimedCall } from "../../packages/client/src/base/timed-call.ts";
import type { HeldLease } from "../../packages/client/src/core/held-lease.ts";
import {
  failureOf,
  itemKey,
  type LeaseByHand,
  leaseByHand,
  leaseDurationMs,
} from "../support/lease-by-hand.ts";

const hourMs = 3_600_000;

let scene: LeaseByHand;
const types = (): string[] => scene.events.map(({ type }) => type);

describe("a store far away", () => {
  beforeEach(async () => {
    scene = await leaseByHand({ isLocal: false });
  });

  /** Lets the service's clock be ahead by so much in each answer; in the last one's way from then on. */
  function tellAhead(...aheadMs: number[]): void {
    let ahead = 0;
    scene.store.time = () => {
      ahead = aheadMs.shift() ?? ahead;
      const earliest = scene.clock.now() + ahead;
      return { earliest, latest: earliest + 1 };
    };
  }

  it("that tells no time leaves others to go by this machine's clock", () => {
    expect(scene.held().believedUntil).toBe(scene.record.expiresAt);
  });

  it("whose first answer shows that the expiry was over has it written again, and only that is confirmed", async () => {
    tellAhead(hourMs);
    const lease = scene.held({}, false);
    await lease.renew();
    expect([scene.store.count("update"), types()]).toEqual([2, ["skew", "renewed"]]);
    expect(lease.expiresAt).toBeGreaterThanOrEqual(scene.clock.now() + hourMs + leaseDurationMs - 1_000);
    expect(lease.remainingMs()).toBeGreaterThan(leaseDurationMs - 100);
  });

  it("whose clock moves on each time lets the renewal fail after two, and ends nothing", async () => {
    tellAhead(hourMs, 2 * hourMs);
    const lease = scene.held({}, false);
    expect(await failureOf(lease.renew())).toMatchObject({
      code: "LEASE_NO_ANSWER",
      message: expect.stringContaining("clocks moved apart"),
    });
    expect([scene.store.count("update"), lease.lost, types()]).toEqual([2, undefined, ["skew"]]);
  });

  it("whose clock moves back each time is good enough after two: the expiry is too late, not too early", async () => {
    tellAhead(-hourMs, -2 * hourMs);
    const lease = scene.held({}, false);
    await lease.renew();
    expect(scene.store.count("update")).toBe(2);
    expect(lease.remainingMs()).toBe(leaseDurationMs);
  });

  it("whose answer shows a wrong expiry and a request to stop is not asked again", async () => {
    tellAhead(-hourMs);
    scene.store.table.updateNow({
      ...{ key: itemKey, update: "SET #revocation = :why" },
      ...{ names: { "#revocation": "revocation" }, values: { ":why": "please" }, returnsItem: false },
      condition: "attribute_not_exists(#revocation)",
    });
    expect(await failureOf(scene.held().renew())).toMatchObject({ reason: "revoked" });
    expect(scene.store.count("update")).toBe(1);
  });
});

describe("a renewal that is confirmed after the deadline", () => {
  it("revives nothing, and is not told", async () => {
    scene = await leaseByHand();
    const lease = scene.held();
    const answer = Promise.withResolvers<void>();
    const update = scene.store.update.bind(scene.store);
    scene.store.update = async (request, call) => {
      await answer.promise;
      return await update(request, call);
    };
    const renewing = failureOf(lease.renew());
    await scene.clock.advance(leaseDurationMs - 5_001);
    lease.over("expired");
    answer.resolve();
    expect(await renewing).toMatchObject({ reason: "expired" });
    expect([lease.remainingMs(), types()]).toEqual([0, ["lost"]]);
  });
});

describe("a seat that came by a handle", () => {
  beforeEach(async () => {
    scene = await leaseByHand({ isShared: true });
  });
  const methods = () => scene.store.calls.map(({ method }) => method);
  const version = () => scene.store.table.peek(itemKey)?.version;

  it("is read once before its first renewal, consistently", async () => {
    const lease = scene.adopted();
    await lease.renew();
    await lease.renew();
    expect(methods()).toEqual(["get", "update", "update"]);
    expect(scene.store.calls[0]).toMatchObject({ consistent: true, readsKey: "k" });
  });

  it("is read within the time of its renewal", async () => {
    const isCurrent: boolean[] = [];
    scene.store.get = async (_, call) => {
      for (const ms of [leaseDurationMs / 2, 1]) {
        scene.clock.freeze(ms);
        isCurrent.push(call.isCurrent());
      }
      return undefined;
    };
    await failureOf(scene.adopted().renew());
    expect(isCurrent).toEqual([true, false]);
  });

  it.each([
    ["the table's", { version: -4 }, 2],
    ["its handle's", { version: 7 }, 8],
  ])("goes on from %s version, the later one", async (_, older, next) => {
    await scene.adopted({ record: { ...scene.record, ...older } }).renew();
    expect(version()).toBe(next);
  });

  it("is read before it is released, too", async () => {
    expect(await scene.adopted().release(false)).toMatchObject({ wasOurs: true });
    expect(methods()).toEqual(["get", "update"]);
  });

  it("is lost where it is not there, as the refused write tells", async () => {
    const lease = scene.adopted({ record: { ...scene.record, token: "gone" } });
    expect(await failureOf(lease.renew())).toMatchObject({ reason: "taken" });
    expect(methods()).toEqual(["get", "update"]);
  });

  it("is not read where this process has acquired it", async () => {
    await scene.held().renew();
    expect(methods()).toEqual(["update"]);
  });
});

describe("a release beside a renewal", () => {
  let lease: HeldLease;
  let answer: PromiseWithResolvers<UpdateResult>;
  let call: TimedCall | undefined;
  beforeEach(async () => {
    scene = await leaseByHand();
    lease = scene.held();
    answer = Promise.withResolvers();
    void failureOf(
      lease.renew((_, given) => {
        call = given;
        return answer.promise;
      }),
    );
  });

  it("is sent when the renewal has been answered", async () => {
    const releasing = lease.release(false);
    await scene.clock.advance(999);
    expect([scene.store.calls, call?.signal.aborted]).toEqual([[], false]);
    answer.resolve({ applied: true, item: scene.store.table.peek(itemKey), retried: false });
    expect(await releasing).toMatchObject({ wasOurs: true });
  });

  it("cuts it off after a second, and waits until it has ended", async () => {
    const releasing = lease.release(false);
    await scene.clock.advance(1_000);
    expect(call?.signal.reason).toMatchObject({ code: "LEASE_NO_ANSWER" });
    expect(scene.store.calls).toEqual([]);
    answer.reject(call?.signal.reason);
    expect(await releasing).toMatchObject({ wasOurs: true });
  });

  it("ends it for its holder at once, although the renewal has not been answered", async () => {
    const { signal } = lease;
    const releasing = lease.release(false);
    expect([signal.aborted, lease.remainingMs()]).toEqual([true, 0]);
    answer.resolve({ applied: true, item: scene.store.table.peek(itemKey), retried: false });
    await releasing;
    expect(types()).toEqual(["released"]);
  });
});
