// Every constructor and call, with each of its options right, and then hostile: a named error before any request, or a right
// result; and nothing stays held.

import { LeaseClient } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { FairLock, fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { describe, expect, test } from "vitest";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { Bench } from "./bench.ts";
import { checkPrototypes, hostiles } from "./hostile.ts";

// biome-ignore lint/suspicious/noExplicitAny: bad input is what is tested.
type Anything = any;

const duration = 30_000;
const shortWait = 0;
const owner = "é🔒";
const data = { a: [1, "b", null] };
const slot = "2025-12-31T10:00:00.000Z";
const runSlot = "2025-12-31T08:00:00.000Z";
const retry = { strategy: "exponential", delayMs: 1, maxDelayMs: 10 };
const order = fair({ maxWaiters: 2 });
const work = async (): Promise<string> => "done";
const backoff = { delayMs: 1, maxDelayMs: 5 };

const hold = { leaseDurationMs: duration, heartbeat: 10, owner, data, lockAtLeastForMs: 0, reentrant: true };
const waitInLine = { ...hold, waitMs: shortWait };
const wait = { ...waitInLine, retry };
const { lockAtLeastForMs: _, ...waitForShare } = wait;

/** One call of a client, or of what is made of it: right options, and how it is made. */
interface Entry {
  /** What the call takes first. @default - a key */
  readonly first?: unknown;
  /** @default none: it is what the call takes first that is tried */
  readonly options?: Readonly<Record<string, unknown>>;
  /** The options without which every call is refused. */
  readonly needed?: readonly string[];
  readonly call: (bench: Bench, key: Anything, options: Anything) => unknown;
}

/** Drains an async generator. */
async function all(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

const entries: Readonly<Record<string, Entry>> = {
  "new LeaseClient": {
    needed: ["store"],
    options: {
      store: new ScriptedStore(),
      owner,
      leaseDurationMs: duration,
      clockSkewMs: 1_000,
      retentionMs: 86_400_000,
      onEvent: work,
      randomness: { token: () => "token-1-0000000", fraction: () => 0.5 },
    },
    call: async (_, __, o) => (await new LeaseClient(o).acquire("k")).release(),
  },
  "new LeaseClient, for a table": {
    needed: ["tableName"],
    options: { tableName: "leases", dynamodb: { send: () => Promise.reject(new Error("offline")) } },
    call: (_, __, o) => new LeaseClient(o),
  },
  "client.acquire": { options: { ...wait, slot, order }, call: ({ client }, k, o) => client.acquire(k, o) },
  "client.acquire's retry, of a lock that another holds for a moment": {
    needed: ["strategy", "delayMs"],
    options: { strategy: "exponential", delayMs: 1, maxDelayMs: 100 },
    call: async (bench, k, o) => {
      const { store, clock, client } = bench;
      await new LeaseClient({ store, clock, leaseDurationMs: 1 }).acquire(k);
      bench.begin();
      return await client.acquire(k, { waitMs: 10_000, retry: o });
    },
  },
  "taskSet's and singleFlight's backoff": {
    options: { delayMs: 1, maxDelayMs: 10_000 },
    call: async (bench, k, o) => {
      await new TaskSet(bench.client, "set", { backoff: o }).claim();
      bench.begin();
      await new SingleFlight(bench.client, { freshForMs: 1, maxAttempts: 2, backoff: o }).getOrCompute(k, {
        compute: () => 1,
      });
    },
  },
  "client.tryAcquire": {
    options: { ...hold, slot, order },
    call: ({ client }, k, o) => client.tryAcquire(k, o),
  },
  "client.withLease": {
    options: { ...wait, slot, order },
    call: ({ client }, k, o) => client.withLease(k, o, async () => 1),
  },
  "client.inspect": { call: ({ client }, k) => client.inspect(k) },
  "admin.inspect": {
    options: { sortKey: "lease" },
    call: ({ client }, k, o) => adminOf(client).inspect(k, o),
  },
  "admin.inspectAll": { call: ({ client }, k) => adminOf(client).inspectAll(k) },
  "admin.describe": { call: ({ client }, k) => adminOf(client).describe(k) },
  "admin.list": {
    options: { prefix: owner, all: true },
    call: ({ client }, _, o) => all(adminOf(client).list(o)),
  },
  "admin.listPages": {
    options: { prefix: owner, all: true, after: { pk: "a", sk: "b" } },
    call: ({ client }, _, o) => all(adminOf(client).listPages(o)),
  },
  "admin.forceRelease": {
    needed: ["token"],
    options: { token: owner, sortKey: owner, onRefused: work },
    call: ({ client }, k, o) => adminOf(client).forceRelease(k, o),
  },
  "admin.requestRevocation": {
    needed: ["token"],
    options: { token: owner, sortKey: owner, reason: owner, onRefused: work },
    call: ({ client }, k, o) => adminOf(client).requestRevocation(k, o),
  },
  "admin.takeBackSlot": {
    needed: ["doneSlot"],
    options: { doneSlot: slot, to: runSlot },
    call: ({ client }, k, o) => adminOf(client).takeBackSlot(k, o),
  },
  "client.doneSlot": { call: ({ client }, k) => client.doneSlot(k) },
  "client.close": { options: { timeoutMs: shortWait }, call: ({ client }, _, o) => client.close(o) },
  fair: { options: { maxWaiters: 1, onPosition: work }, call: (_, __, o) => fair(o) },
  "new FairLock": {
    options: { maxWaiters: 1 },
    call: ({ client }, k, o) => new FairLock(client, k, o).acquire(),
  },
  "fairLock.acquire": {
    options: { ...waitInLine, onPosition: work },
    call: ({ client }, k, o) => new FairLock(client, k).acquire(o),
  },
  "fairLock.checkIn, checkOut": {
    needed: ["owner"],
    options: { owner, leaseDurationMs: duration, join: true },
    call: async (bench, k, o) => {
      const lock = new FairLock(bench.client, k);
      const visit = await lock.checkIn(o);
      bench.begin();
      if (visit.state === "held") await visit.lease.release();
      else await lock.checkOut(o);
    },
  },
  "new Semaphore": {
    needed: ["permits"],
    options: { permits: 0, order },
    call: ({ client }, k, o) => new Semaphore(client, k, o).tryAcquire(),
  },
  "semaphore.acquire": {
    options: { ...wait, permits: 1 },
    call: ({ client }, k, o) => new Semaphore(client, k, { permits: 2 }).acquire(o),
  },
  "semaphore.drain": {
    options: { waitMs: shortWait, retry },
    call: ({ client }, k, o) => new Semaphore(client, k, { permits: 2 }).drain(o),
  },
  "new ReadWriteLock": {
    options: { order },
    call: ({ client }, k, o) => new ReadWriteLock(client, k, o).tryWrite(),
  },
  "readWriteLock.read": {
    options: waitForShare,
    call: ({ client }, k, o) => new ReadWriteLock(client, k).read(o),
  },
  "readWriteLock.write": {
    options: waitForShare,
    call: ({ client }, k, o) => new ReadWriteLock(client, k).write(o),
  },
  acquireAll: { options: wait, call: ({ client }, k, o) => acquireAll(client, [k, "other"], o) },
  "acquireAll's keys": {
    first: ["a"],
    call: ({ client }, k) => acquireAll(client, k),
  },
  "new Leader": {
    options: {
      leaseDurationMs: duration,
      heartbeat: true,
      owner,
      data,
      pauseMs: shortWait,
      retry,
      onElected: work,
      onLost: work,
    },
    call: async ({ client }, k, o) => {
      const leader = new Leader(client, k, o);
      await leader.campaign();
      await leader.resign();
    },
  },
  "leader.campaign": {
    options: { signal: new AbortController().signal },
    call: async ({ client }, k, o) => {
      const leader = new Leader(client, k);
      await leader.campaign(o);
      await leader.resign();
    },
  },
  "new SingleFlight": {
    needed: ["freshForMs"],
    options: {
      freshForMs: duration,
      staleForMs: duration,
      failureForMs: duration,
      waitMs: shortWait,
      retry,
      computeTimeoutMs: duration,
      maxAttempts: 1,
      backoff,
      leaseDurationMs: duration,
      heartbeat: true,
      isCacheable: () => true,
      inProcessForMs: duration,
      maxInProcess: 1,
      refreshAheadMs: 0,
    },
    call: ({ client }, k, o) => new SingleFlight(client, o).getOrCompute(k, { compute: () => 7 }),
  },
  "singleFlight.getOrCompute": {
    needed: ["compute"],
    options: {
      compute: async () => "done",
      waitMs: shortWait,
      staleOnContention: true,
      staleOnError: true,
      inProcessForMs: 0,
      retry,
      computeTimeoutMs: duration,
      maxAttempts: 1,
      backoff,
      forceRefresh: true,
    },
    call: ({ client }, k, o) =>
      new SingleFlight(client, { freshForMs: 1_000, staleForMs: 1_000, inProcessForMs: 1_000 }).getOrCompute(
        k,
        o,
      ),
  },
  "singleFlight.invalidate": {
    call: ({ client }, k) => new SingleFlight(client, { freshForMs: 1_000 }).invalidate(k),
  },
  "new JobRuns": {
    needed: ["schedule"],
    options: {
      maxAttempts: 1,
      keepForMs: 86_400_000,
      leaseDurationMs: duration,
      heartbeat: true,
      owner,
      schedule: "rate(1 day)",
      timeZone: "UTC",
    },
    call: ({ client }, k, o) => new JobRuns(client, k, o).run("2025-12-31T08:00:00.000Z", async () => 1),
  },
  "jobRuns.run": {
    first: runSlot,
    options: { waitMs: shortWait, retry, owner, reentrant: true },
    call: ({ client }, k, o) => new JobRuns(client, "job").run(k, async () => 1, o),
  },
  "jobRuns.skip and get": {
    first: runSlot,
    call: async (bench, k, o) => {
      const runs = new JobRuns(bench.client, "job");
      await runs.get(k);
      bench.begin();
      await runs.skip(k, Object(o) === o ? undefined : o);
    },
  },
  "jobRuns.runs": {
    options: { since: slot, until: slot, state: "failed", descending: true, limit: 1 },
    call: ({ client }, _, o) => all(new JobRuns(client, "job").runs(o)),
  },
  "jobRuns.missed": {
    options: { schedule: "rate(1 day)", since: runSlot, until: runSlot },
    needed: ["schedule", "since"],
    call: ({ client }, _, o) => all(new JobRuns(client, "job").missed(o)),
  },
  "jobRuns.takeBack": {
    first: "a run",
    call: async (bench, k, o) => {
      const runs = new JobRuns(bench.client, "job");
      await runs.run("2025-12-31T08:00:00.000Z", async () => 1);
      const run = k === "a run" ? await runs.get("2025-12-31T08:00:00.000Z") : k;
      bench.begin();
      await runs.takeBack(run as Anything, Object(o) === o ? undefined : o);
    },
  },
  "new TaskSet": {
    options: {
      maxAttempts: 1,
      backoff,
      leaseDurationMs: duration,
      heartbeat: true,
      maxRunMs: duration,
      keepForMs: 86_400_000,
      rate: { claims: 1, perMs: 1_000 },
      owner,
    },
    call: async (bench, k, o) => {
      const tasks = new TaskSet(bench.client, k, o);
      await tasks.add([{ id: "1", payload: {} }]);
      bench.begin();
      await (await tasks.claim())?.succeed("done");
    },
  },
  "taskSet.add": {
    needed: ["id"],
    options: { id: "1", payload: data, maxAttempts: 1, delayMs: shortWait, serialKey: "customer-42" },
    call: ({ client }, _, o) => new TaskSet(client, "set").add([o]),
  },
  "taskSet.add's list": {
    first: [],
    call: ({ client }, k) => new TaskSet(client, "set").add(k),
  },
  "taskSet.process": {
    options: {
      concurrency: 1,
      pauseMs: shortWait,
      pollMs: 1_000,
      until: "drained",
      moreUrgent: [],
      retryAfterMs: shortWait,
    },
    call: ({ client }, _, o) => new TaskSet(client, "set").process(async () => "ok", o),
  },
  "taskSet.get, cancel and requeue": {
    options: { maxAttempts: 2, delayMs: shortWait },
    call: async (bench, k, o) => {
      const tasks = new TaskSet(bench.client, "set");
      await tasks.get(k);
      bench.begin();
      await tasks.cancel(k, k);
      bench.begin();
      await tasks.requeue(k, o);
    },
  },
  "taskSet.requeueAll": {
    options: { maxAttempts: 2, delayMs: shortWait },
    call: ({ client }, _, o) => new TaskSet(client, "set").requeueAll(o),
  },
  "taskSet.list": {
    options: { state: "failed" },
    call: ({ client }, _, o) => all(new TaskSet(client, "set").list(o)),
  },
  "new LeaseOperator": {
    needed: ["by"],
    options: { by: owner, auditRetentionMs: 86_400_000 },
    call: ({ client }, k, o) => new LeaseOperator(client, o).describe(k),
  },
  "operator.stop": {
    needed: ["token"],
    options: { token: owner, sortKey: owner, reason: owner },
    call: ({ client }, k, o) => new LeaseOperator(client, { by: "me" }).stop(k, o),
  },
  "operator.break": {
    needed: ["token", "reason"],
    options: { token: owner, sortKey: owner, reason: owner },
    call: ({ client }, k, o) => new LeaseOperator(client, { by: "me" }).break(k, o),
  },
  "operator.pause and resume": {
    needed: ["forMs", "reason"],
    options: { forMs: 1_000, reason: owner, waitMs: shortWait },
    call: async (bench, k, o) => {
      const operator = new LeaseOperator(bench.client, { by: "me" });
      await operator.pause(k, o);
      bench.begin();
      await operator.resume(k);
    },
  },
  "operator.resume": {
    options: { token: owner, reason: owner },
    call: ({ client }, k, o) => new LeaseOperator(client, { by: "me" }).resume(k, o),
  },
  "operator.history": {
    options: { sinceMs: 1, newestFirst: true, limit: 1 },
    call: ({ client }, k, o) => all(new LeaseOperator(client, { by: "me" }).history(k, o)),
  },
  "operator.audit": {
    options: { key: owner, prefix: owner, sinceMs: 1 },
    call: ({ client }, _, o) => all(new LeaseOperator(client, { by: "me" }).audit(o)),
  },
};

/** Makes a call; tells whether its input was taken. */
async function isTaken(call: Entry["call"], first: unknown, options: unknown): Promise<boolean> {
  const bench = new Bench();
  const result = await bench.check(() => call(bench, first, options));
  await bench.release(result);
  checkPrototypes();
  return bench.isAccepted;
}

/** An own property, also of the name __proto__. */
function withOwn(options: object, name: string, value: unknown): object {
  const descriptor = { value, enumerable: true, writable: true, configurable: true };
  return Object.defineProperty({ ...options }, name, descriptor);
}

describe.each(Object.entries(entries))(
  "%s",
  (_name, { first = "orders/1", options = {}, needed = [], call }) => {
    const least = Object.fromEntries(needed.map((name) => [name, options[name]]));

    test.each(Object.keys(options))("takes %s", async (option) => {
      const beside = option === "reentrant" ? { owner } : {};
      expect(await isTaken(call, first, { ...least, ...beside, [option]: options[option] })).toBe(true);
    });

    test("refuses an option that nobody knows", async () => {
      if (Object.keys(options).length === 0) return;
      for (const name of ["__proto__", "constructor", "leaseDurationMillis", "then", ""])
        expect(await isTaken(call, first, withOwn(least, name, 1)), name).toBe(false);
    });

    test("takes no harm of a hostile value in any place", async () => {
      for (const [hostile, make] of Object.entries(hostiles)) {
        const places = Object.keys(options).map((option) => withOwn(least, option, make()));
        for (const given of [...places, make()])
          await isTaken(call, first, given).catch((cause: unknown) => {
            throw new Error(`${hostile} among ${Object.keys(options)}`, { cause });
          });
        await isTaken(call, make(), least);
      }
    });
  },
);
