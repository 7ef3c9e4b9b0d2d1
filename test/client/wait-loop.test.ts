/** One caller's wait for one lease: when it tries, when it only looks, and when it gives up. */
import { LeaseClient, type LeaseRecord, LeaseServiceError, LeaseUnavailableError } from "@leasehold/client";
import { coreOf } from "@leasehold/client/internal";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Granted, Refused } from "../../packages/client/src/core/attempt.ts";
import type { Core } from "../../packages/client/src/core/core.ts";
import type { Availability } from "../../packages/client/src/core/form.ts";
import { LockForm } from "../../packages/client/src/core/lock-form.ts";
import { RetryLoop, unordered, WaitBudget } from "../../packages/client/src/core/wait-loop.ts";
import { failureOf } from "../support/lease-by-hand.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const form = new LockForm("k", "lease");
const retry = { strategy: "fixed", delayMs: 1_000 } as const;

let clock: ManualClock;
let store: ScriptedStore;
let core: Core;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  core = coreOf(new LeaseClient({ store, clock }));
});

const record = {
  ...{ owner: "other", token: "t", version: 1, fencingToken: 1, acquiredAt: 0, expiresAt: 0 },
  ...{ inCooldown: false, reentrant: false },
} as LeaseRecord;
const blockedFor = (claimableInMs: number, more: Partial<Availability> = {}): Availability => ({
  ...{ blocker: record, claimableInMs, takeovers: [], ...more },
});
const refused = (availability: Availability): Refused => ({ granted: false, availability, item: undefined });
const granted = { granted: true } as Granted;

/** An attempt whose tries and looks end as the test says, the last one again and again; notes when they were made. */
function scripted(
  tries: readonly (Refused | Granted | Error)[],
  looks: readonly (Availability | Error)[] = [],
) {
  const [tried, looked] = [[] as number[], [] as number[]];
  const known: (Availability | undefined)[] = [];
  const withinMs: number[] = [];
  const next = <T>(all: readonly (T | Error)[], count: number): T => {
    const one = all[Math.min(count, all.length) - 1];
    if (one === undefined || one instanceof Error) throw one ?? new Error("nothing is left to happen");
    return one;
  };
  const attempt = {
    token: "mine",
    async try(bounds: { readonly withinMs: number }, shown?: Availability) {
      withinMs.push(bounds.withinMs);
      known.push(shown);
      return next(tries, tried.push(clock.monotonic()));
    },
    judge: () => next(looks, looked.push(clock.monotonic())),
  };
  return { attempt, tried, looked, known, withinMs };
}

function waitFor(
  script: ReturnType<typeof scripted>,
  { waitMs = 60_000, signal = undefined as AbortSignal | undefined } = {},
) {
  const contended: unknown[] = [];
  const call = { key: "k", sortKey: "lease", owner: "me", reentrant: false, waitMs, retry, signal };
  const loop = unordered.begin(core, form, call as never);
  expect(loop).toBeInstanceOf(RetryLoop);
  const outcome = loop.grant(script.attempt as never, (holder) => contended.push(holder));
  return { outcome, contended };
}

describe("the time of a wait", () => {
  it("is left for one more call, which has a second at least", () => {
    const budget = new WaitBudget(clock, 5_000);
    expect([budget.leftMs, budget.callMs]).toEqual([5_000, 5_000]);
    clock.freeze(4_500);
    expect([budget.leftMs, budget.callMs]).toEqual([500, 1_000]);
    clock.freeze(4_500);
    expect([budget.leftMs, budget.callMs]).toEqual([-4_000, 1_000]);
  });

  it("bounds a try, but not that of a caller who does not wait at all", async () => {
    const [patient, hasty] = [scripted([granted]), scripted([granted])];
    await Promise.all([waitFor(patient, { waitMs: 5_000 }).outcome, waitFor(hasty, { waitMs: 0 }).outcome]);
    expect([patient.withinMs, hasty.withinMs]).toEqual([[5_000], [Number.POSITIVE_INFINITY]]);
  });

  it("bounds a look, which takes 10 s at most and ends with its caller's signal", async () => {
    const get = vi.spyOn(core, "get");
    const pass = vi.spyOn(core.gate, "pass");
    const { signal } = new AbortController();
    const script = scripted([refused(blockedFor(50_000))], [blockedFor(50_000)]);
    void failureOf(waitFor(script, { waitMs: 12_000, signal }).outcome);
    await clock.advance(11_500);
    expect(get.mock.calls.map(([, budget]) => budget?.withinMs)).toEqual([
      ...[10_000, 10_000, 9_000, 8_000, 7_000, 6_000, 5_000, 4_000, 3_000, 2_000, 1_000],
    ]);
    expect(get.mock.calls[0]?.[1]?.signal).toBe(signal);
    expect(pass.mock.calls[0]?.[0]).toEqual({ signal, withinMs: 10_000 });
    expect(get.mock.calls[0]?.[0]).toMatchObject({ consistent: false });
  });
});

