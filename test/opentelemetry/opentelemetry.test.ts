import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { FairLock, fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { ManualClock } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { leased, leasedBatch } from "@leasehold/middy";
import {
  attributeNames,
  type InstrumentationOptions,
  instrumentLeasehold,
  metricNames,
  spanNames,
} from "@leasehold/opentelemetry";
import { context, diag, SpanStatusCode } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Context } from "aws-lambda";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { collectUncaught } from "../support/uncaught.ts";

const { outcome, key, owner, fencingToken, errorType, lostReason, takeoverReason, holder } = attributeNames;

let clock: ManualClock;
let store: ScriptedStore;
let spans: InMemorySpanExporter;
let measured: InMemoryMetricExporter;
let reader: PeriodicExportingMetricReader;
let providers: Required<Pick<InstrumentationOptions, "tracerProvider" | "meterProvider">>;
let stop: () => void;

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});
afterAll(() => {
  context.disable();
});

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  spans = new InMemorySpanExporter();
  measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  reader = new PeriodicExportingMetricReader({ exporter: measured, exportIntervalMillis: 1_000_000 });
  providers = {
    tracerProvider: new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }),
    meterProvider: new MeterProvider({ readers: [reader] }),
  };
  stop = instrumentLeasehold(providers);
});
afterEach(async () => {
  stop();
  await reader.shutdown();
});

