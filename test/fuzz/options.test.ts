// Options of every constructor and call: right, hostile, misspelt, inherited, behind getters.

import { LeaseClient } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { FairLock, fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { ManualClock } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import fc from "fast-check";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { Bench } from "./bench.ts";
import { fuzz } from "./fuzz.ts";
import { fewHostileOptions, made, madeOptions, mostly, namesIn, type Recipe } from "./hostile.ts";

// biome-ignore lint/suspicious/noExplicitAny: bad input is what is tested.
type Anything = any;

/** At least so many of all cases pass validation. */
const leastAccepted = 0.1;
const duration = fc.integer({ min: 1, max: 120_000 });
const shortWait = fc.constantFrom(0, 1, 1_000);
const owner = fc.constantFrom("a", "b", "é🔒");
const data = fc.jsonValue({ maxDepth: 2 });
const key = mostly(fc.constantFrom("k", "orders/1", "a\u0000b", "__proto__", "ü".repeat(1_024)));
const slot = fc.constantFrom("2025-12-31T10:00:00.000Z", "7", new Date(0));
const runSlot = fc.constantFrom(
  "2025-12-31T10:00:00.000Z",
  "2025-12-31T08:00:00.000Z",
  new Date(Date.UTC(2025, 11, 30)),
);
const retry = fc.constantFrom(
  { strategy: "untilExpiry" },
  { strategy: "fixed", delayMs: 5 },
  { strategy: "exponential", delayMs: 1, maxDelayMs: 10 },
  { strategy: "exponential", delayMs: Number.NaN },
  { strategy: "__proto__" },
  { strategy: "fixed" },
);
const order = fc.constantFrom(fair(), fair({ maxWaiters: 2 }));
const work = fc.constantFrom(
  async () => "done",
  () => 7,
  () => undefined,
);

const hold = {
  leaseDurationMs: duration,
  heartbeat: fc.constantFrom(true, false, 10),
  owner,
  data,
  lockAtLeastForMs: fc.integer({ min: 0, max: 1_000 }),
  reentrant: fc.boolean(),
};
const waitInLine = { ...hold, waitMs: shortWait };
const wait = { ...waitInLine, retry };
const { lockAtLeastForMs: _, ...waitForShare } = wait;
const backoff = fc.constantFrom({ delayMs: 1, maxDelayMs: 5 }, { delayMs: 1 }, { delayMs: -1 }, {});

/** One call of a client, or of what is made of it: its options, and how it is made. */
interface Entry {
  /** What the call takes first. @default - a key */
  readonly first?: fc.Arbitrary<Recipe>;
  /** @default none: it is what the call takes first that is tried */
  readonly options?: Readonly<Record<string, fc.Arbitrary<unknown>>>;
  /** The options without which every call is refused. */
  readonly needed?: readonly string[];
  readonly call: (bench: Bench, key: Anything, options: Anything) => unknown;
}

/** Drains an async generator. */
async function all(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

const entries: Readonly<Record<string, Entry>> = {
  "client.acquire": { options: { ...wait, slot, order }, call: ({ client }, k, o) => client.acquire(k, o) },
  "client.acquire's retry, of a lock that another holds for a moment": {
    needed: ["strategy", "delayMs"],
    options: {
      strategy: fc.constantFrom("untilExpiry", "fixed", "linear", "exponential", "fullJitter", "toString"),
      delayMs: fc.constantFrom(1, 100),
      maxDelayMs: fc.constantFrom(100, 1_000),
    },
    call: async (bench, k, o) => {
      const { store, clock, client } = bench;
      await new LeaseClient({ store, clock, leaseDurationMs: 1 }).acquire(k);
      bench.begin();
      return await client.acquire(k, { waitMs: 10_000, retry: o });
    },
  },
  "taskSet's and singleFlight's backoff": {
    options: {
      delayMs: fc.constantFrom(1),
      maxDelayMs: fc.constantFrom(10_000, 20_000),
    },
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
    options: { sortKey: fc.constantFrom("lease", "x") },
    call: ({ client }, k, o) => adminOf(client).inspect(k, o),
  },
  "admin.inspectAll": { call: ({ client }, k) => adminOf(client).inspectAll(k) },
  "admin.describe": { call: ({ client }, k) => adminOf(client).describe(k) },
  "admin.list": {
    options: { prefix: owner, all: fc.boolean() },
    call: ({ client }, _, o) => all(adminOf(client).list(o)),
  },
  "admin.listPages": {
    options: {
      prefix: owner,
      all: fc.boolean(),
      after: fc.constantFrom({ pk: "a", sk: "b" }, {}, { pk: 1 }),
    },
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
    options: { doneSlot: slot, to: slot },
    call: ({ client }, k, o) => adminOf(client).takeBackSlot(k, o),
  },
  "client.doneSlot": { call: ({ client }, k) => client.doneSlot(k) },
  "client.close": { options: { timeoutMs: shortWait }, call: ({ client }, _, o) => client.close(o) },
  fair: { options: { maxWaiters: fc.constantFrom(1, 500), onPosition: work }, call: (_, __, o) => fair(o) },
  "new FairLock": {
    options: { maxWaiters: fc.constantFrom(1, 500) },
    call: ({ client }, k, o) => new FairLock(client, k, o).acquire(),
  },
  "fairLock.acquire": {
    options: { ...waitInLine, onPosition: work },
    call: ({ client }, k, o) => new FairLock(client, k).acquire(o),
  },
  "fairLock.checkIn, checkOut": {
    needed: ["owner"],
    options: { owner, leaseDurationMs: duration, join: fc.boolean() },
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
    options: { permits: fc.integer({ min: 0, max: 1_000 }), order },
    call: ({ client }, k, o) => new Semaphore(client, k, o).tryAcquire(),
  },
  "semaphore.acquire": {
    options: { ...wait, permits: fc.constantFrom(1, 2, 3) },
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
    first: mostly(fc.constantFrom(["a"], ["a", "b"], ["b", "a", "c"])),
    call: ({ client }, k) => acquireAll(client, k),
  },
  "new Leader": {
    options: {
      leaseDurationMs: duration,
      heartbeat: fc.constantFrom(true, 10),
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
    options: { signal: fc.constant(new AbortController().signal) },
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
      maxAttempts: fc.constantFrom(1, 3),
      backoff,
      leaseDurationMs: duration,
      heartbeat: fc.boolean(),
      isCacheable: fc.constant(() => true),
      inProcessForMs: duration,
      maxInProcess: fc.constantFrom(1, 1_000),
      refreshAheadMs: fc.constantFrom(0, 1),
    },
    call: ({ client }, k, o) => new SingleFlight(client, o).getOrCompute(k, { compute: () => 7 }),
  },
  "singleFlight.getOrCompute": {
    needed: ["compute"],
    options: {
      compute: fc.constantFrom(
        async () => "done",
        () => 7,
      ),
      waitMs: shortWait,
      staleOnContention: fc.boolean(),
      staleOnError: fc.boolean(),
      inProcessForMs: fc.constantFrom(0, 1_000),
      retry,
      computeTimeoutMs: duration,
      maxAttempts: fc.constantFrom(1, 2),
      backoff,
      forceRefresh: fc.boolean(),
    },
    call: ({ client }, k, o) =>
      new SingleFlight(client, { freshForMs: 1_000, inProcessForMs: 1_000 }).getOrCompute(k, o),
  },
  "singleFlight.invalidate": {
    call: ({ client }, k) => new SingleFlight(client, { freshForMs: 1_000 }).invalidate(k),
  },
  "new JobRuns": {
    needed: ["schedule"],
    options: {
      maxAttempts: fc.constantFrom(1, 3),
      keepForMs: fc.constant(86_400_000),
      leaseDurationMs: duration,
      heartbeat: fc.boolean(),
      owner,
      schedule: fc.constantFrom("rate(1 day)", "cron(0 8 * * ? *)", "rate(0 days)"),
      timeZone: fc.constantFrom("UTC", "Europe/Berlin", "Mars"),
    },
    call: ({ client }, k, o) => new JobRuns(client, k, o).run("2025-12-31T08:00:00.000Z", async () => 1),
  },
  "jobRuns.run": {
    first: mostly(runSlot),
    options: { waitMs: shortWait, retry, owner, reentrant: fc.boolean() },
    call: ({ client }, k, o) => new JobRuns(client, "job").run(k, async () => 1, o),
  },
  "jobRuns.skip and get": {
    first: mostly(runSlot),
    call: async (bench, k, o) => {
      const runs = new JobRuns(bench.client, "job");
      await runs.get(k);
      bench.begin();
      await runs.skip(k, Object(o) === o ? undefined : o);
    },
  },
  "jobRuns.runs": {
    options: {
      since: slot,
      until: slot,
      state: fc.constantFrom("failed", ["failed", "lost"], "sleeping"),
      descending: fc.boolean(),
      limit: fc.constantFrom(1, 5),
    },
    call: ({ client }, _, o) => all(new JobRuns(client, "job").runs(o)),
  },
  "jobRuns.missed": {
    options: {
      schedule: fc.constantFrom("rate(1 day)", "cron(0 8 * * ? *)"),
      since: runSlot,
      until: runSlot,
    },
    needed: ["schedule", "since"],
    call: ({ client }, _, o) => all(new JobRuns(client, "job").missed(o)),
  },
  "jobRuns.takeBack": {
    first: mostly(fc.constant("a run")),
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
      maxAttempts: fc.constantFrom(1, 3),
      backoff,
      leaseDurationMs: duration,
      heartbeat: fc.boolean(),
      maxRunMs: duration,
      keepForMs: fc.constant(86_400_000),
      rate: fc.constant({ claims: 1, perMs: 1_000 }),
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
    options: {
      id: fc.constantFrom("1", "a/b"),
      payload: data,
      maxAttempts: fc.constantFrom(1, 3),
      delayMs: shortWait,
      serialKey: fc.constantFrom("customer-42", "a/b"),
    },
    call: ({ client }, _, o) => new TaskSet(client, "set").add([o]),
  },
  "taskSet.add's list": {
    first: mostly(fc.constantFrom([], [{ id: "1", payload: {} }], [{ id: "1" }, { id: "2", delayMs: 1 }])),
    call: ({ client }, k) => new TaskSet(client, "set").add(k),
  },
  "taskSet.process": {
    options: {
      concurrency: fc.constantFrom(1, 4),
      pauseMs: shortWait,
      pollMs: fc.constantFrom(1_000),
      until: fc.constantFrom("drained", "idle"),
      moreUrgent: fc.constant([]),
      retryAfterMs: shortWait,
    },
    call: ({ client }, _, o) => new TaskSet(client, "set").process(async () => "ok", o),
  },
  "taskSet.get, cancel and requeue": {
    options: { maxAttempts: fc.constantFrom(2), delayMs: shortWait },
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
    options: { maxAttempts: fc.constantFrom(2), delayMs: shortWait },
    call: ({ client }, _, o) => new TaskSet(client, "set").requeueAll(o),
  },
  "taskSet.list": {
    options: { state: fc.constantFrom("failed", "waiting", "asleep") },
    call: ({ client }, _, o) => all(new TaskSet(client, "set").list(o)),
  },
  "new LeaseOperator": {
    needed: ["by"],
    options: { by: owner, auditRetentionMs: fc.constant(86_400_000) },
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
    options: { forMs: fc.integer({ min: 1_000, max: 120_000 }), reason: owner, waitMs: shortWait },
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
    options: { sinceMs: fc.constantFrom(1, 1_000), newestFirst: fc.boolean(), limit: fc.constantFrom(1) },
    call: ({ client }, k, o) => all(new LeaseOperator(client, { by: "me" }).history(k, o)),
  },
  "operator.audit": {
    options: { key: owner, prefix: owner, sinceMs: fc.constantFrom(0, 1) },
    call: ({ client }, _, o) => all(new LeaseOperator(client, { by: "me" }).audit(o)),
  },
};

for (const [name, { first = key, options = {}, needed, call }] of Object.entries(entries)) {
  fuzz(
    `${name}: a named error before any request, or a right result, and nothing stays held`,
    fc.record({ first, options: fewHostileOptions(options, needed) }),
    async (given) => {
      const bench = new Bench();
      const result = await bench.check(() => call(bench, made(given.first), madeOptions(given.options)));
      await bench.release(result);
      return bench.isAccepted ? namesIn(given.options) : undefined;
    },
    { few: 500, many: 4_000, accepted: { share: leastAccepted, options: Object.keys(options) } },
  );
}

const ofClient = {
  tableName: fc.constantFrom("leases", "x"),
  owner,
  leaseDurationMs: duration,
  clockSkewMs: fc.constantFrom(0, 1, 1_000, Number.POSITIVE_INFINITY),
  retentionMs: fc.constantFrom(1_000, 86_400_000),
  onEvent: fc.constantFrom(() => undefined, [() => undefined]),
  dynamodb: fc.constantFrom({ send: () => Promise.reject(new Error("offline")) }),
  randomness: fc.constantFrom({ token: () => "t", fraction: () => 0.5 }),
};

fuzz(
  "new LeaseClient: a named error before any request, or a client that works",
  fc.oneof(fewHostileOptions(ofClient), fewHostileOptions(ofClient, ["tableName"])),
  async (recipe) => {
    const bench = new Bench();
    const store = new ScriptedStore();
    const clock = new ManualClock();
    await bench.check(async () => {
      const given = madeOptions(recipe);
      const isPlain =
        "shape" in recipe &&
        recipe.shape === "plain" &&
        !("tableName" in recipe.options || "dynamodb" in recipe.options);
      const client = new LeaseClient((isPlain ? { ...(given as object), store, clock } : given) as Anything);
      if (isPlain) await (await client.acquire("k")).release();
    });
    return bench.isAccepted ? namesIn(recipe) : undefined;
  },
  { few: 200, accepted: { share: leastAccepted, options: Object.keys(ofClient) } },
);
