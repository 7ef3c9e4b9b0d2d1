import { LeaseClient, type LeaseClientOptions, type LeaseEvent, LeaseServiceError } from "@leasehold/client";
import { acquireAll } from "@leasehold/client/group";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, expect, it } from "vitest";
import { failureOf } from "../support/failure-of.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const everySecond = { strategy: "fixed", delayMs: 1_000 } as const;

let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];

const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
  new LeaseClient({ store, clock, owner, leaseDurationMs: 600_000, ...options });
const caller = (): LeaseClient => clientOf("g", { onEvent: (event) => events.push(event) });
/** The keys that were read, in their order. */
const reads = (): unknown[] =>
  store.calls.filter(({ method }) => method === "get").map(({ readsKey }) => readsKey);
/** When a call ends, in whatever way, on the monotonic clock. */
const endOf = (call: Promise<unknown>): Promise<number> =>
  Promise.allSettled([call]).then(() => clock.monotonic());

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
});

it("an own transaction that lands during the wait is recognised at the next look", async () => {
  const other = await clientOf("other").acquire("b");
  await clock.advance(500);
  store.next("request lost");
  const waiting = acquireAll(caller(), ["a", "b"], { waitMs: 60_000, retry: everySecond });
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
  await clientOf("dead").acquire("a", { leaseDurationMs: 4_000 });
  await clientOf("other").acquire("b");
  const retry = { strategy: "fixed", delayMs: 401 } as const;
  const failure = failureOf(acquireAll(caller(), ["a", "b"], { waitMs: 4_411, retry }));
  // It has been seen unchanged for its whole duration, and for the margin, after 10 looks.
  await clock.advance(4_411);
  expect(await failure).toMatchObject({ held: [{ key: "a" }, { key: "b" }] });
  expect(reads()).toEqual([...Array.from({ length: 9 }, () => "a"), "b", "b"]);
});

it("a look that finds one holder dead goes on to the next lock", async () => {
  const holders = [await clientOf("one").acquire("a"), await clientOf("two").acquire("b")];
  const ended = endOf(acquireAll(caller(), ["a", "b"], { waitMs: 60_000, retry: everySecond }));
  await clock.advance(500);
  for (const holder of holders) await holder.release();
  const behind = new ManualClock(clock.now() - 3_600_000);
  await clientOf("behind", { clock: behind }).acquire("a", { leaseDurationMs: 10_000 });
  await clock.advance(60_000);
  expect(await ended).toBe(1_000);
});

it("a wait that ends in vain names the locks in the order of the call, and when to try again", async () => {
  for (const key of ["a", "b", "c", "d"]) {
    await clientOf(key).acquire(key, { leaseDurationMs: key === "a" ? 2_000 : 60_000 });
  }
  await clock.advance(500);
  const failure = failureOf(
    acquireAll(caller(), ["a", "b", "c", "d"], { waitMs: 6_000, retry: everySecond }),
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
  await clientOf("other").acquire("a");
  store.get = (_request, { signal }) =>
    new Promise((_resolve, reject) => {
      const cutOff = (): void => reject(new LeaseServiceError("LEASE_NO_ANSWER", "cut off"));
      signal.addEventListener("abort", cutOff);
    });
  const stop = new AbortController();
  const { signal } = stop;
  const ended = endOf(acquireAll(caller(), ["a", "b"], { waitMs: 3_000, retry: everySecond, signal }));
  await clock.advance(1_400);
  happen(stop);
  await clock.advance(60_000);
  expect(await ended).toBe(atMs);
});
