import { LeaseUnavailableError, type RetryStrategy } from "@leasehold/client";
import { settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import {
  type CacheEntry,
  ComputationTimeoutError,
  type GetOrComputeOptions,
  type ResultCache,
  type SingleFlight,
  type SingleFlightOptions,
} from "../../packages/client/src/entries/single-flight.ts";
import { controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { clock, flightsWith, renewFlights, store } from "../support/flights.ts";
import { follow } from "../support/follow.ts";

const freshForMs = 10_000;
const flights = flightsWith({ freshForMs });

beforeEach(renewFlights);

/** Another process that computes; gives how it ends. */
async function holder(options: Partial<SingleFlightOptions> = {}): Promise<(value: string) => void> {
  const { compute, run } = controlled();
  void failureOf(flights(options, { leaseDurationMs: 600_000 }).getOrCompute("k", { compute }));
  await settled();
  return (value) => run(0).resolve(value);
}

const unwanted = { compute: () => "computed in vain" };

/** When the next looks are made, in milliseconds from now. */
async function looksIn(ms: number): Promise<number[]> {
  const start = clock.monotonic();
  const at: number[] = [];
  while (clock.monotonic() - start < ms) {
    const before = store.count("query");
    await clock.advance(10);
    if (store.count("query") > before) at.push(clock.monotonic() - start);
  }
  return at;
}

describe("a call's own rhythm", () => {
  const rhythms: readonly [RetryStrategy, readonly number[]][] = [
    [{ strategy: "fixed", delayMs: 400 }, [400, 800, 1_200, 1_600, 2_000]],
    [{ strategy: "linear", delayMs: 200 }, [200, 600, 1_200, 2_000]],
    [{ strategy: "exponential", delayMs: 100, maxDelayMs: 400 }, [100, 300, 700, 1_100, 1_500, 1_900]],
    [{ strategy: "fullJitter", delayMs: 200 }, [100, 300, 700, 1_500]],
    [{ strategy: "untilExpiry" }, [250, 750, 1_750]],
    [{ strategy: "random", minDelayMs: 150, maxDelayMs: 250, maxRetries: 5 }, [200, 400, 600, 800, 1_000]],
  ];

  test.each(rhythms)("%o overrides that of the SingleFlight", async (retry, times) => {
    await holder();
    const waiting = flights({ retry: { strategy: "fixed", delayMs: 7_777 } });
    void failureOf(waiting.getOrCompute("k", { ...unwanted, retry }));
    await settled();
    store.calls.length = 0;
    expect(await looksIn(2_000)).toEqual(times);
    // Each look is 1 query, and nothing is written.
    expect(store.calls).toMatchObject(times.map(() => ({ method: "query", consistent: true })));
  });

  test("ends the wait after its last look with the refusal of that look", async () => {
    await holder();
    const retry = { strategy: "fixed", delayMs: 100, maxRetries: 3 } as const;
    const failure = follow(flights().getOrCompute("k", { ...unwanted, retry }), clock);
    await clock.advance(299);
    expect(failure.error).toBeUndefined();
    await clock.advance(1);
    expect(failure.error).toBeInstanceOf(LeaseUnavailableError);
  });

  test("counts for callers that join later, too", async () => {
    await holder();
    const shared = flights();
    void failureOf(shared.getOrCompute("k", { ...unwanted, retry: { strategy: "fixed", delayMs: 500 } }));
    void failureOf(shared.getOrCompute("k", { ...unwanted, retry: { strategy: "fixed", delayMs: 10 } }));
    await settled();
    expect(await looksIn(1_000)).toEqual([500, 1_000]);
  });
});

test("a look at a cache elsewhere finds what the holder stores meanwhile, and tries nothing in vain", async () => {
  const values = new Map<string, CacheEntry>();
  const finish = await holder({ cache: values });
  let isLooking = false;
  /** Lets the holder store its value and let the lock go after the first of the two reads. */
  const firstOf = async <T>(read: Promise<T>): Promise<T> => {
    const found = await read;
    if (!isLooking) return found;
    isLooking = false;
    finish("new");
    await settled();
    return found;
  };
  const get = store.get.bind(store);
  store.get = (...call) => firstOf(get(...call));
  const cache: ResultCache = {
    get: (key) => firstOf(Promise.resolve(values.get(key))),
    set: (key, entry) => values.set(key, entry),
  };
  const retry = { strategy: "fixed", delayMs: 1_000 } as const;
  let value: string | undefined;
  void flights({ cache, retry })
    .getOrCompute("k", unwanted)
    .then((got) => {
      value = got;
    });
  await settled();
  isLooking = true;
  await clock.advance(1_000);
  await settled();
  expect(value).toBe("new");
  const [acquired, refused, released] = [1, 1, 1];
  expect(store.count("update")).toBe(acquired + refused + released);
});

test("a caller gets its value when the lock has been let go: its process may be frozen from then on", async () => {
  const released = Promise.withResolvers<void>();
  const update = store.update.bind(store);
  store.update = async (...call) => {
    if (store.count("update") > 0) await released.promise;
    return await update(...call);
  };
  let value: string | undefined;
  const call = flights({ cache: new Map() }).getOrCompute("k", { compute: () => "new" });
  void call.then((got) => {
    value = got;
  });
  await settled();
  expect(value).toBeUndefined();
  released.resolve();
  expect(await call).toBe("new");
});

describe("a call's own limits", () => {
  test("cut its computation off, be they shorter or longer than those of the SingleFlight, and its late result is dropped", async () => {
    const shared = flights({ computeTimeoutMs: 5_000 });
    for (const computeTimeoutMs of [1_000, 9_000]) {
      const key = `k ${computeTimeoutMs}`;
      const { compute, run } = controlled();
      const failure = failureOf(shared.getOrCompute(key, { compute, computeTimeoutMs }));
      await clock.advance(computeTimeoutMs - 1);
      expect(run(0).signal.aborted).toBe(false);
      await clock.advance(1);
      expect(await failure).toBeInstanceOf(ComputationTimeoutError);
      expect(await failure).toMatchObject({ timeoutMs: computeTimeoutMs });
      expect(run(0).signal.reason).toBe(await failure);
      run(0).resolve("too late");
      expect(await shared.getOrCompute(key, { compute: () => "next", waitMs: 0 })).toBe("next");
    }
  });

  test("end its wait", async () => {
    await holder();
    const refused = failureOf(flights({ waitMs: 60_000 }).getOrCompute("k", { ...unwanted, waitMs: 0 }));
    await settled();
    expect(await refused).toBeInstanceOf(LeaseUnavailableError);
  });

  test("let a waiter elsewhere compute after a computation that never ends, even if its lock is not let go", async () => {
    const never = flights({ computeTimeoutMs: 1_000 });
    const cutOff = failureOf(
      never.getOrCompute("k", { compute: () => new Promise<string>(() => undefined) }),
    );
    await settled();
    const waiting = flights().getOrCompute("k", { compute: () => "rescued" });
    await settled();
    store.next("request lost");
    await clock.advance(1_000);
    expect(await cutOff).toBeInstanceOf(ComputationTimeoutError);
    await clock.advance(3_000 + 1_000 + 1_000);
    expect(await waiting).toBe("rescued");
    expect(clock.pending).toBe(0);
  });
});

describe("a computation that asks for its own key", () => {
  const keeping = { staleForMs: 600_000 };

  /** When its call ended, and with what; and what its computation got. */
  async function ask(
    shared: SingleFlight,
    asked = shared,
    options: Partial<GetOrComputeOptions<string>> = {},
  ): Promise<{ readonly afterMs: number; readonly failure: unknown; readonly inner: unknown }> {
    const start = clock.monotonic();
    let inner: unknown;
    const compute = async (): Promise<string> => {
      const call = asked.getOrCompute<string>("k", { ...unwanted, ...options });
      inner = await call.catch((error: unknown) => error);
      return "new";
    };
    let afterMs = Number.NaN;
    const call = failureOf(shared.getOrCompute("k", { compute })).finally(() => {
      afterMs = clock.monotonic() - start;
    });
    await clock.advance(60_000);
    return { failure: await call, afterMs, inner };
  }

  test("waits for itself until computeTimeoutMs ends it, whatever its waitMs", async () => {
    const { afterMs, failure, inner } = await ask(flights({ computeTimeoutMs: 20_000 }), undefined, {
      waitMs: 0,
    });
    expect(afterMs).toBe(20_000);
    expect(failure).toBeInstanceOf(ComputationTimeoutError);
    expect(inner).toBe(failure);
    expect(await flights().getOrCompute("k", { compute: () => "the next one's" })).toBe("the next one's");
  });

  test("is given what may stand in, as anybody is who comes while it computes", async () => {
    await flights(keeping).getOrCompute("k", { compute: () => "old" });
    await clock.advance(freshForMs);
    expect(await ask(flights(keeping))).toEqual({ afterMs: 0, failure: undefined, inner: "old" });
  });
});

describe("whether a caller takes a stale value", () => {
  const keeping = { staleForMs: 60_000 };
  beforeEach(async () => {
    await flights(keeping).getOrCompute("k", { compute: () => "old" });
    await clock.advance(freshForMs);
  });

  test("is its own matter while another process computes", async () => {
    const finish = await holder(keeping);
    const shared = flights(keeping);
    const patient = shared.getOrCompute("k", { ...unwanted, staleOnContention: false });
    expect(await shared.getOrCompute("k", unwanted)).toBe("old");
    // Who joins those that wait gets it at their next look.
    const late = shared.getOrCompute("k", unwanted);
    await clock.advance(250);
    expect(await late).toBe("old");
    finish("new");
    await clock.advance(1_000);
    expect(await patient).toBe("new");
  });

  test("is its own matter while its own process computes", async () => {
    const shared = flights({ ...keeping, staleOnContention: false });
    const { compute, run } = controlled();
    const first = shared.getOrCompute("k", { compute });
    const patient = shared.getOrCompute("k", unwanted);
    expect(await shared.getOrCompute("k", { ...unwanted, staleOnContention: true })).toBe("old");
    const later = shared.getOrCompute("k", unwanted);
    run(0).resolve("new");
    expect(await Promise.all([first, patient, later])).toEqual(["new", "new", "new"]);
  });

  test("is its own matter when the lock cannot be had", async () => {
    store.weather = "rejected";
    const shared = flights(keeping);
    const strict = failureOf(shared.getOrCompute("k", { ...unwanted, staleOnContention: false }));
    expect(await shared.getOrCompute("k", unwanted)).toBe("old");
    expect(await strict).toMatchObject({ code: "LEASE_REQUEST_REJECTED" });
  });
});

test("a call can say where its value came from, for no request more", async () => {
  const keeping = { staleForMs: 60_000 };
  const shared = flights(keeping);
  const call = (compute: () => string) => shared.getOrComputeWithSource("k", { compute });
  expect(await call(() => "first")).toEqual({ value: "first", source: "computation" });
  store.calls.length = 0;
  expect(await call(() => "second")).toEqual({ value: "first", source: "cache" });
  expect(store.calls.map(({ method }) => method)).toEqual(["get"]);

  await clock.advance(freshForMs);
  const finish = await holder(keeping);
  expect(await call(() => "third")).toEqual({ value: "first", source: "stale" });
  const waiting = shared.getOrComputeWithSource("k", { ...unwanted, staleOnContention: false });
  await settled();
  finish("newer");
  await clock.advance(1_000);
  expect(await waiting).toEqual({ value: "newer", source: "otherProcess" });
});
