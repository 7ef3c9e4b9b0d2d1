import type { UpdateRequest } from "@leasehold/client";
import { settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import type {
  CacheEntry,
  ResultCache,
  SingleFlight,
} from "../../packages/client/src/entries/single-flight.ts";
import { controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { clock, flightsWith, renewFlights, store } from "../support/flights.ts";

const freshForMs = 10_000;
const failureForMs = 1_000;
const keeping = flightsWith({ freshForMs, staleForMs: 3_600_000, failureForMs, staleOnError: false });
let cache: ResultCache | undefined;

beforeEach(() => {
  renewFlights();
  cache = undefined;
});

/** Those of one process. */
function flights(itsClock = clock): SingleFlight {
  return keeping(cache === undefined ? {} : { cache }, { clock: itsClock });
}

/** Leaves a value behind that may stand in for a newer one. */
async function leaveStale(): Promise<void> {
  await flights().getOrCompute("k", { compute: () => "old" });
  await clock.advance(freshForMs);
}

/** A call whose computation fails, which is what it rejects with. */
async function fail(duringCompute = async (): Promise<void> => undefined): Promise<void> {
  const compute = async (): Promise<string> => {
    await duringCompute();
    throw new Error("down");
  };
  expect(await failureOf(flights().getOrCompute("k", { compute }))).toMatchObject({ message: "down" });
}

/** What a process that comes after the failure is shown, and what others get while it computes. */
async function standIns(): Promise<{ readonly shown: unknown; readonly given: unknown }> {
  await clock.advance(failureForMs);
  let shown: unknown;
  const { compute, run } = controlled();
  const newer = flights().getOrCompute<string>("k", {
    compute: (context) => {
      shown = context.stale;
      return compute(context);
    },
  });
  await settled();
  let given: unknown;
  const other = flights().getOrCompute("k", { compute: () => "of another" });
  void other.then((value) => {
    given = value;
  });
  await settled();
  const standIn = { shown, given };
  run(0).resolve("new");
  expect(await newer).toBe("new");
  await clock.advance(1_000);
  await other;
  return standIn;
}

/** Makes the next write that is meant wait for something else. */
function before(
  isMeant: (sortKey: string, isMark: boolean) => boolean,
  happens: (request: UpdateRequest) => Promise<unknown>,
): void {
  const update = store.update.bind(store);
  store.update = async (...call) => {
    const [{ key, values }] = call;
    if (isMeant(key.sk, !Number.isInteger(values[":fence"] ?? 0))) {
      store.update = update;
      await happens(call[0]);
    }
    return await update(...call);
  };
}

function comparing(): ResultCache {
  const entries = new Map<string, CacheEntry>();
  return {
    get: (key: string) => entries.get(key),
    set: (key: string, entry: CacheEntry, _: number, token: number) => {
      const mayStore = (entries.get(key)?.fencingToken ?? 0) <= token;
      if (mayStore) entries.set(key, entry);
      return mayStore;
    },
  };
}

const caches: readonly (readonly [string, () => ResultCache | undefined])[] = [
  ["the table", () => undefined],
  ["a Map", () => new Map<string, CacheEntry>()],
  ["a cache that compares tokens", comparing],
];

describe.each(caches)("in %s, a failed computation", (_, makeCache) => {
  beforeEach(() => {
    cache = makeCache();
  });

  test("keeps it through several failures", async () => {
    await leaveStale();
    await fail();
    await clock.advance(failureForMs);
    await fail();
    expect(await standIns()).toEqual({ shown: "old", given: "old" });
  });

  test("does not bring back what was invalidated just before its store", async () => {
    await leaveStale();
    await fail(() => flights().invalidate("k"));
    expect(await standIns()).toEqual({ shown: undefined, given: undefined });
  });
});

describe("an invalidation whose mark is on its way", () => {
  /** Makes the mark wait for something that happens after the invalidation has read the lock. */
  const whileTheMarkIsOnItsWay = (happens: () => Promise<unknown>): void =>
    before((_, isMark) => isMark, happens);

  test("forgets what a failure has kept in the meantime", async () => {
    await leaveStale();
    whileTheMarkIsOnItsWay(() => fail());
    await flights().invalidate("k");
    expect(await standIns()).toEqual({ shown: undefined, given: undefined });
  });
});

describe("in the table, a failure that keeps a value", () => {
  const storesOfFailures = (): readonly UpdateRequest[] =>
    store.calls.flatMap(({ requests }) =>
      requests.filter(({ values }) => String(values[":data"]).includes('"failure"')),
    );

  test("is 1 write, and 2 where the value has been invalidated since", async () => {
    await leaveStale();
    await fail();
    expect(storesOfFailures()).toHaveLength(1);
    await clock.advance(failureForMs);
    store.calls.length = 0;
    await fail(() => flights().invalidate("k"));
    expect(storesOfFailures()).toHaveLength(2);
  });

  test("lets the value go where the two do not fit into an item; the caller hears of the failure", async () => {
    const value = "x".repeat(392 * 1024 - 120);
    await flights().getOrCompute("k", { compute: () => value });
    await clock.advance(freshForMs);
    const failure = new Error("down".repeat(100));
    const compute = (): Promise<string> => Promise.reject(failure);
    expect(await failureOf(flights().getOrCompute("k", { compute }))).toBe(failure);
    expect(await failureOf(flights().getOrCompute("k", { compute }))).toMatchObject({
      code: "LEASE_CACHED_FAILURE",
    });
  });

  test("costs nobody the value where its write never lands", async () => {
    await leaveStale();
    await fail(async () => store.next("request lost"));
    expect(await standIns()).toEqual({ shown: "old", given: "old" });
  });

  test("is stored alone where ttl has removed the value since", async () => {
    await leaveStale();
    await fail(async () => {
      expect(store.table.collectGarbage(clock.now() + 7_200_000)).toBe(1);
    });
    expect(await failureOf(flights().getOrCompute("k", { compute: () => "new" }))).toMatchObject({
      code: "LEASE_CACHED_FAILURE",
    });
  });

  test("is recognised where it was sent again because its answer got lost", async () => {
    await leaveStale();
    before(
      (sortKey) => sortKey === "cache",
      async (request) => store.table.updateNow(request),
    );
    await fail();
    expect(await standIns()).toEqual({ shown: "old", given: "old" });
  });
});
