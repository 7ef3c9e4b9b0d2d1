import { LeaseClient, type LeaseClientOptions, type LeaseEvent, LeaseServiceError } from "@leasehold/client";
import { acquireAll } from "@leasehold/client/group";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { failureOf } from "../support/failure-of.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];

const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
  new LeaseClient({ store, clock, owner, leaseDurationMs: 10_000, ...options });
/** The caller whose events are kept. */
const caller = (options: Partial<LeaseClientOptions> = {}): LeaseClient =>
  clientOf("g", { onEvent: (event) => events.push(event), ...options });
const eventsOf = (type: LeaseEvent["type"]): LeaseEvent[] => events.filter((event) => event.type === type);
/** When a call ends, in whatever way, on the monotonic clock. */
const endOf = (call: Promise<unknown>): Promise<number> =>
  Promise.allSettled([call]).then(() => clock.monotonic());
/** Does something before and after each transaction; the first one is number 1. */
function around(hooks: {
  readonly before?: (round: number) => Promise<unknown>;
  readonly after?: (round: number) => void;
}): void {
  const transact = store.transact.bind(store);
  store.transact = async (...call) => {
    const round = store.count("transact") + 1;
    await hooks.before?.(round);
    const result = await transact(...call);
    hooks.after?.(round);
    return result;
  };
}
/** Whether a copy of the first transaction lands now. */
const landLate = (): boolean => {
  const first = store.calls.find(({ method }) => method === "transact");
  return store.table.transactNow(first?.entries ?? []).applied;
};

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
});

describe("a transaction that is not answered is given up", () => {
  it.each([
    ["10 s, however long the leases are", 30_000, 0, 10_000],
    ["the time of its leases", 5_000, 0, 5_000],
    ["a second, however short the leases are", 500, 0, 1_000],
    ["the time that its caller waits", 30_000, 3_000, 3_000],
    ["a second, however short the wait is", 30_000, 200, 1_000],
  ])("after %s", async (_, leaseDurationMs, waitMs, afterMs) => {
    store.weather = "hangs";
    const failed = endOf(acquireAll(caller(), ["a"], { leaseDurationMs, waitMs }));
    await clock.advance(60_000);
    expect(await failed).toBe(afterMs);
  });
});

it("a conflict is met with longer and longer pauses, to the end of the wait and no further", async () => {
  const sentAt: number[] = [];
  store.transact = async () => {
    sentAt.push(clock.monotonic());
    throw new LeaseServiceError("LEASE_CONFLICT", "another write of the same item was under way");
  };
  const randomness = { token: () => crypto.randomUUID(), fraction: () => 0.5 };
  const failed = endOf(acquireAll(caller({ randomness }), ["a", "b"], { waitMs: 2_230 }));
  await clock.advance(60_000);
  const atLongest = Array.from({ length: 13 }, (_, index) => 310 + index * 160);
  expect(sentAt).toEqual([0, 10, 30, 70, 150, ...atLongest]);
  expect(await failed).toBe(2_230);
});

it("a caller that pauses after a conflict keeps no other request of its client waiting", async () => {
  store.transact = async () => {
    throw new LeaseServiceError("LEASE_CONFLICT", "another write of the same item was under way");
  };
  const client = caller();
  const failed = Array.from({ length: 50 }, () => endOf(acquireAll(client, ["a", "b"])));
  await settled();
  const acquiring = client.acquire("c").then(() => clock.monotonic());
  await clock.advance(3_000);
  expect(await acquiring).toBe(0);
  // A conflict is met for a while even by a caller that does not wait.
  for (const at of await Promise.all(failed)) expect(at).toBeGreaterThan(1_000);
});