const clientOf = (name: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
  new LeaseClient({ store, clock, owner: name, leaseDurationMs: 5_000, ...options });

/** The spans that have ended, in the order of their ends. */
const ended = (name?: string): ReadableSpan[] =>
  spans.getFinishedSpans().filter((span) => name === undefined || span.name === name);

const [call, hold] = [spanNames.acquire, spanNames.hold];

/** The points of a metric, with their attributes; undefined where nothing was recorded. */
async function points(name: string): Promise<readonly DataPoint<unknown>[] | undefined> {
  await reader.forceFlush();
  const scopes = measured.getMetrics().at(-1)?.scopeMetrics ?? [];
  return scopes.flatMap((scope) => scope.metrics).find(({ descriptor }) => descriptor.name === name)
    ?.dataPoints;
}

/** A metric's values with their attributes; of a histogram, the count and the sum. */
async function values(name: string): Promise<unknown[]> {
  return ((await points(name)) ?? []).map(({ value, attributes }) => {
    const { count, sum } = value as Histogram;
    return [typeof value === "number" ? value : { count, sum }, attributes];
  });
}

describe("the span of a call to acquire", () => {
  it("has the lock, the owner, the table, the fencing token and the outcome", async () => {
    const lease = await clientOf("me").acquire("k");
    const [span] = ended(call);
    expect(span?.attributes).toEqual({
      [key]: "k",
      "leasehold.lock.sort_key": "lease",
      [owner]: "me",
      "aws.dynamodb.table_names": [store.tableName],
      [fencingToken]: lease.fencingToken,
      [outcome]: "acquired",
    });
    expect(span?.status.code).toBe(SpanStatusCode.UNSET);
  });

  it("is a child of what was active in the call, and so is the lease's, which links to it", async () => {
    const tracer = providers.tracerProvider.getTracer("test");
    const [first, second] = await Promise.all(
      ["k1", "k2"].map((name) =>
        tracer.startActiveSpan(name, async (parent) => {
          const lease = await clientOf(name).acquire(name);
          await lease.release();
          parent.end();
          return parent.spanContext();
        }),
      ),
    );
    for (const [index, parent] of [first, second].entries()) {
      const own = (name: string) => ended(name).find((span) => span.attributes[key] === `k${index + 1}`);
      expect(own(call)?.parentSpanContext?.spanId).toBe(parent?.spanId);
      expect(own(hold)?.parentSpanContext?.spanId).toBe(parent?.spanId);
      expect(own(hold)?.links.map((link) => link.context.spanId)).toEqual([own(call)?.spanContext().spanId]);
    }
  });

  it("keeps its parent through a wait that others' releases and timers end", async () => {
    const held = await clientOf("holder").acquire("k", { heartbeat: true });
    const tracer = providers.tracerProvider.getTracer("test");
    const waiter = (name: string, order?: ReturnType<typeof fair>) =>
      tracer.startActiveSpan(name, async (parent) => {
        const lease = await clientOf(name).acquire("k", { waitMs: 60_000, ...(order && { order }) });
        await lease.release();
        parent.end();
        return parent.spanContext().spanId;
      });
    const waits = [waiter("w1"), waiter("w2", fair()), waiter("w3", fair())];
    await clock.advance(3_000);
    await held.release();
    await clock.advance(30_000);
    const parents = await Promise.all(waits);
    for (const [index, parent] of parents.entries()) {
      const own = ended().filter((span) => span.attributes[owner] === `w${index + 1}`);
      expect(own.map((span) => span.name).sort()).toEqual([call, hold]);
      for (const span of own) expect(span.parentSpanContext?.spanId).toBe(parent);
      expect(own.find((span) => span.name === call)?.events.map((event) => event.name)).toEqual([
        spanNames.contended,
      ]);
    }
  });

  it("tells what it met: the holder, and the takeover", async () => {
    await clientOf("dead").acquire("k");
    const waiting = clientOf("me").acquire("k", { waitMs: 20_000 });
    await clock.advance(20_000);
    await waiting;
    const [, span] = ended(call);
    expect(
      span?.events.map(({ name, attributes }) => [name, attributes?.[holder], attributes?.[takeoverReason]]),
    ).toEqual([
      [spanNames.contended, "dead", undefined],
      [spanNames.takeover, "dead", "observation"],
    ]);
  });

  it.each<[string, (client: LeaseClient) => Promise<unknown>]>([
    ["unavailable", (client) => client.tryAcquire("k")],
    ["unavailable", (client) => new Semaphore(client, "pool", { permits: 1 }).acquire()],
    ["queue_full", (client) => client.acquire("k", { order: fair({ maxWaiters: 1 }), waitMs: 60_000 })],
    ["slot_done", (client) => client.acquire("done", { slot: "2026-01-01" })],
    [
      "aborted",
      (client) => {
        const giveUp = new AbortController();
        const waiting = client.acquire("k", { waitMs: 60_000, signal: giveUp.signal });
        giveUp.abort();
        return waiting;
      },
    ],
  ])("says %s where that is the answer, which is no error", async (answer, acquire) => {
    const other = clientOf("other");
    await other.acquire("k", { heartbeat: true });
    await (await other.acquire("done", { slot: "2026-02-01" })).complete();
    await new Semaphore(other, "pool", { permits: 1 }).acquire();
    const queueing = clientOf("queueing").acquire("k", { order: fair(), waitMs: 60_000 });
    queueing.catch(() => undefined);
    await clock.advance(0);
    spans.reset();
    await acquire(clientOf("me")).catch(() => undefined);
    expect(
      ended(call).map((span) => [span.attributes[outcome], span.attributes[errorType], span.status.code]),
    ).toEqual([[answer, undefined, SpanStatusCode.UNSET]]);
    expect(ended(hold)).toEqual([]);
  });

  it("names the error where it failed", async () => {
    store.next("rejected");
    await expect(clientOf("me").acquire("k")).rejects.toThrow();
    const [span] = ended(call);
    expect(span?.attributes).toMatchObject({ [outcome]: "failed", [errorType]: "LEASE_REQUEST_REJECTED" });
    expect(span?.status).toMatchObject({ code: SpanStatusCode.ERROR });
  });

  it("takes whatever a store of your own throws", async () => {
    const thrown = Object.create(null);
    store.update = () => Promise.reject(thrown);
    await expect(clientOf("me").acquire("k")).rejects.toBe(thrown);
    const [span] = ended(call);
    expect(span?.attributes).toMatchObject({ [outcome]: "failed", [errorType]: "_OTHER" });
    expect(span?.status).toEqual({ code: SpanStatusCode.ERROR, message: "an object" });
  });

  it("of a group names all keys; each lease has a span of its own", async () => {
    const group = await acquireAll(clientOf("me"), ["b", "a"]);
    await group.release();
    const [span] = ended(call);
    expect(ended(call)).toHaveLength(1);
    expect(new Set(span?.attributes[key] as string[])).toEqual(new Set(["a", "b"]));
    expect(ended(hold).map(({ attributes, links }) => [attributes[key], links.length])).toEqual(
      expect.arrayContaining([
        ["a", 1],
        ["b", 1],
      ]),
    );
  });

  it("is one for a writer that waits: its intent is no lease of anybody's", async () => {
    const reader = await new ReadWriteLock(clientOf("reader"), "book").read();
    spans.reset();
    const writing = new ReadWriteLock(clientOf("writer"), "book").write({ waitMs: 60_000 });
    await clock.advance(3_000);
    await reader.release();
    await clock.advance(10_000);
    await writing;
    expect(ended(call).map((span) => span.attributes[owner])).toEqual(["writer"]);
  });
});

describe("the span of a lease", () => {
  it("lasts from the grant to the release, with an event for each renewal", async () => {
    const lease = await clientOf("me").acquire("k", { heartbeat: 1_000 });
    await clock.advance(2_500);
    expect(ended(hold)).toEqual([]);
    await lease.release();
    const [span] = ended(hold);
    expect(span?.attributes).toEqual({
      [key]: "k",
      "leasehold.lock.sort_key": "lease",
      [owner]: "me",
      [fencingToken]: lease.fencingToken,
      [outcome]: "released",
    });
    expect(span?.events.map((event) => event.name)).toEqual([spanNames.renewed, spanNames.renewed]);
    expect(span?.status.code).toBe(SpanStatusCode.UNSET);
  });

  it("ends with an error where the lease was lost, and its late release changes nothing", async () => {
    const lease = await clientOf("me").acquire("k");
    await clock.advance(6_000);
    await lease.release();
    expect(ended(hold).map((span) => [span.attributes, span.status])).toMatchObject([
      [
        { [outcome]: "lost", [lostReason]: "expired", [errorType]: "LEASE_LOST" },
        { code: SpanStatusCode.ERROR, message: "the lease is lost (expired)" },
      ],
    ]);
  });

  it("ends without an error where its holder was asked to stop", async () => {
    const client = clientOf("me");
    const lease = await client.acquire("k", { heartbeat: 1_000 });
    await adminOf(client).requestRevocation("k", { token: lease.token });
    await clock.advance(1_500);
    expect(ended(hold).map((span) => [span.attributes[lostReason], span.status.code])).toEqual([
      ["revoked", SpanStatusCode.UNSET],
    ]);
  });

  it.each([
    ["", 0],
    [", also where the machine's clock is fast", 300_000],
  ])("goes on for as long as the lease is renewed%s", async (_, fastMs) => {
    vi.useFakeTimers({ toFake: ["Date"], now: clock.now() + fastMs });
    const lease = await clientOf("me").acquire("k", { heartbeat: true });
    for (let minutes = 0; minutes < 5; minutes += 1) {
      for (const until = clock.now() + 60_000; clock.now() < until; ) {
        await clock.advance(5_000);
        vi.setSystemTime(clock.now() + fastMs);
      }
      expect(await values(metricNames.held)).toEqual([[1, {}]]);
    }
    await lease.release();
    expect(ended(hold).map((span) => span.attributes[outcome])).toEqual(["released"]);
    vi.useRealTimers();
  });

  it("is its own task's where two are claimed in the same millisecond", async () => {
    const tasks = new TaskSet(clientOf("me"), "set");
    await tasks.add([{ id: "one" }, { id: "two" }]);
    const claimed = [await tasks.claim(), await tasks.claim()];
    expect(claimed[0]?.fencingToken).toBe(claimed[1]?.fencingToken);
    for (const task of claimed) await task?.succeed();
    expect(ended(hold).map((span) => span.attributes["leasehold.lock.sort_key"])).toHaveLength(2);
    expect(ended(hold).map((span) => span.attributes[outcome])).toEqual(["released", "released"]);
  });

  it("ends by itself where this process hears no more of the lease", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: clock.now() });
    // As a lease that was handed to another process: neither a loss nor a release is told here.
    const { channel } = await import("node:diagnostics_channel");
    const acquired = {
      type: "acquired",
      key: "gone",
      sortKey: "lease",
      owner: "me",
      fencingToken: 1,
      waitedMs: 0,
    };
    channel("leasehold:acquired").publish({ ...acquired, expiresAt: clock.now() + 5_000 });
    expect(await values(metricNames.held)).toEqual([[1, {}]]);
    vi.setSystemTime(clock.now() + 130_000);
    expect(await values(metricNames.held)).toEqual([[0, {}]]);
    expect(ended(hold).map((span) => span.attributes[outcome])).toEqual(["unknown"]);
    vi.useRealTimers();
  });
});

