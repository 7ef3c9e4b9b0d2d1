import { ClientClosedError, CloseIncompleteError, LeaseClient, type LeaseEvent } from "@leasehold/client";
import { FairLock, fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { coreOf } from "@leasehold/client/internal";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { ManualClock, settled } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { follow } from "../support/follow.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 30_000;

let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];
let client: LeaseClient;
let other: LeaseClient;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
  const options = { store, clock, leaseDurationMs };
  client = new LeaseClient({ ...options, owner: "me", onEvent: (event) => events.push(event) });
  other = new LeaseClient({ ...options, owner: "other" });
});

const slot = "2026-01-01T00:00:00.000Z";
const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
/** Lets so many updates through; the later ones wait until the function that this gives is called. */
function holdUpdatesAfter(count: number): () => void {
  const update = store.update.bind(store);
  const gate = Promise.withResolvers<void>();
  let updates = 0;
  store.update = async (request, options) => {
    updates += 1;
    if (updates > count) await gate.promise;
    return await update(request, options);
  };
  return gate.resolve;
}
const outcomeOf = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

/** By the name of its primitive, how something comes to be held, under which key and place. */
const holds: Record<string, { sortKey: string; hold: () => Promise<unknown> }> = {
  lock: { sortKey: "lease", hold: () => client.acquire("k") },
  "fair lock": { sortKey: "lease", hold: () => client.acquire("k", { order: fair(), heartbeat: true }) },
  permit: { sortKey: "semaphore", hold: () => new Semaphore(client, "k", { permits: 1 }).acquire() },
  "read lock": { sortKey: "read-write", hold: () => new ReadWriteLock(client, "k").read() },
  "write lock": { sortKey: "read-write", hold: () => new ReadWriteLock(client, "k").write() },
  group: { sortKey: "lease", hold: () => acquireAll(client, ["k"]) },
  leadership: { sortKey: "lease", hold: () => new Leader(client, "k").campaign() },
  "adopted lease": {
    sortKey: "lease",
    hold: async () => client.adopt((await other.acquire("k")).toJSON()),
  },
  run: {
    sortKey: `run#${slot}`,
    hold: async () => {
      const runs = new JobRuns(client, "k");
      void runs.run(slot, ({ signal }) => untilAborted(signal)).catch(() => undefined);
      await settled();
    },
  },
  task: {
    sortKey: "task#",
    hold: async () => {
      const tasks = new TaskSet(client, "k");
      await tasks.add([{ id: "t" }]);
      return await tasks.claim();
    },
  },
  computation: {
    sortKey: "cache#flight",
    hold: async () => {
      const flights = new SingleFlight(client, { freshForMs: 1_000 });
      void flights
        .getOrCompute("k", { compute: ({ signal }) => untilAborted(signal) })
        .catch(() => undefined);
      await settled();
    },
  },
};