describe("a try", () => {
  it("ends after three transactions when the locks change hands in each, and names no holder", async () => {
    const busy = clientOf("busy", { clock: new ManualClock(clock.now() + 3_600_000) });
    around({ before: async () => (await busy.acquire("b")).release() });
    await expect(acquireAll(caller(), ["a", "b"])).rejects.toMatchObject({
      code: "LEASE_UNAVAILABLE",
      key: "a",
      held: [],
      retryAfterMs: 0,
    });
    expect(store.count("transact")).toBe(3);
  });

  it("takes a lock as free that its dead holder releases before it is taken over", async () => {
    const dead = await clientOf("dead").acquire("a");
    await clock.advance(11_001);
    around({ before: async (round) => round === 2 && (await dead.release()) });
    expect((await acquireAll(caller(), ["a", "b"])).held).toBe(true);
    expect(store.count("transact")).toBe(3);
    expect(eventsOf("takeover")).toEqual([]);
  });

  it("after a lost answer takes what it has won from itself, which is told as no takeover", async () => {
    store.next("answer lost");
    const waiting = acquireAll(caller(), ["a", "b"], { waitMs: 5_000 });
    await clock.advance(1_000);
    expect((await waiting).held).toBe(true);
    expect(eventsOf("takeover")).toEqual([]);
    expect(eventsOf("acquired")).toMatchObject([{ key: "a" }, { key: "b" }]);
  });

  it("takes the other dead locks over all the same when one of them is released meanwhile", async () => {
    const dead = await clientOf("dead").acquire("b");
    await clientOf("dead").acquire("a");
    await clock.advance(11_001);
    around({ before: async (round) => round === 2 && (await dead.release()) });
    expect((await acquireAll(caller(), ["a", "b"])).held).toBe(true);
    expect(eventsOf("takeover")).toMatchObject([{ key: "a", from: { owner: "dead" } }]);
  });

  it("whose answer comes after all the time of its leases takes them over from itself: 1 more", async () => {
    await clientOf("dead").acquire("b", { leaseDurationMs: 500 });
    await clock.advance(11_001);
    around({ after: (round) => round === 2 && clock.freeze(500) });
    const group = await acquireAll(caller(), ["a", "b"], { leaseDurationMs: 500 });
    expect(group.remainingMs()).toBe(500);
    expect(store.count("transact")).toBe(3);
  });
});

describe("a call that gives up takes back", () => {
  it("nothing where the service was too busy", async () => {
    store.next("throttled");
    await expect(acquireAll(caller(), ["a", "b"])).rejects.toBeInstanceOf(LeaseServiceError);
    await settled();
    expect(store.calls.map(({ method }) => method)).toEqual(["transact"]);
  });

  it("all locks of a transaction that has landed, from a service that shows only what it is asked for", async () => {
    const update = store.update.bind(store);
    store.update = async (request, call) => {
      const result = await update(request, call);
      return result.applied && !request.returnsItem ? { ...result, item: undefined } : result;
    };
    store.next("answer lost");
    await expect(acquireAll(caller(), ["a", "b"])).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    await settled();
    for (const key of ["a", "b"]) expect(await clientOf("x").inspect(key)).toBeUndefined();
  });

  it("each of its locks by itself: one that cannot be taken back keeps no other one", async () => {
    store.next("answer lost", undefined, "request lost");
    await expect(acquireAll(caller(), ["a", "b", "c"])).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    await settled();
    const held = await Promise.all(["a", "b", "c"].map((key) => clientOf("x").inspect(key)));
    expect(held.map((lease) => lease?.key)).toEqual([undefined, "b", undefined]);
  });

  it("all locks of its first transaction, where that lands after a later one was refused", async () => {
    const other = await clientOf("other", { store: store.table }).acquire("b");
    await clock.advance(10);
    store.next("request lost");
    const giveUp = new AbortController();
    const waiting = acquireAll(caller(), ["a", "b"], { waitMs: 60_000, signal: giveUp.signal });
    await clock.advance(1_000);
    expect(store.count("transact")).toBe(2);
    await other.release();
    expect(landLate()).toBe(true);
    giveUp.abort(new Error("enough"));
    await expect(waiting).rejects.toMatchObject({
      code: "LEASE_ABORTED",
      key: "a",
      message: expect.stringContaining("enough"),
    });
    await settled();
    for (const key of ["a", "b"]) expect(await clientOf("x").inspect(key)).toBeUndefined();
  });

  it("nothing from another holder, and meets no mistake", async () => {
    const other = await clientOf("other", { store: store.table }).acquire("a");
    await clock.advance(10);
    store.next("request lost");
    await expect(acquireAll(caller(), ["a", "b"])).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    await settled();
    await other.renew();
    expect(store.calls.map(({ method }) => method)).toEqual(["transact", "update", "update"]);
    expect(eventsOf("error")).toEqual([]);
  });

  it("what lands between its two writes", async () => {
    const other = await clientOf("other", { store: store.table }).acquire("a");
    await clock.advance(10);
    const update = store.update.bind(store);
    store.update = async (...call) => {
      if (store.count("update") === 1) {
        await other.release();
        expect(landLate()).toBe(true);
      }
      return await update(...call);
    };
    store.next("request lost");
    await expect(acquireAll(caller(), ["a", "b"])).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    await settled();
    expect(store.count("update")).toBe(4);
    for (const key of ["a", "b"]) expect(await clientOf("x").inspect(key)).toBeUndefined();
  });
});