describe("metrics", () => {
  it("count and measure what happened, in seconds, without the key", async () => {
    const client = clientOf("me");
    const lease = await client.acquire("k");
    await client.tryAcquire("k");
    await lease.renew();
    await clock.advance(2_000);
    await lease.release();
    await client.acquire("lost");
    await clock.advance(6_500);
    await clientOf("other").acquire("lost");

    expect(await values(metricNames.acquireDuration)).toEqual([
      [{ count: 3, sum: expect.any(Number) }, { [outcome]: "acquired" }],
      [{ count: 1, sum: expect.any(Number) }, { [outcome]: "unavailable" }],
    ]);
    expect(await values(metricNames.heldDuration)).toEqual([
      [{ count: 1, sum: 2 }, { [outcome]: "released" }],
      [{ count: 1, sum: 5 }, { [outcome]: "lost" }],
    ]);
    expect(await values(metricNames.held)).toEqual([[1, {}]]);
    expect(await values(metricNames.lost)).toEqual([[1, { [lostReason]: "expired" }]]);
    expect(await values(metricNames.takeovers)).toEqual([[1, { [takeoverReason]: "serviceClock" }]]);
    expect(await values(metricNames.renewals)).toEqual([[1, {}]]);
    expect(await values(metricNames.contentions)).toEqual([[1, {}]]);
  });

  it("of durations have the unit s, and buckets that fit it", async () => {
    await (await clientOf("me").acquire("k")).release();
    await reader.forceFlush();
    const all =
      measured
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? [];
    const durations = all.filter(({ descriptor }) => descriptor.name.endsWith(".duration"));
    expect(durations).toHaveLength(2);
    for (const { descriptor, dataPoints } of durations) {
      expect(descriptor.unit).toBe("s");
      expect((dataPoints[0]?.value as Histogram | undefined)?.buckets.boundaries[0]).toBeLessThan(0.1);
    }
  });

  it("tell the key, or a group of keys, where that is asked for", async () => {
    stop();
    stop = instrumentLeasehold({ ...providers, keyDimension: (name) => name.split("/")[0] });
    const lease = await clientOf("me").acquire("import/1");
    await clientOf("me").acquire("import/2");
    expect(await values(metricNames.acquireDuration)).toMatchObject([
      [{ count: 2 }, { [key]: "import", [outcome]: "acquired" }],
    ]);
    expect(await values(metricNames.held)).toContainEqual([2, { [key]: "import" }]);
    await lease.release();
    expect(await values(metricNames.held)).toContainEqual([1, { [key]: "import" }]);
  });

  it("leave the key out where the function that groups keys throws, or gives no text", async () => {
    const told: unknown[] = [];
    diag.setLogger({ ...diag, error: (...args) => told.push(args) }, { suppressOverrideMessage: true });
    const uncaught = collectUncaught();
    for (const keyDimension of [() => JSON.parse("{"), () => ({ group: 1 })]) {
      stop();
      stop = instrumentLeasehold({ ...providers, keyDimension });
      const lease = await clientOf("me").acquire("k");
      expect(await values(metricNames.held)).toEqual([[1, {}]]);
      await lease.release();
    }
    await new Promise(setImmediate);
    diag.disable();
    expect(uncaught).toEqual([]);
    expect(told).not.toEqual([]);
    expect(await values(metricNames.heldDuration)).toMatchObject([[{ count: 2 }, { [outcome]: "released" }]]);
    expect(ended(hold)).toHaveLength(2);
  });

  it("tell of a clock that is off, of work that is not recorded and of mistakes", async () => {
    const { channel } = await import("node:diagnostics_channel");
    const about = { key: "k", sortKey: "lease", owner: "me" };
    channel("leasehold:skew").publish({
      type: "skew",
      offsetMinMs: -9_000,
      offsetMaxMs: -8_000,
      clockSkewMs: 1,
    });
    channel("leasehold:completionFailed").publish({
      type: "completionFailed",
      ...about,
      code: "LEASE_NO_ANSWER",
    });
    channel("leasehold:error").publish({
      type: "error",
      ...about,
      operation: "renew",
      error: new TypeError("x"),
    });
    expect(await values(metricNames.clockSkew)).toEqual([[8, {}]]);
    expect(await values(metricNames.completionFailures)).toEqual([[1, { [errorType]: "LEASE_NO_ANSWER" }]]);
    expect(await values(metricNames.mistakes)).toEqual([
      [1, { "leasehold.operation": "renew", [errorType]: "TypeError" }],
    ]);
  });

  it("tell of a SingleFlight", async () => {
    let fails = false;
    const flights = new SingleFlight(clientOf("me"), { freshForMs: 1_000 });
    const get = () =>
      flights.getOrCompute("k", {
        compute: () => {
          if (fails) throw new RangeError("no");
          return 42;
        },
      });
    await get();
    await get();
    await clock.advance(10_000);
    fails = true;
    await get().catch(() => undefined);
    expect(await values(metricNames.computeDuration)).toMatchObject([
      [{ count: 1 }, {}],
      [{ count: 1 }, { [errorType]: "RangeError" }],
    ]);
    expect(await values(metricNames.served)).toEqual([
      [1, { "leasehold.single_flight.source": "computation" }],
      [1, { "leasehold.single_flight.source": "cache" }],
    ]);
  });
});