describe("client.held()", () => {
  it.each(Object.entries(holds))(
    "lists a %s while it is held, until the client is closed, which releases it",
    async (_, { sortKey, hold }) => {
      expect(client.held()).toEqual([]);
      await hold();
      expect(client.held().map((lease) => [lease.key, lease.sortKey.slice(0, sortKey.length)])).toEqual([
        ["k", sortKey],
      ]);
      expect(client.held()[0]?.held).toBe(true);
      await client.close();
      expect(client.held()).toEqual([]);
      expect(await adminOf(other).inspectAll("k")).toEqual([]);
    },
  );

  it.each(["first", "last"])(
    "lists a lease that is shared reentrantly once, by a handle that has not been released: the %s one",
    async (which) => {
      const options = { owner: "worker-1", reentrant: true };
      const outer = await client.acquire("k", options);
      const inner = await client.acquire("k", options);
      const [kept, released] = which === "first" ? [outer, inner] : [inner, outer];
      expect(client.held()).toHaveLength(1);
      const releasing = released.release();
      expect(client.held()[0]).toBe(kept);
      await releasing;
      expect(client.held().map((lease) => lease === kept)).toEqual([true]);
      await kept.release();
      expect(client.held()).toEqual([]);
    },
  );

  it("does not list a lease to listeners before its caller has it", async () => {
    const seen: unknown[] = [];
    const onEvent = (): void => void seen.push(telling.held());
    const telling = new LeaseClient({ store, clock, onEvent });
    const lease = await telling.acquire("k");
    expect(seen).toEqual([[]]);
    expect(telling.held()[0]).toBe(lease);
  });

  it("lists an adopted lease whose time seemed over from its first confirmed renewal on", async () => {
    const handle = (await other.acquire("k")).toJSON();
    const adopted = client.adopt({ ...handle, expiresAt: clock.now() - 1 });
    expect(client.held()).toEqual([]);
    await adopted.renew();
    expect(client.held()[0]).toBe(adopted);
  });

  it("releases an adopted lease that its heartbeat is to confirm", async () => {
    const handle = (await other.acquire("k")).toJSON();
    client.adopt({ ...handle, expiresAt: clock.now() - 1 }, { heartbeat: true });
    await client.close();
    expect(await other.inspect("k")).toBeUndefined();
  });

  it("remembers nothing of a lease that has ended, however it did", async () => {
    const { lifecycle } = coreOf(client);
    await (await client.acquire("released")).release();
    await client.acquire("expired", { leaseDurationMs: 2_000 });
    const { token } = await client.acquire("broken", { heartbeat: true });
    await adminOf(client).forceRelease("broken", { token });
    client.adopt({ ...(await other.acquire("adopted")).toJSON(), expiresAt: clock.now() - 1 });
    await new FairLock(client, "checked in").checkIn({ owner: "ticket-1" });
    await clock.advance(leaseDurationMs);
    expect(lifecycle.held).toEqual([]);
  });
});