describe("a wait", () => {
  const everySecond = { strategy: "fixed", delayMs: 1_000 } as const;
  const longClientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
    clientOf(owner, { leaseDurationMs: 600_000, ...options });
  const longCaller = (): LeaseClient => caller({ leaseDurationMs: 600_000 });
  /** The keys that were read, in their order. */
  const reads = (): unknown[] =>
    store.calls.filter(({ method }) => method === "get").map(({ readsKey }) => readsKey);

  it("an own transaction that lands during the wait is recognised at the next look", async () => {
    const other = await longClientOf("other").acquire("b");
    await clock.advance(500);
    store.next("request lost");
    const waiting = acquireAll(longCaller(), ["a", "b"], { waitMs: 60_000, retry: everySecond });
    const ended = endOf(waiting);
    // Lost, refused, and a look.
    await clock.advance(2_100);
    await other.release();
    const [lost] = store.calls.filter(({ method }) => method === "transact");
    expect(store.table.transactNow(lost?.entries ?? []).applied).toBe(true);
    await clock.advance(60_000);
    expect(await ended).toBe(3_500);
    expect(events.filter(({ type }) => type === "acquired")).toMatchObject([
      { key: "a", waitedMs: 3_000 },
      { key: "b", waitedMs: 3_000 },
    ]);
  });

  it("a lock is not read any more from the moment when its holder's time is over", async () => {
    await longClientOf("dead").acquire("a", { leaseDurationMs: 4_000 });
    await longClientOf("other").acquire("b");
    const retry = { strategy: "fixed", delayMs: 401 } as const;
    const failure = failureOf(acquireAll(longCaller(), ["a", "b"], { waitMs: 4_411, retry }));
    // It has been seen unchanged for its whole duration, and for the margin, after 10 looks.
    await clock.advance(4_411);
    expect(await failure).toMatchObject({ held: [{ key: "a" }, { key: "b" }] });
    expect(reads()).toEqual([...Array.from({ length: 9 }, () => "a"), "b", "b"]);
  });

  it("a look that finds one holder dead goes on to the next lock", async () => {
    const holders = [await longClientOf("one").acquire("a"), await longClientOf("two").acquire("b")];
    const ended = endOf(acquireAll(longCaller(), ["a", "b"], { waitMs: 60_000, retry: everySecond }));
    await clock.advance(500);
    for (const holder of holders) await holder.release();
    const behind = new ManualClock(clock.now() - 3_600_000);
    await longClientOf("behind", { clock: behind }).acquire("a", { leaseDurationMs: 10_000 });
    await clock.advance(60_000);
    expect(await ended).toBe(1_000);
  });

  it("a wait that ends in vain names the locks in the order of the call, and when to try again", async () => {
    for (const key of ["a", "b", "c", "d"]) {
      await longClientOf(key).acquire(key, { leaseDurationMs: key === "a" ? 2_000 : 60_000 });
    }
    await clock.advance(500);
    const failure = failureOf(
      acquireAll(longCaller(), ["a", "b", "c", "d"], { waitMs: 6_000, retry: everySecond }),
    );
    await clock.advance(6_000);
    // The one that is read next comes first for the wait.
    expect(reads().at(-1)).toBe("b");
    expect(await failure).toMatchObject({
      held: ["a", "b", "c", "d"].map((key) => ({ key, holder: key })),
      // They have to be seen unchanged for their duration and the margin.
      retryAfterMs: 54_150,
    });
  });

  it.each([
    ["its caller aborts", (stop: AbortController) => stop.abort(), 1_400],
    ["its wait is over", () => undefined, 3_000],
  ])("a read that hangs is given up when %s", async (_, happen, atMs) => {
    await longClientOf("other").acquire("a");
    store.get = (_request, { signal }) =>
      new Promise((_resolve, reject) => {
        const cutOff = (): void => reject(new LeaseServiceError("LEASE_NO_ANSWER", "cut off"));
        signal.addEventListener("abort", cutOff);
      });
    const stop = new AbortController();
    const { signal } = stop;
    const ended = endOf(acquireAll(longCaller(), ["a", "b"], { waitMs: 3_000, retry: everySecond, signal }));
    await clock.advance(1_400);
    happen(stop);
    await clock.advance(60_000);
    expect(await ended).toBe(atMs);
  });
});