describe("work under a lease", () => {
  const lambda = { functionName: "f", awsRequestId: "1", getRemainingTimeInMillis: () => 60_000 } as Context;
  /** A call of the work's, such as one of the AWS SDK. */
  const call = async (): Promise<string> => {
    await Promise.resolve();
    providers.tracerProvider.getTracer("test").startSpan("call").end();
    return "done";
  };

  it.each<[string, () => Promise<unknown>]>([
    ["withLease", () => clientOf("me").withLease("k", call)],
    ["a permit", () => new Semaphore(clientOf("me"), "k", { permits: 2 }).withPermit({}, call)],
    ["a reader", () => new ReadWriteLock(clientOf("me"), "k").withRead({}, call)],
    ["a writer", () => new ReadWriteLock(clientOf("me"), "k").withWrite({}, call)],
    ["a fair lock", () => new FairLock(clientOf("me"), "k").withLease({}, call)],
    [
      "a leader",
      async () => {
        const stopLeading = new AbortController();
        const work = async (): Promise<void> => {
          await call();
          stopLeading.abort();
        };
        await new Leader(clientOf("me"), "k").lead(work, { signal: stopLeading.signal });
      },
    ],
    [
      "a computation",
      () => new SingleFlight(clientOf("me"), { freshForMs: 1_000 }).getOrCompute("k", { compute: call }),
    ],
    ["a run of a job", () => new JobRuns(clientOf("me"), "k").run(new Date(clock.now()), call)],
    [
      "a task",
      async () => {
        const tasks = new TaskSet(clientOf("me"), "k");
        await tasks.add([{ id: "t" }]);
        await tasks.process(call);
      },
    ],
    ["a leased handler", () => leased({ client: clientOf("me"), clock, key: "k" }, call)({}, lambda)],
  ])("runs in its span: %s", async (_, work) => {
    await work();
    const [span] = ended(hold);
    expect(ended(hold)).toHaveLength(1);
    expect(ended("call").map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual([
      span?.spanContext().spanId,
    ]);
  });

  it("of a batch runs in the span of its record, which is in that of its key", async () => {
    const app = leasedBatch<{ body: string }>(
      { client: clientOf("me"), clock, key: ({ body }) => body, once: true },
      call,
    );
    const records = ["a", "b"].map((body) => ({ eventSource: "aws:sqs", messageId: `m-${body}`, body }));
    await app({ Records: records }, lambda);
    const holdOf = (name: string) => ended(hold).find((span) => span.attributes[key] === name);
    for (const [index, name] of ["a", "b"].entries()) {
      const [ofKey, ofRecord] = [holdOf(name), holdOf(`${name}/m-${name}`)];
      expect(ofRecord?.parentSpanContext?.spanId).toBe(ofKey?.spanContext().spanId);
      expect(ended("call")[index]?.parentSpanContext?.spanId).toBe(ofRecord?.spanContext().spanId);
    }
  });

  it("gives its result and its error as without a tool, and no tool sees its result", async () => {
    const client = clientOf("me");
    const seen: unknown[] = [];
    const look = (work: unknown): void => void seen.push(JSON.stringify(work));
    subscribe("leasehold:work", look);
    await expect(client.withLease("k", () => "done")).resolves.toBe("done");
    await expect(
      client.withLease("k", () => {
        throw new RangeError("no");
      }),
    ).rejects.toThrow(RangeError);
    unsubscribe("leasehold:work", look);
    expect(seen.map((text) => Object.keys(JSON.parse(String(text))))).toEqual([
      ["key", "sortKey", "fencingToken"],
      ["key", "sortKey", "fencingToken"],
    ]);
  });

  it("runs in the span that is active, once the instrumentation has ended", async () => {
    stop();
    await providers.tracerProvider.getTracer("test").startActiveSpan("mine", async (mine) => {
      await clientOf("me").withLease("k", call);
      expect(ended("call")[0]?.parentSpanContext?.spanId).toBe(mine.spanContext().spanId);
    });
  });
});

it("nothing is made after the end, and what is held, or is being acquired, ends its span", async () => {
  const client = clientOf("me");
  const lease = await client.acquire("k");
  spans.reset();
  const waiting = clientOf("other").acquire("k", { waitMs: 1_000 });
  stop();
  expect(ended().map(({ name, attributes }) => [name, attributes[outcome]])).toEqual([
    [hold, "unknown"],
    [call, "unknown"],
  ]);
  spans.reset();
  await lease.release();
  await clock.advance(1_000);
  await waiting;
  await client.acquire("k2");
  expect(ended()).toEqual([]);
});

it("leases of two tables with one key and fencing token: the span of each ends", async () => {
  const other = new LeaseClient({ store: new ScriptedStore(), clock });
  const leases = [await clientOf("me").acquire("k"), await other.acquire("k")];
  for (const lease of leases) await lease.release();
  expect(ended(hold).map((span) => span.attributes[outcome])).toEqual(["unknown", "released"]);
});

it("without an SDK it costs nothing and disturbs nothing", async () => {
  stop();
  stop = instrumentLeasehold();
  const lease = await clientOf("me").acquire("k");
  await lease.release();
  await expect(clientOf("me").acquire("k")).resolves.toMatchObject({ held: true });
});

it.each([
  [
    { tracerProvider: {} },
    "tracerProvider is an instance of Object; allowed: an object with the methods getTracer",
  ],
  [{ meterProvider: 1 }, "meterProvider is 1; allowed: an object with the methods getMeter"],
  [{ keyDimension: "key" }, 'keyDimension is "key"; allowed: a function'],
  [{ traces: true }, "options.traces is not an option here"],
])("options that are none are refused: %j", (options, message) => {
  expect(() => instrumentLeasehold(options as never)).toThrow(message);
});
