import { uptime } from "node:os";
import { type Lease, LeaseClient, type LeaseHandle, LeaseLostError } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { type Clock, sparingUptime, systemClock } from "../../packages/client/src/base/clock.ts";
import { ServiceClock } from "../../packages/client/src/base/service-clock.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const epoch = Date.UTC(2026, 0, 1);
const hourMs = 3_600_000;
const skewMs = 1_000;

/** A machine whose clocks the test sets one by one; true time is the service's. */
class Machine implements Clock {
  trueMs = 0;
  suspendedMs = 0;
  wallErrorMs = 0;
  rate = 1;
  readonly uptime?: () => number;

  constructor(tellsUptime = false) {
    if (tellsUptime) this.uptime = () => this.trueMs * this.rate;
  }

  now(): number {
    return epoch + this.trueMs + this.wallErrorMs;
  }

  monotonic(): number {
    return (this.trueMs - this.suspendedMs) * this.rate;
  }

  schedule(): () => void {
    return () => undefined;
  }

  /** A request and its answer, which was made after `thereMs`. */
  exchange(clock: ServiceClock, thereMs: number, backMs: number): void {
    const sentAt = clock.moment();
    this.trueMs += thereMs;
    const earliest = Math.floor((epoch + this.trueMs) / 1000) * 1000;
    this.trueMs += backMs;
    clock.note({ earliest, latest: earliest + 1000 }, sentAt);
  }
}

function clockOf(machine: Machine): ServiceClock {
  return new ServiceClock(machine, false, () => undefined);
}

describe("the service's time", () => {
  it("lies between the bounds, however slow the answers are, the clock runs and the wall clock jumps", () => {
    const step = fc.record({
      pauseMs: fc.nat(600_000),
      thereMs: fc.nat(5_000),
      backMs: fc.nat(5_000),
      wallErrorMs: fc.option(fc.integer({ min: -5 * hourMs, max: 5 * hourMs })),
    });
    const rate = fc.double({ min: 0.999, max: 1.001, noNaN: true });
    fc.assert(
      fc.property(rate, fc.array(step, { minLength: 1, maxLength: 12 }), (rate, steps) => {
        const machine = new Machine();
        machine.rate = rate;
        const clock = clockOf(machine);
        for (const { pauseMs, thereMs, backMs, wallErrorMs } of steps) {
          machine.exchange(clock, thereMs, backMs);
          machine.trueMs += pauseMs;
          if (wallErrorMs !== null) machine.wallErrorMs = wallErrorMs;
          const truth = epoch + machine.trueMs;
          expect(clock.earliest()).toBeLessThanOrEqual(truth + 1e-3);
          expect(clock.latest()).toBeGreaterThanOrEqual(truth - 1e-3);
        }
      }),
    );
  });

  it.each([
    ["by the wall clock", false],
    ["by the uptime", true],
  ])("is never above the upper bound after a suspension that is seen %s", (_, tellsUptime) => {
    const machine = new Machine(tellsUptime);
    const clock = clockOf(machine);
    machine.exchange(clock, 5, 5);
    machine.trueMs += 60_000;
    machine.suspendedMs += 60_000;
    // Set back at the same time, so that the uptime alone can tell.
    if (tellsUptime) machine.wallErrorMs -= 60_000;
    expect(clock.latest()).toBeGreaterThanOrEqual(epoch + machine.trueMs);
    expect(clock.earliest()).toBeLessThanOrEqual(epoch + machine.trueMs);
    const expiresAt = clock.expiryOf(clock.moment(), 1_000);
    expect(expiresAt + skewMs).toBeGreaterThanOrEqual(epoch + machine.trueMs + 1_000);
  });
});

describe("with a service that tells its time", () => {
  let clock: ManualClock;
  let store: ScriptedStore;

  const clientOf = (owner: string, own: Clock = clock): LeaseClient =>
    new LeaseClient({ store, clock: own, owner, leaseDurationMs: 30_000, clockSkewMs: skewMs });

  beforeEach(() => {
    clock = new ManualClock(epoch);
    store = new ScriptedStore();
    store.isLocal = false;
    store.time = () => {
      const earliest = Math.floor((epoch + clock.monotonic()) / 1000) * 1000;
      return { earliest, latest: earliest + 1000 };
    };
  });

  it("a step of the wall clock between sending and answer does not take a lock", async () => {
    await clientOf("a").acquire("k");
    const update = store.update.bind(store);
    store.update = async (request, call) => {
      const result = await update(request, call);
      clock.jump(hourMs);
      return result;
    };
    expect(await clientOf("b").tryAcquire("k")).toBeUndefined();
  });

  describe("an adopted lease", () => {
    let holder: Lease;
    let handle: LeaseHandle;
    beforeEach(async () => {
      holder = await clientOf("a").acquire("k");
      handle = holder.toJSON();
    });

    /** A client that an answer has told the time. */
    const toldClient = async (own?: Clock): Promise<LeaseClient> => {
      const client = clientOf("b", own);
      await client.inspect("other");
      return client;
    };

    it("is not held in a process that no answer has told the time, until a renewal is confirmed", async () => {
      const adopted = clientOf("b").adopt(handle);
      expect(adopted.held).toBe(false);
      await adopted.renew();
      expect(adopted.remainingMs()).toBeGreaterThan(28_900);
    });

    it("is believed in for the allowance less than its handle says, until a renewal is confirmed", async () => {
      const adopted = (await toldClient()).adopt(handle);
      expect(adopted.remainingMs()).toBeLessThanOrEqual(30_000 - skewMs);
      expect(adopted.held).toBe(true);
      await adopted.renew();
      expect(adopted.remainingMs()).toBeGreaterThan(29_000);
    });

    it("whose first renewal is throttled is renewed again after a fifth of its duration, though nothing has confirmed it", async () => {
      clock.freeze(40_000);
      const adopted = clientOf("b").adopt(handle, { heartbeat: true });
      expect(adopted.held).toBe(false);
      store.next("throttled");
      await clock.advance(5_300);
      expect(adopted.held).toBe(false);
      await clock.advance(800);
      expect(adopted.held).toBe(true);
    });
  });
});

