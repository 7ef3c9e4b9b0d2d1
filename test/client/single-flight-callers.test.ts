import { getEventListeners } from "node:events";
import { LeaseUnavailableError } from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test, vi } from "vitest";
import {
  ComputationTimeoutError,
  type ResultCache,
  type SingleFlightOptions,
} from "../../packages/client/src/entries/single-flight.ts";
import { type ComputationRun, controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { clock, events, flightsWith, renewFlights, store } from "../support/flights.ts";

const freshForMs = 10_000;
const leaseDurationMs = 600_000;
const flights = flightsWith({ freshForMs }, { leaseDurationMs });

beforeEach(renewFlights);

/** Another process that computes, whose clock stands still: only its callers' requests are seen. */
async function holder(options: Partial<SingleFlightOptions> = {}): Promise<ComputationRun<string>> {
  const { compute, run } = controlled();
  void failureOf(flights(options, { clock: new ManualClock(clock.now()) }).getOrCompute("k", { compute }));
  await settled();
  return run(0);
}

/** What a promise has come to by now; undefined where it is still open. */
const byNow = <T>(promise: Promise<T>): Promise<T | undefined> =>
  Promise.race([promise, settled().then(() => undefined)]);

const unwanted = { compute: () => "computed in vain" };
const everySecond = { strategy: "fixed", delayMs: 1_000 } as const;
const never = (): Promise<never> => new Promise(() => undefined);

describe("a caller that waits for another process", () => {
  test("is told when the lock may be free, as its last look has shown", async () => {
    await clock.advance(5_000);
    await holder();
    const refusedAfter = async (waitMs: number): Promise<number> => {
      const call = failureOf(flights({ retry: everySecond }).getOrCompute("k", { ...unwanted, waitMs }));
      await clock.advance(waitMs);
      return ((await call) as LeaseUnavailableError).retryAfterMs;
    };
    expect(await refusedAfter(2_500)).toBe((await refusedAfter(0)) + 500);
  });

  test("is refused as soon as it is known that it has to wait, where its waitMs is over by then", async () => {
    await holder();
    const slow: ResultCache = {
      get: () => new Promise((resolve) => clock.schedule(() => resolve(undefined), 2_000)),
      set: () => true,
    };
    const call = failureOf(flights({ cache: slow }).getOrCompute("k", { ...unwanted, waitMs: 1_000 }));
    await clock.advance(1_999);
    expect(await byNow(call)).toBeUndefined();
    await clock.advance(1);
    expect(await byNow(call)).toBeInstanceOf(LeaseUnavailableError);
  });

  test("is not refused once its own process computes, however long that takes", async () => {
    const computation = await holder();
    const { compute, run } = controlled();
    const call = flights({ retry: everySecond }).getOrCompute("k", { compute, waitMs: 2_500 });
    await clock.advance(1_000);
    computation.reject(new Error("down"));
    await clock.advance(60_000);
    run(0).resolve("its own");
    expect(await call).toBe("its own");
  });

  test("leaves nothing that goes on when it was refused", async () => {
    await holder();
    await failureOf(
      Promise.all([clock.advance(1_000), flights().getOrCompute("k", { ...unwanted, waitMs: 1_000 })]),
    );
    await expectNothingToGoOn();
  });

  test("leaves nothing that goes on when it got a stale value", async () => {
    const keeping = { staleForMs: 3_600_000 };
    await flights(keeping).getOrCompute("k", { compute: () => "old" });
    await clock.advance(freshForMs);
    await holder(keeping);
    expect(await flights(keeping).getOrCompute("k", unwanted)).toBe("old");
    await expectNothingToGoOn();
  });

  async function expectNothingToGoOn(): Promise<void> {
    await settled();
    store.calls.length = 0;
    expect(clock.pending).toBe(0);
    await clock.advance(leaseDurationMs);
    expect(store.calls).toEqual([]);
  }
});

describe("a caller", () => {
  test("is told how long it waited", async () => {
    await clock.advance(5_000);
    const { compute, run } = controlled();
    const call = flights().getOrCompute("k", { compute });
    await clock.advance(1_234);
    run(0).resolve("value");
    await call;
    expect(events.at(-1)).toMatchObject({ type: "served", waitedMs: 1_234 });
  });

  test("that leaves while the cache is read makes nobody believe that the cache failed", async () => {
    const caller = new AbortController();
    const { signal } = caller;
    const left = failureOf(
      flights({ cache: { get: never, set: never } }).getOrCompute("k", { ...unwanted, signal }),
    );
    await settled();
    caller.abort();
    expect(await left).toMatchObject({ code: "LEASE_ABORTED" });
    await settled();
    expect(events).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test("leaves no listener on its signal, whatever ends its wait", async () => {
    const { signal } = new AbortController();
    await flights().getOrCompute("k", { compute: () => "value", signal });
    const cutOff = failureOf(flights().getOrCompute("j", { compute: never, signal, computeTimeoutMs: 1 }));
    await clock.advance(1);
    expect(await cutOff).toBeInstanceOf(ComputationTimeoutError);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("is waited for by a timer in the background: waitMs alone keeps no process alive", async () => {
    const schedule = vi.spyOn(clock, "schedule");
    await flights().getOrCompute("k", { compute: () => "value", waitMs: 12_345 });
    expect(schedule).toHaveBeenCalledWith(expect.any(Function), 12_345, { background: true });
  });
});

describe("a computation", () => {
  test("without a limit has no timer, as the longest one would end it after 24 days", async () => {
    const schedule = vi.spyOn(clock, "schedule");
    await flights({ computeTimeoutMs: Number.POSITIVE_INFINITY }).getOrCompute("k", { compute: () => 1 });
    expect(schedule.mock.calls.filter(([, delayMs]) => !Number.isFinite(delayMs))).toEqual([]);
  });

  test("that has succeeded is not told of the release that follows", async () => {
    const { compute, run } = controlled();
    const call = flights().getOrCompute("k", { compute });
    await settled();
    run(0).resolve("value");
    await call;
    expect(run(0).signal.aborted).toBe(false);
  });
});
