import { Logger } from "@aws-lambda-powertools/logger";
import { Metrics, MetricUnit } from "@aws-lambda-powertools/metrics";
import { logMetrics } from "@aws-lambda-powertools/metrics/middleware";
import { Tracer } from "@aws-lambda-powertools/tracer";
import { captureLambdaHandler } from "@aws-lambda-powertools/tracer/middleware";
import { InvalidOptionsError } from "@leasehold/client";
import { leased, leasedBatch, leaseLock } from "@leasehold/middy";
import { type PowertoolsInstances, powertools } from "@leasehold/middy/powertools";
import { Segment, type Subsegment } from "aws-xray-sdk-core";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { adminOf } from "../support/admin.ts";
import { type Bench, bench, middies } from "./support.ts";

const lines: string[] = [];
let tracer: Tracer;
beforeEach(() => {
  lines.length = 0;
  vi.spyOn(process.stdout, "write").mockImplementation((text) => lines.push(String(text)) > 0);
  vi.stubEnv(
    "_X_AMZN_TRACE_ID",
    "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=557abcec3ee5a047;Sampled=1",
  );
  vi.stubEnv("AWS_EXECUTION_ENV", "AWS_Lambda_nodejs24.x");
  tracer = new Tracer({ serviceName: "orders", captureHTTPsRequests: false });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** What X-Ray's types leave out. */
type Ended = Subsegment & { readonly end_time?: number; readonly fault?: boolean };

const holdsIn = (root: Segment): readonly Ended[] => root.subsegments ?? [];

interface Tree {
  readonly [name: string]: readonly Tree[];
}

/** The names of a segment's children, and of theirs. */
function childrenOf(segment: Segment | Subsegment): Tree[] {
  return (segment.subsegments ?? []).map((child) => ({ [child.name]: childrenOf(child) }));
}

/** Runs what an invocation does, in a trace of its own. */
async function traced(invoke: () => Promise<unknown>): Promise<Segment> {
  const root = new Segment("function");
  await tracer.provider.getNamespace().runPromise(async () => {
    tracer.setSegment(root);
    await invoke();
    expect(tracer.getSegment()).toBe(root);
  });
  return root;
}

/** A call of the handler's that the tracer sees. */
async function call(name: string): Promise<void> {
  const segment = tracer.getSegment()?.addNewSubsegment(name);
  await Promise.resolve();
  segment?.close();
}

describe.each(Object.entries(middies))("in %s", (_, version) => {
  test("the user's Logger, Metrics and Tracer report the lock, each by its own means", async () => {
    vi.stubEnv("_HANDLER", "index.handler");
    const b = bench();
    const metrics = new Metrics({ namespace: "shop", serviceName: "orders" });
    const logger = new Logger({ serviceName: "orders" });
    const app = version(async () => {
      metrics.addMetric("orders", MetricUnit.Count, 1);
      await call("work");
      return "done";
    })
      .use(logMetrics(metrics))
      .use(captureLambdaHandler(tracer))
      .use(
        leaseLock({
          ...{ store: b.store, clock: b.clock, key: "job", job: "j" },
          ...{ whenHeld: "skip", skipResult: "skipped" },
          ...powertools({ logger, metrics, tracer }),
        }),
      );
    const root = await traced(() => app({}, b.context()));
    await b.other.acquire("job");
    expect(await app({}, b.context())).toBe("skipped");
    const written = lines.map((line) => JSON.parse(line));
    const [done, ...others] = written.filter(({ _aws }) => _aws !== undefined);
    expect(done).toMatchObject({ orders: 1, LeaseAcquired: 1, LeaseReleased: 1, JobSucceeded: 1 });
    expect(done._aws.CloudWatchMetrics).toMatchObject([
      {
        Namespace: "shop",
        Metrics: expect.arrayContaining([
          { Name: "LeaseAcquired", Unit: "Count" },
          { Name: "HoldTime", Unit: "Milliseconds" },
        ]),
      },
    ]);
    expect(others).toMatchObject([{ LeaseContended: 1, JobSkipped: 1 }]);
    expect(metrics.hasStoredMetrics()).toBe(false);
    expect(written.filter(({ event }) => event !== undefined)).toEqual([
      expect.objectContaining({ service: "orders", level: "INFO", event: "acquired", key: "job" }),
      expect.objectContaining({ service: "orders", level: "INFO", event: "released", key: "job" }),
      expect.objectContaining({ service: "orders", level: "INFO", event: "contended", key: "job" }),
    ]);
    expect(childrenOf(root)).toEqual([
      { "## index.handler": [{ "leasehold.hold": [{ work: [] }] }] },
      { "## index.handler": [] },
    ]);
  });
});

describe("the segment of a lease", () => {
  const handler = (b: Bench, work: Parameters<typeof leased>[1], heartbeat = false) =>
    leased({ store: b.store, clock: b.clock, key: "job", heartbeat, ...powertools({ tracer }) }, work);

  test("names the key and the fencing token, and ends with the lease", async () => {
    const b = bench();
    let fencingToken = 0;
    const root = await traced(async () => {
      const app = handler(b, async (_event, _context, { lease }) => {
        fencingToken = lease.fencingToken;
        await call("inside");
      });
      await app({}, b.context());
      await call("outside");
    });
    expect(childrenOf(root)).toEqual([{ "leasehold.hold": [{ inside: [] }] }, { outside: [] }]);
    const [hold] = holdsIn(root);
    expect(hold).toMatchObject({
      annotations: { leaseholdKey: "job", leaseholdFencingToken: fencingToken },
      end_time: expect.any(Number),
    });
    expect(hold?.fault).toBeUndefined();
  });

  test.each([
    ["of a lease that was broken", false, true, "released"],
    ["of a lease that was revoked", true, undefined, "revoked"],
  ])(
    "has a fault for a loss, unless the holder was asked to stop: %s",
    async (_, isRevoked, fault, reason) => {
      const b = bench();
      const admin = adminOf(b.other);
      const root = await traced(async () => {
        const app = handler(
          b,
          async () => {
            const { token } = (await b.other.inspect("job")) ?? { token: "" };
            if (isRevoked) await admin.requestRevocation("job", { token, reason: "stop" });
            else await admin.forceRelease("job", { token });
            await b.clock.advance(20_000);
          },
          true,
        );
        // Ignored: a broken lease rejects; its segment is what counts.
        await app({}, b.context()).catch(() => undefined);
      });
      const [hold] = holdsIn(root);
      expect(hold?.fault).toBe(fault);
      expect(hold).toMatchObject({
        end_time: expect.any(Number),
        annotations: { leaseholdLostReason: reason },
      });
    },
  );

  test("is a sibling of those of the same batch", async () => {
    const b = bench();
    const app = leasedBatch<{ body: string }>(
      { store: b.store, clock: b.clock, key: ({ body }) => body, ...powertools({ tracer }) },
      () => undefined,
    );
    const records = ["a", "b", "c"].map((body) => ({ eventSource: "aws:sqs", messageId: body, body }));
    const root = await traced(() => app({ Records: records }, b.context()));
    expect(childrenOf(root)).toEqual(Array.from({ length: 3 }, () => ({ "leasehold.hold": [] })));
    expect(holdsIn(root).every(({ end_time }) => end_time !== undefined)).toBe(true);
  });

  test("ends where a lock of another table has the same key at the same time", async () => {
    const [a, b] = [bench(), bench()];
    const reports = powertools({ tracer });
    const options = { key: "job", heartbeat: false, ...reports };
    const inner = leased({ store: b.store, clock: b.clock, ...options }, () => call("inside"));
    const app = leased({ store: a.store, clock: a.clock, ...options }, async (event, context) => {
      await inner(event, context);
      await call("after");
    });
    const root = await traced(() => app({}, a.context()));
    expect(holdsIn(root).map(({ end_time }) => typeof end_time)).toEqual(["number", "number"]);
    const [outside, inside] = [[{ after: [] }], [{ inside: [] }]];
    expect(childrenOf(root)).toEqual([{ "leasehold.hold": outside }, { "leasehold.hold": inside }]);
  });

  test("is a sibling of that of another middleware, and ends before it without being current again", async () => {
    const [a, b] = [bench(), bench()];
    const inner = handler(b, async () => {
      await adminOf(a.other).forceRelease("job", { token: (await a.other.inspect("job"))?.token ?? "" });
      await a.clock.advance(20_000);
      await call("inside");
    });
    // Ignored: the outer lock is lost; the segments are what counts.
    const root = await traced(() => handler(a, inner, true)({}, a.context()).catch(() => undefined));
    expect(childrenOf(root)).toEqual([{ "leasehold.hold": [] }, { "leasehold.hold": [{ inside: [] }] }]);
    expect(holdsIn(root).map(({ end_time }) => typeof end_time)).toEqual(["number", "number"]);
  });

  test("is not made while tracing is off", async () => {
    vi.stubEnv("POWERTOOLS_TRACE_ENABLED", "false");
    tracer = new Tracer({ serviceName: "orders", captureHTTPsRequests: false });
    const b = bench();
    const segments = vi.spyOn(tracer, "getSegment");
    expect(await handler(b, () => "done")({}, b.context())).toBe("done");
    expect(segments).not.toHaveBeenCalled();
  });
});

test.each([
  ["logger", { logger: { info: () => undefined } }],
  ["metrics", { metrics: () => undefined }],
  ["tracer", { tracer: {} }],
  ["options.trace", { trace: {} }],
])("what cannot report is refused by name: %s", (option, instances) => {
  let refusal: unknown;
  try {
    powertools(instances as PowertoolsInstances);
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(InvalidOptionsError);
  expect(refusal).toMatchObject({ option });
});