describe("a late copy of an acquisition that lands after its release, and after another lease", () => {
  it("makes no write of the old holder succeed, and no handle of it renew", async () => {
    const clock = new ManualClock(epoch);
    const store = new ScriptedStore();
    const client = (owner: string): LeaseClient => new LeaseClient({ store, clock, owner });
    const a = await client("a").acquire("k");
    const [copy] = store.calls[0]?.requests ?? [];
    const handle = a.toJSON();
    const stale = a.conditionCheck().ConditionCheck;
    await a.release();
    const b = await client("b").acquire("k");
    await b.release();
    // It takes the lock for nobody.
    if (copy === undefined) throw new Error("nothing was sent");
    expect(store.table.updateNow(copy).applied).toBe(true);
    const ghost = store.table.peek({ pk: "k", sk: "lease" });
    expect(ghost).toMatchObject({ token: a.token });

    const check = store.table.transactNow([
      {
        key: { pk: "k", sk: "lease" },
        action: "check",
        condition: stale.ConditionExpression,
        names: stale.ExpressionAttributeNames,
        values: Object.fromEntries(
          Object.entries(stale.ExpressionAttributeValues).map(([name, value]) => [
            name,
            value.S ?? Number(value.N),
          ]),
        ),
      },
    ]);
    expect(check.applied).toBe(false);
    const revived = client("a").adopt(handle);
    await expect(revived.renew()).rejects.toThrow(LeaseLostError);
    expect(await client("a").adopt(handle).release()).toBe(false);
    expect(store.table.peek({ pk: "k", sk: "lease" })).toEqual(ghost);
    // For one lease.
    await clock.advance(30_000 + 1_001);
    const next = await client("b").acquire("k");
    expect(next.fencingToken).toBeGreaterThan(Number(ghost?.fence));
  });
});

describe("the machine's uptime", () => {
  function machine() {
    const state = { monotonic: 5_000, wall: 1_000_000, uptime: 60_000, reads: 0 };
    const readMs = (): number => {
      state.reads += 1;
      return state.uptime;
    };
    const sparing = sparingUptime(readMs);
    const uptime = (): number => sparing(state.monotonic, state.wall);
    return { state, uptime };
  }

  it("is read once, and goes on with the other clocks while they agree", () => {
    const { state, uptime } = machine();
    expect(uptime()).toBe(60_000);
    state.monotonic += 900;
    state.wall += 905;
    expect(uptime()).toBe(60_900);
    state.monotonic += 100;
    state.wall += 90;
    expect(uptime()).toBe(61_000);
    expect(state.reads).toBe(1);
    state.wall -= 1;
    expect(uptime()).toBe(60_000);
    expect(state.reads).toBe(2);
  });

  it.runIf(process.platform === "linux")("is the system's, in milliseconds", () => {
    // Clocks that have jumped: whatever was read before does not count.
    systemClock.uptime?.(0, 0);
    const shown = systemClock.uptime?.(systemClock.monotonic(), systemClock.now());
    expect(Math.abs(Number(shown) - uptime() * 1000)).toBeLessThan(500);
  });

  it("is read again after a second", () => {
    const { state, uptime } = machine();
    uptime();
    state.monotonic += 1_001;
    state.wall += 1_001;
    state.uptime += 1_001;
    expect(uptime()).toBe(61_001);
    expect(state.reads).toBe(2);
  });

  it.each([
    ["whose wall clock goes on", 30_000],
    ["whose wall clock is set back by more than that", -7_200_000],
    ["whose wall clock stands still meanwhile, and is set a little", 20],
  ])("shows a suspension of half a minute %s", (_, wallMs) => {
    const { state, uptime } = machine();
    uptime();
    state.monotonic += 10;
    state.wall += 10 + wallMs;
    state.uptime += 30_010;
    expect(uptime()).toBe(90_010);
  });
});

describe("a timer that is longer than one of Node", () => {
  const longestTimerMs = 2 ** 31 - 1;
  const set: [delayMs: number, options: unknown][] = [];
  let clock: ManualClock;
  let fired: number[];
  let cancel: () => void;

  beforeEach(() => {
    /** As a program's own clock may be: of Node's timers, and no more. */
    clock = new (class extends ManualClock {
      override schedule(callback: () => void, delayMs: number, options?: object): () => void {
        set.push([delayMs, options]);
        return super.schedule(callback, delayMs > longestTimerMs ? 1 : delayMs);
      }
    })();
    set.length = 0;
    fired = [];
    const serviceClock = new ServiceClock(clock, true, () => undefined);
    const options = { background: true };
    cancel = serviceClock.schedule(() => fired.push(clock.monotonic()), 2 * longestTimerMs + 5, options);
  });

  it("fires once, when its time is over, and keeps no process alive that it should not", async () => {
    await clock.advance(3 * longestTimerMs);
    expect(fired).toEqual([2 * longestTimerMs + 5]);
    const options = { background: true };
    expect(set).toEqual([
      [longestTimerMs, options],
      [longestTimerMs, options],
      [5, options],
    ]);
  });

  it.each([0, 1, 2])("is cancelled in each part of its time: %i", async (part) => {
    await clock.advance(part * longestTimerMs);
    cancel();
    await clock.advance(3 * longestTimerMs);
    expect(fired).toEqual([]);
  });
});
