import { InvalidOptionsError, LeaseClient, LeaseLostError, LeaseUnavailableError } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import {
  type Cached,
  type CacheOptions,
  type CacheStore,
  ResourceCache,
  rhythmOf,
  rhythms,
} from "../../functions/resource-cache/cache.ts";

let clock: ManualClock;
let locks: MemoryLeaseStore;
let entries: CacheStore<string> & { readonly items: Map<string, Cached<string> & { fence: number }> };
let computing: {
  name: string;
  finish: (value: string) => void;
  fail: (error: Error) => void;
  signal: AbortSignal;
}[];

function caller(options: Partial<CacheOptions<string>> = {}): ResourceCache<string> {
  const leases = new LeaseClient({ store: locks, clock });
  const compute = (name: string, signal: AbortSignal): Promise<string> =>
    new Promise((finish, fail) => computing.push({ name, finish, fail, signal }));
  return new ResourceCache({
    leases,
    entries,
    compute,
    freshForMs: 60_000,
    waitMs: 0,
    now: () => clock.now(),
    ...options,
  });
}

beforeEach(() => {
  clock = new ManualClock();
  locks = new MemoryLeaseStore();
  computing = [];
  const items = new Map<string, Cached<string> & { fence: number }>();
  entries = {
    items,
    look: async (name) => items.get(name),
    store: async (name, entry, { fencingToken: fence }) => {
      if ((items.get(name)?.fence ?? 0) > fence) return false;
      items.set(name, { ...entry, fence });
      return true;
    },
  };
});

describe("the resource cache", () => {
  test("of many callers at once one computes, and the others get its value", async () => {
    const answers = Promise.all(
      Array.from({ length: 5 }, () => caller({ waitMs: 30_000, retry: rhythms.fullJitter }).get("north")),
    );
    await settled();
    expect(computing).toHaveLength(1);
    computing[0]?.finish("12 mugs");
    await clock.advance(30_000);
    const sources = (await answers).map(({ value, source }) => `${value} ${source}`).sort();
    expect(sources).toEqual(["12 mugs computed", ...Array(4).fill("12 mugs otherCall")]);
    expect(computing).toHaveLength(1);
  });

  test("a value that is fresh costs no lock", async () => {
    await entries.store("north", { value: "12 mugs", computedAt: clock.now() }, { fencingToken: 1 } as never);
    const leases = new LeaseClient({ store: locks, clock });
    await leases.acquire("resource-cache/north");
    expect(await caller().get("north")).toMatchObject({ value: "12 mugs", source: "cache" });
  });

  test("while another computes, the old value is better than none", async () => {
    await entries.store("north", { value: "old", computedAt: clock.now() - 90_000 }, {
      fencingToken: 1,
    } as never);
    const first = caller().get("north");
    await settled();
    expect(await caller().get("north")).toMatchObject({ value: "old", source: "stale" });
    computing[0]?.finish("new");
    expect(await first).toMatchObject({ value: "new", source: "computed" });
    expect(await caller().get("north")).toMatchObject({ value: "new", source: "cache" });
  });

  test("without an old value the refusal comes through, after the wait and not before", async () => {
    const first = caller().get("north");
    await settled();
    let refused: unknown;
    const second = caller({ waitMs: 3_000 })
      .get("north")
      .catch((error: unknown) => {
        refused = error;
      });
    await clock.advance(2_900);
    expect(refused).toBeUndefined();
    await clock.advance(200);
    await second;
    expect(refused).toBeInstanceOf(LeaseUnavailableError);
    computing[0]?.finish("12 mugs");
    await first;
  });

  test("a computation of unknown length keeps the lock by its heartbeat", async () => {
    const first = caller().get("north");
    await clock.advance(120_000);
    await expect(caller().get("north")).rejects.toBeInstanceOf(LeaseUnavailableError);
    computing[0]?.finish("12 mugs");
    expect(await first).toMatchObject({ source: "computed" });
  });

  test("a computation that fails lets the lock go, and the next caller computes", async () => {
    const first = caller().get("north");
    await settled();
    computing[0]?.fail(new Error("the disk is full"));
    await expect(first).rejects.toThrow("the disk is full");
    const second = caller().get("north");
    await settled();
    computing[1]?.finish("12 mugs");
    expect(await second).toMatchObject({ source: "computed" });
  });

  test("a caller that was frozen beyond its lease cannot put its old value over its successor's", async () => {
    const frozen = caller().get("north");
    await settled();
    // Its timers do not fire, and the clock goes on.
    clock.freeze(15_000);
    const successor = caller().get("north");
    await settled();
    computing[1]?.finish("new");
    expect(await successor).toMatchObject({ value: "new", source: "computed" });

    computing[0]?.finish("old");
    expect(await frozen).toMatchObject({ value: "new", source: "otherCall" });
    expect(entries.items.get("north")?.value).toBe("new");
  });

  test("a computation that stops at the loss of its lease answers with its successor's value, if there is one", async () => {
    const frozen = caller().get("north");
    await settled();
    clock.freeze(15_000);
    const successor = caller().get("north");
    await settled();
    computing[1]?.finish("new");
    await successor;
    const [lost] = computing;
    await clock.advance(0);
    expect(lost?.signal.aborted).toBe(true);
    lost?.fail(lost.signal.reason);
    expect(await frozen).toMatchObject({ value: "new", source: "otherCall" });

    const alone = caller().get("south");
    await settled();
    clock.freeze(15_000);
    await clock.advance(0);
    const last = computing.at(-1);
    last?.fail(last.signal.reason);
    await expect(alone).rejects.toBeInstanceOf(LeaseLostError);
  });

  test("ways to wait have names, and no others", () => {
    expect(rhythmOf("linear")).toMatchObject({ strategy: "linear" });
    for (const odd of ["constructor", "", "linear ", 7, undefined]) {
      expect(() => rhythmOf(odd)).toThrow(InvalidOptionsError);
    }
  });
});
