import {
  type CallOptions,
  type Lease,
  LeaseClient,
  LeaseServiceError,
  LeaseUnavailableError,
} from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { retryDelayMs } from "../../packages/client/src/base/retry.ts";
import { adminOf } from "../support/admin.ts";
import { follow } from "../support/follow.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { watchedMs } from "../support/watching.ts";

let clock: ManualClock;
let store: ScriptedStore;

const clientOf = (owner: string, fraction = 0.5): LeaseClient => {
  let tokens = 0;
  const randomness = { token: () => `${owner}-${++tokens}`, fraction: () => fraction };
  return new LeaseClient({ store, clock, owner, leaseDurationMs: 30_000, randomness });
};

/** A request without an answer. */
const hanging = ({ signal }: CallOptions): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

describe("waiting for a held lock", () => {
  let held: Lease;

  beforeEach(async () => {
    held = await clientOf("a").acquire("k");
    store.calls.length = 0;
  });

  it("costs reads that may lag, and not writes", async () => {
    const waiting = follow(clientOf("b").acquire("k", { waitMs: 25_000 }), clock);
    await clock.advance(25_000);
    expect(waiting.error).toBeInstanceOf(LeaseUnavailableError);
    expect(store.count("update")).toBe(1);
    expect(store.count("get")).toBeGreaterThan(5);
    expect(store.count("get")).toBeLessThan(15);
    expect(store.calls.some((call) => call.consistent)).toBe(false);
  });

  it("is over after as many pauses as its rhythm has, with the refusal that the end of waitMs gives", async () => {
    const retry = { strategy: "random", minDelayMs: 150, maxDelayMs: 250, maxRetries: 5 } as const;
    const waiting = follow(clientOf("b").acquire("k", { waitMs: 25_000, retry }), clock);
    await clock.advance(999);
    expect(waiting.error).toBeUndefined();
    await clock.advance(1);
    expect(waiting.error).toBeInstanceOf(LeaseUnavailableError);
    expect(waiting.error).toMatchObject({ key: "k", holder: "a", retryAfterMs: expect.any(Number) });
    expect(store.count("get")).toBe(5);
    expect(store.count("update")).toBe(1);
  });

  it("ends when the holder's time is up, with one refusal and one takeover, whoever waits", async () => {
    const waiting = follow(clientOf("b", 0).acquire("k", { waitMs: 60_000 }), clock);
    // A watcher that has seen the record for a whole lease and a margin needs no agreement between clocks.
    await clock.advance(watchedMs(30_000));
    expect(waiting.value?.held).toBe(true);
    expect(store.count("update")).toBe(3);
  });

  it("looks again where a look fails, or has no answer within ten seconds", async () => {
    const retry = { strategy: "fixed", delayMs: 1_000 } as const;
    const waiting = follow(clientOf("b").acquire("k", { waitMs: 25_000, retry }), clock);
    const { get } = store;
    const looks: number[] = [];
    store.get = async (request, call) => {
      looks.push(clock.monotonic());
      if (looks.length === 1) throw new LeaseServiceError("LEASE_THROTTLED", "no");
      if (looks.length > 2) return await get.call(store, request, call);
      return await hanging(call);
    };
    await held.release();
    const begun = clock.monotonic();
    await clock.advance(13_000);
    expect(looks.map((at) => at - begun)).toEqual([1_000, 2_000, 13_000]);
    expect(waiting.value?.held).toBe(true);
  });
});

describe("a service that fails", () => {
  it("for a while is tried again while there is patience", async () => {
    store.next("throttled", "throttled", "request lost");
    const waiting = follow(clientOf("b").acquire("k", { waitMs: 20_000 }), clock);
    await clock.advance(10_000);
    expect(waiting.value?.held).toBe(true);
  });
});

describe("delays of", () => {
  const delays = (retry: Parameters<typeof retryDelayMs>[0], fraction = 1): number[] =>
    [1, 2, 3, 4, 5].map((attempt) => retryDelayMs(retry, { attempt, claimableInMs: 1e9, fraction }));

  it.each([
    [{ strategy: "fixed", delayMs: 100 }, [100, 100, 100, 100, 100]],
    [{ strategy: "linear", delayMs: 100 }, [100, 200, 300, 400, 500]],
    [{ strategy: "linear", delayMs: 100, maxDelayMs: 250 }, [100, 200, 250, 250, 250]],
    [{ strategy: "exponential", delayMs: 100 }, [100, 200, 400, 800, 1_600]],
    [{ strategy: "exponential", delayMs: 10_000 }, [10_000, 20_000, 30_000, 30_000, 30_000]],
    [{ strategy: "fullJitter", delayMs: 100 }, [100, 200, 400, 800, 1_600]],
    [{ strategy: "random", minDelayMs: 150, maxDelayMs: 250 }, [250, 250, 250, 250, 250]],
  ] as const)("%j", (retry, expected) => {
    expect(delays(retry)).toEqual(expected);
  });

  it("the default double from a quarter of a second to five, by half more or less", () => {
    expect(delays({ strategy: "untilExpiry" }, 0)).toEqual([125, 250, 500, 1_000, 2_000]);
    expect(delays({ strategy: "untilExpiry" }, 1)).toEqual([375, 750, 1_500, 3_000, 6_000]);
    const state = { attempt: 6, claimableInMs: 1e9, fraction: 0.5 };
    expect(retryDelayMs({ strategy: "untilExpiry" }, state)).toBe(5_000);
  });
});

describe("a signal that aborts at the very moment of the grant leaves a lease that its caller has, or none:", () => {
  const ways: readonly [string, (client: LeaseClient, signal: AbortSignal) => Promise<unknown>][] = [
    ["a lock", (client, signal) => client.acquire("k", { signal, waitMs: 1_000 })],
    ["a fair lock", (client, signal) => client.acquire("k", { signal, waitMs: 1_000, order: fair() })],
    ["a permit", (client, signal) => new Semaphore(client, "k", { permits: 1 }).acquire({ signal })],
    ["a group", (client, signal) => acquireAll(client, ["k"], { signal })],
  ];

  it.each(ways)("%s whose write has landed", async (_, take) => {
    const caller = new AbortController();
    const { update, transact } = store;
    store.update = (...call) => update.apply(store, call).finally(() => caller.abort(new Error("enough")));
    store.transact = (...call) =>
      transact.apply(store, call).finally(() => caller.abort(new Error("enough")));
    const client = new LeaseClient({ store, clock, leaseDurationMs: 30_000 });
    const lease = await take(client, caller.signal).catch(() => undefined);
    await settled();
    expect(await adminOf(client).inspectAll("k")).toHaveLength(lease === undefined ? 0 : 1);
  });
});