describe("client.close()", () => {
  const waits: Record<string, () => Promise<unknown>> = {
    lock: () => client.acquire("k", { waitMs: 600_000 }),
    "fair lock": () => client.acquire("k", { waitMs: 600_000, order: fair() }),
    "lock with a signal": () =>
      client.acquire("k", { waitMs: 600_000, signal: new AbortController().signal }),
    permit: () => new Semaphore(client, "k", { permits: 1 }).acquire({ waitMs: 600_000 }),
    "fair permit": () =>
      new Semaphore(client, "k", { permits: 1, order: fair() }).acquire({ waitMs: 600_000 }),
    drain: () => new Semaphore(client, "k", { permits: 1 }).drain({ waitMs: 600_000 }),
    "read lock": () => new ReadWriteLock(client, "k").read({ waitMs: 600_000 }),
    "write lock": () => new ReadWriteLock(client, "k").write({ waitMs: 600_000 }),
    group: () => acquireAll(client, ["k", "free"], { waitMs: 600_000 }),
    campaign: () => new Leader(client, "k").campaign(),
    lead: () => new Leader(client, "k").lead(() => undefined),
    observation: async () => {
      for await (const _ of new Leader(client, "k").observe());
    },
    run: () => new JobRuns(client, "k").run(slot, () => "done", { waitMs: 600_000 }),
    computation: () =>
      new SingleFlight(client, { freshForMs: 1_000 }).getOrCompute("k", {
        compute: () => 1,
        waitMs: 600_000,
      }),
    "tasks to do": () => new TaskSet(client, "k").process(() => "done", { until: "never" }),
  };
  const holdElsewhere = async (): Promise<void> => {
    await other.acquire("k", { heartbeat: true });
    await new Semaphore(other, "k", { permits: 1 }).acquire({ heartbeat: true });
    await new ReadWriteLock(other, "k").write({ heartbeat: true });
    void new JobRuns(other, "k").run(slot, ({ signal }) => untilAborted(signal)).catch(() => undefined);
    const flights = new SingleFlight(other, { freshForMs: 1_000 });
    const compute = ({ signal }: { signal: AbortSignal }): Promise<never> => untilAborted(signal);
    void flights.getOrCompute("k", { compute }).catch(() => undefined);
    await settled();
  };

  it.each(Object.entries(waits))(
    "calls a wait off for a %s, which leaves nothing behind",
    async (_, wait) => {
      await holdElsewhere();
      const before = await adminOf(other).inspectAll("k");
      const outcome = outcomeOf(wait());
      await clock.advance(5_000);
      await client.close();
      expect(await outcome).toBeInstanceOf(ClientClosedError);
      const after = await adminOf(other).inspectAll("k");
      expect(after.map(({ token }) => token)).toEqual(before.map(({ token }) => token));
      expect((await new FairLock(other, "k").inspect()).waiting).toEqual([]);
    },
  );

  it.each(Object.entries(waits))("refuses a %s from then on, before a request is sent", async (_, wait) => {
    await client.close();
    const calls = store.calls.length;
    expect(await outcomeOf(wait())).toMatchObject({ name: "ClientClosedError", code: "LEASE_CLIENT_CLOSED" });
    expect(store.calls).toHaveLength(calls);
  });

  it("calls a computation off whose look at the lock hangs, beside a cache of the user's", async () => {
    await holdElsewhere();
    const flights = new SingleFlight(client, { freshForMs: 1_000, cache: new Map() });
    const outcome = outcomeOf(flights.getOrCompute("k", { compute: () => 1, waitMs: 600_000 }));
    await settled();
    store.get = (_, { signal }) => untilAborted(signal);
    await clock.advance(1_000);
    await client.close({ timeoutMs: 0 });
    expect(await outcome).toBeInstanceOf(ClientClosedError);
  });

  it("refuses to try, to adopt and to check in as well, but lets people look and break", async () => {
    const handle = (await other.acquire("k")).toJSON();
    await client.close();
    await expect(client.tryAcquire("k2")).rejects.toBeInstanceOf(ClientClosedError);
    expect(() => client.adopt(handle)).toThrow(ClientClosedError);
    await expect(new FairLock(client, "k").checkIn({ owner: "ticket-1" })).rejects.toBeInstanceOf(
      ClientClosedError,
    );
    expect(await client.inspect("k")).toMatchObject({ owner: "other" });
    expect(await adminOf(client).forceRelease("k", { token: handle.token })).toBe(true);
  });

  it("does not give out a lease that is shared meanwhile", async () => {
    const again = { owner: "me", reentrant: true } as const;
    const first = await client.acquire("k", again);
    const shared = client.acquire("k", again);
    const closing = client.close();
    await expect(shared).rejects.toBeInstanceOf(ClientClosedError);
    await closing;
    expect(first.held).toBe(false);
  });

  it("waits until an abandoned waiter's ticket has left the queue", async () => {
    await other.acquire("k", { heartbeat: true });
    const stop = new AbortController();
    const waiting = outcomeOf(client.acquire("k", { order: fair(), waitMs: 600_000, signal: stop.signal }));
    await clock.advance(5_000);
    expect((await new FairLock(other, "k").inspect()).waiting).toHaveLength(1);
    const answer = holdUpdatesAfter(0);
    stop.abort(new Error("stop"));
    expect(await waiting).toMatchObject({ code: "LEASE_ABORTED", cause: stop.signal.reason });
    let isClosed = false;
    const closing = client.close().then(() => {
      isClosed = true;
    });
    await settled();
    expect(isClosed).toBe(false);
    answer();
    await closing;
    expect((await new FairLock(other, "k").inspect()).waiting).toEqual([]);
  });

  it.each([
    ["a lease", () => client.acquire("k")],
    ["a group", () => acquireAll(client, ["k", "l"])],
  ])("lets %s go that is won at the very moment of closing", async (_, acquire) => {
    const answered = Promise.withResolvers<void>();
    const { update, transact } = store;
    store.update = async (...call) => {
      store.update = update;
      const result = await store.update(...call);
      await answered.promise;
      return result;
    };
    store.transact = async (...call) => {
      store.update = update;
      const result = await transact.apply(store, call);
      await answered.promise;
      return result;
    };
    const outcome = outcomeOf(acquire());
    await settled();
    const closing = client.close();
    answered.resolve();
    await closing;
    expect(await outcome).toBeInstanceOf(ClientClosedError);
    expect(await other.inspect("k")).toBeUndefined();
    expect(await other.inspect("l")).toBeUndefined();
  });

  it("tells which keys may stay held, and until when, where the service fails; the client is closed all the same", async () => {
    const { expiresAt } = await client.acquire("a");
    await client.acquire("b");
    store.next("request lost");
    const error = await outcomeOf(client.close());
    expect(error).toMatchObject({
      name: "CloseIncompleteError",
      code: "LEASE_CLOSE_INCOMPLETE",
      left: [{ key: "a", sortKey: "lease", expiresAt, error: { code: "LEASE_NO_ANSWER" } }],
      cause: { code: "LEASE_NO_ANSWER" },
    });
    expect((error as Error).message).toContain(`"a" until ${new Date(expiresAt).toISOString()}`);
    expect(await other.inspect("b")).toBeUndefined();
    await expect(client.acquire("c")).rejects.toBeInstanceOf(ClientClosedError);
  });

  it.each([
    ["an acquisition", 1, ["k"], () => client.acquire("k")],
    ["a group", 0, ["k", "l"], () => acquireAll(client, ["k", "l"])],
  ] as const)(
    "tells every lock of %s that may still have to be taken back",
    async (_, answered, keys, call) => {
      store.next("answer lost");
      const answer = holdUpdatesAfter(answered);
      expect(await outcomeOf(call())).toMatchObject({ code: "LEASE_NO_ANSWER" });
      const closed = outcomeOf(client.close({ timeoutMs: 400 }));
      const expiresAt = clock.now() + leaseDurationMs;
      await clock.advance(400);
      expect(await closed).toMatchObject({
        left: keys.map((key) => ({ key, sortKey: "lease", expiresAt, error: undefined })),
      });
      answer();
      await client.close();
    },
  );

  it("waits no longer than its timeout for a service that confirms one lease after the other", async () => {
    for (const key of ["a", "b", "c"]) await client.acquire(key);
    const update = store.update.bind(store);
    let releases = 0;
    store.update = async (request, options) => {
      releases += 1;
      await new Promise<void>((resolve) => clock.schedule(resolve, 300 * releases));
      return await update(request, options);
    };
    const closed = outcomeOf(client.close({ timeoutMs: 400 }));
    await clock.advance(400);
    expect(await closed).toMatchObject({ left: [{ key: "b" }, { key: "c" }] });
    await clock.advance(500);
    await client.close();
  });

  it("tells that a call has not ended, which cannot be cut off; what that wins after all is let go", async () => {
    const tasks = new TaskSet(client, "k");
    await tasks.add([{ id: "t" }]);
    const answer = holdUpdatesAfter(0);
    const claim = outcomeOf(tasks.claim());
    await settled();
    const closed = outcomeOf(client.close({ timeoutMs: 400 }));
    await clock.advance(400);
    expect(await closed).toMatchObject({ code: "LEASE_CLOSE_INCOMPLETE", left: [], callsUnderWay: 1 });
    answer();
    expect(await claim).toBeInstanceOf(ClientClosedError);
    await client.close();
    expect(await adminOf(other).inspectAll("k")).toEqual([]);
  });

  it("leaves a release that failed before to its caller, and forgets one that failed once a later one succeeds", async () => {
    const [before, meanwhile] = [await client.acquire("a"), await client.acquire("b")];
    store.weather = "throttled";
    await outcomeOf(before.release());
    const left = [{ key: "b", error: { code: "LEASE_THROTTLED" } }];
    for (let calls = 0; calls < 2; calls += 1)
      expect(await outcomeOf(client.close())).toMatchObject({ left });
    store.weather = undefined;
    await meanwhile.release();
    await client.close();
  });

  it("refuses a timeout of -1 before it closes anything", async () => {
    const lease = await client.acquire("k");
    await expect(client.close({ timeoutMs: -1 })).rejects.toMatchObject({ option: "timeoutMs" });
    expect(lease.held).toBe(true);
  });

  it("ends `await using` without complaint, unless it meets a mistake in the program", async () => {
    {
      await using inner = new LeaseClient({ store, clock, owner: "inner" });
      await inner.acquire("k");
      await inner.acquire("l");
      store.next("rejected");
    }
    expect(await other.inspect("k")).toMatchObject({ owner: "inner" });
    expect(await other.inspect("l")).toBeUndefined();
    client.close = () => Promise.reject(new TypeError("a mistake"));
    await expect(client[Symbol.asyncDispose]()).rejects.toThrow("a mistake");
  });
});
describe("an incomplete close", () => {
  const closed = async (): Promise<CloseIncompleteError> => {
    const closing = outcomeOf(client.close({ timeoutMs: 1_000 }));
    await clock.advance(1_000);
    return (await closing) as CloseIncompleteError;
  };

  it("names five keys at most, with their ends, and has all of them", async () => {
    for (let index = 1; index <= 7; index += 1) await client.acquire(`k${index}`);
    store.weather = "throttled";
    const error = await closed();
    expect(error).toBeInstanceOf(CloseIncompleteError);
    expect(error.left).toHaveLength(7);
    expect(error.message).toMatch(
      /7 keys may stay held \("k1" until \S+, "k2" until .*, "k5" until [^,]*\), 0 calls/,
    );
    expect(error.cause).toMatchObject({ code: "LEASE_THROTTLED" });
  });

  it("has the first error there is as its cause, beside requests without an answer", async () => {
    for (const key of ["a", "b"]) await client.acquire(key);
    store.next("hangs", "throttled");
    const error = await closed();
    expect(error.left.map(({ error }) => error === undefined).toSorted()).toEqual([false, true]);
    for (const left of [error.left, error.left.toReversed()])
      expect(new CloseIncompleteError(left, 0).cause).toMatchObject({ code: "LEASE_THROTTLED" });
  });

  it("without a timeout is given up after ten seconds in which nothing is confirmed", async () => {
    for (const key of ["a", "b"]) await client.acquire(key);
    const update = store.update.bind(store);
    let count = 0;
    store.update = (request, call) => {
      count += 1;
      // One is confirmed after eight seconds, the other never.
      if (count > 1) return new Promise(() => undefined);
      return new Promise((resolve) => clock.schedule(() => resolve(update(request, call)), 8_000));
    };
    const closing = follow(client.close(), clock);
    await clock.advance(17_999);
    expect(closing.error).toBeUndefined();
    await clock.advance(2_001);
    expect(closing.error).toMatchObject({ code: "LEASE_CLOSE_INCOMPLETE" });
  });
});

describe("a lease that ends in the moment in which its renewal is confirmed", () => {
  it.each(Array.from({ length: 12 }, (_, step) => step))(
    "is not released once more, %i steps of promises after the answer",
    async (step) => {
      const lease = await client.acquire("k");
      const update = store.update.bind(store);
      store.update = async (request, call) => {
        const result = await update(request, call);
        const end = (left: number): void => {
          if (left > 0) queueMicrotask(() => end(left - 1));
          else {
            clock.freeze(2 * leaseDurationMs);
            expect(lease.held).toBe(false);
          }
        };
        queueMicrotask(() => end(step));
        return result;
      };
      // Rejects where the end comes first.
      await lease.renew().catch((error: unknown) => expect(error).toMatchObject({ reason: "expired" }));
      await settled();
      store.calls.length = 0;
      await client.close();
      expect(store.calls).toEqual([]);
    },
  );
});