describe("a caller that waits", () => {
  it("only looks while it is kept out, and tries with what a look has shown once there is room", async () => {
    const room = blockedFor(0, { blocker: undefined });
    const script = scripted([refused(blockedFor(50_000)), granted], [blockedFor(50_000), room]);
    const { outcome, contended } = waitFor(script);
    await clock.advance(5_000);
    expect(await outcome).toBe(granted);
    expect([script.tried, script.looked]).toEqual([
      [0, 2_000],
      [1_000, 2_000],
    ]);
    expect(script.known).toMatchObject([undefined, { blocker: undefined, blockers: [] }]);
    expect(contended).toEqual([record]);
  });

  it("tells nobody of a holder where none is in the way", async () => {
    const script = scripted([refused(blockedFor(500, { blocker: undefined })), granted]);
    const { outcome, contended } = waitFor(script);
    await clock.advance(1_000);
    expect([await outcome, contended]).toEqual([granted, []]);
  });

  it("tries without a look when the holder's time is up, and knows nothing then", async () => {
    const script = scripted([refused(blockedFor(1_000)), granted]);
    const { outcome } = waitFor(script);
    await clock.advance(1_000);
    expect(await outcome).toBe(granted);
    expect([script.tried, script.looked, script.known[1]]).toEqual([[0, 1_000], [], undefined]);
  });

  it("looks again where a look fails for a while", async () => {
    const lost = new LeaseServiceError("LEASE_THROTTLED", "no");
    const script = scripted([refused(blockedFor(50_000)), granted], [lost, blockedFor(0)]);
    const { outcome } = waitFor(script);
    await clock.advance(3_000);
    expect(await outcome).toBe(granted);
    expect(script.looked).toEqual([1_000, 2_000]);
  });

  it("tries for its own lease where a look shows that an earlier write of it has landed", async () => {
    const own = blockedFor(50_000, {
      ...{ blocker: { ...record, token: "mine" }, takeovers: [{ reason: "observation", from: record }] },
    });
    const script = scripted([refused(blockedFor(50_000)), granted], [own]);
    const { outcome } = waitFor(script);
    await clock.advance(1_000);
    expect(await outcome).toBe(granted);
    expect(script.known[1]).toMatchObject({ ...own, claimableInMs: 0, takeovers: [] });
  });

  it("learns from what tries and looks show how long holders keep the lease", async () => {
    const begun = clock.now();
    const script = scripted(
      [refused(blockedFor(600_000, { blocker: { ...record, acquiredAt: begun - 60_000 } }))],
      [blockedFor(600_000, { blocker: { ...record, fencingToken: 2, acquiredAt: begun } })],
    );
    const randomness = { token: () => "mine", fraction: () => 0 };
    const loop = new RetryLoop(coreOf(new LeaseClient({ store, clock, randomness })), form, {
      ...{ key: "k", sortKey: "lease", owner: "me", reentrant: false, waitMs: 600_000, signal: undefined },
      retry: { strategy: "untilExpiry" },
    });
    void failureOf(loop.grant(script.attempt, () => undefined));
    await clock.advance(70_000);
    // Holds last for a minute: after the first look the next one comes twice the spread before its end.
    expect(script.looked).toEqual([125, 52_500]);
  });

  it("gives up when its time is over, and says when to try again", async () => {
    const script = scripted([refused(blockedFor(50_000))], [blockedFor(47_500)]);
    const outcome = failureOf(waitFor(script, { waitMs: 2_500 }).outcome);
    await clock.advance(2_500);
    const error = await outcome;
    expect(error).toBeInstanceOf(LeaseUnavailableError);
    expect(error).toMatchObject({ retryAfterMs: 47_500, holder: "other" });
    expect(script.tried).toEqual([0]);
  });

  it("never says to try again before now", async () => {
    const script = scripted([refused(blockedFor(-5_000))]);
    expect(await failureOf(waitFor(script, { waitMs: 0 }).outcome)).toMatchObject({ retryAfterMs: 0 });
  });
});

describe("a try that fails", () => {
  const lost = new LeaseServiceError("LEASE_NO_ANSWER", "no");

  it("is repeated after a pause, knowing nothing, while there is time", async () => {
    const room = blockedFor(0, { blocker: undefined });
    const script = scripted([refused(blockedFor(50_000)), lost, granted], [room]);
    const { outcome } = waitFor(script);
    await clock.advance(3_000);
    expect(await outcome).toBe(granted);
    expect([script.tried, script.known.map((shown) => shown !== undefined)]).toEqual([
      [0, 1_000, 2_000],
      [false, true, false],
    ]);
  });

  it.each([
    ["the service's error, where its time is over", lost],
    ["a mistake in the program at once", new TypeError("no such thing")],
  ])("ends the wait with %s", async (_, error) => {
    expect(await failureOf(waitFor(scripted([error]), { waitMs: 0 }).outcome)).toBe(error);
  });

  it("ends the wait with the signal's reason where that has aborted meanwhile", async () => {
    const caller = new AbortController();
    const reason = new Error("enough");
    const script = scripted([lost]);
    const outcome = failureOf(waitFor(script, { signal: caller.signal }).outcome);
    caller.abort(reason);
    expect(await outcome).toBe(reason);
  });
});
