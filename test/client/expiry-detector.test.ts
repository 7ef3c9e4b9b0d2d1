/** When a record that does not change, or that the service's clock has passed, may be taken over: to the millisecond. */
import type { LeaseRecord } from "@leasehold/client";
import { beforeEach, describe, expect, it } from "vitest";
import { ServiceClock } from "../../packages/client/src/base/service-clock.ts";
import { ExpiryDetector } from "../../packages/client/src/core/expiry-detector.ts";

const hourMs = 60 * 60 * 1_000;
const told = 1_800_000_000_000;

let now: number;
let clock: ServiceClock;

/** A lease of 1,000 ms, which a watcher has to see for 1,002.5 ms. */
const record = (more: Partial<LeaseRecord> = {}): LeaseRecord => ({
  ...{ key: "k", sortKey: "lease", owner: "other", token: "t", version: 1, fencingToken: 1 },
  ...{ acquiredAt: told, expiresAt: told + 1_000, leaseDurationMs: 1_000 },
  ...{ inCooldown: false, reentrant: false, data: undefined, revocation: undefined },
  ...more,
});

beforeEach(() => {
  now = 0;
  const own = { monotonic: () => now, now: () => told + now, schedule: () => () => undefined };
  clock = new ServiceClock(own, false, () => undefined);
});

describe("a watcher", () => {
  let detector: ExpiryDetector;
  beforeEach(() => {
    detector = new ExpiryDetector(clock, Number.POSITIVE_INFINITY);
  });
  const judgeAt = (at: number, more?: Partial<LeaseRecord>) => {
    now = at;
    return detector.judge(record(more));
  };

  it("has to see a record unchanged for a whole lease and a four-hundredth", () => {
    expect(judgeAt(0)).toEqual({ reason: undefined, claimableInMs: 1_002.5 });
    expect(judgeAt(1_002)).toEqual({ reason: undefined, claimableInMs: 0.5 });
    expect(judgeAt(1_002.5)).toEqual({ reason: "observation", claimableInMs: 0 });
  });

  it("has to see a long lease for as long as that lasts", () => {
    const leaseDurationMs = hourMs;
    expect(judgeAt(0, { leaseDurationMs })).toEqual({ reason: undefined, claimableInMs: 1.0025 * hourMs });
    expect(judgeAt(1.002 * hourMs, { leaseDurationMs }).reason).toBeUndefined();
    expect(judgeAt(1.0025 * hourMs, { leaseDurationMs }).reason).toBe("observation");
  });

  it.each([
    ["another version", { version: 2 }],
    ["another token", { token: "u" }],
    ["another key", { key: "l" }],
    ["another sort key", { sortKey: "run#1" }],
  ])("begins anew with %s", (_, more) => {
    judgeAt(0);
    expect(judgeAt(2_000, more)).toEqual({ reason: undefined, claimableInMs: 1_002.5 });
  });

  it("sees each lease of an item for itself, from its first answer on", () => {
    const [old, young] = [record({ token: "old" }), record({ token: "young" })];
    detector.judgeAll([old]);
    now = 500;
    detector.judgeAll([old, young]);
    now = 1_100;
    const found = detector.judgeAll([old, young]);
    expect(found.get(old)).toEqual({ reason: "observation", claimableInMs: 0 });
    expect(found.get(young)).toEqual({ reason: undefined, claimableInMs: 402.5 });
    expect(detector.judgeAll([])).toEqual(new Map());
  });

  it.each([
    ["remembers a record for two hours", 2 * hourMs, "observation"],
    ["forgets a record after two hours", 2 * hourMs + 1, undefined],
  ])("%s", (_, at, reason) => {
    judgeAt(0);
    judgeAt(at, { key: "other" });
    expect(judgeAt(at).reason).toBe(reason);
  });

  it("forgets what it met longest ago, whatever it met first", () => {
    judgeAt(0, { key: "often" });
    judgeAt(hourMs, { key: "once" });
    judgeAt(1.5 * hourMs, { key: "often" });
    judgeAt(3 * hourMs + 1, { key: "other" });
    expect(judgeAt(3 * hourMs + 1, { key: "once" }).reason).toBeUndefined();
    expect(judgeAt(3 * hourMs + 1, { key: "often" }).reason).toBe("observation");
  });

  it("forgets no record because there are many: a caller may try thousands of dead locks in turn", () => {
    const keys = Array.from({ length: 5_000 }, (_, index) => `k${index}`);
    for (const key of keys) judgeAt(0, { key });
    expect(keys.filter((key) => judgeAt(2_000, { key }).reason !== "observation")).toEqual([]);
  });
});

describe("the service's clock", () => {
  const skewMs = 200;
  const judge = (earliest: number) => {
    clock.note({ earliest: told + earliest, latest: told + earliest + 1_000 }, clock.moment());
    return new ExpiryDetector(clock, skewMs).judge(record({ leaseDurationMs: 1_000 }));
  };

  it("opens a lock when it has certainly passed the expiry and the allowance, and says in how long that is", () => {
    expect(judge(1_000)).toEqual({ reason: undefined, claimableInMs: 201 });
    expect(judge(1_200)).toEqual({ reason: undefined, claimableInMs: 1 });
    expect(judge(1_201)).toEqual({ reason: "serviceClock", claimableInMs: 0 });
  });

  it("is not waited for where a watcher may take the lock sooner", () => {
    expect(judge(-5_000)).toEqual({ reason: undefined, claimableInMs: 1_002.5 });
  });

  it("says nothing before an answer has told it", () => {
    const unknown = new ExpiryDetector(clock, skewMs).judge(record({ expiresAt: 0 }));
    expect(unknown).toEqual({ reason: undefined, claimableInMs: 1_002.5 });
  });
});
