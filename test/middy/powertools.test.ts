import { IdempotencyConfig, IdempotencyItemAlreadyExistsError } from "@aws-lambda-powertools/idempotency";
import { makeHandlerIdempotent } from "@aws-lambda-powertools/idempotency/middleware";
import { BasePersistenceLayer, type IdempotencyRecord } from "@aws-lambda-powertools/idempotency/persistence";
import { Logger } from "@aws-lambda-powertools/logger";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import { Metrics, MetricUnit } from "@aws-lambda-powertools/metrics";
import { logMetrics } from "@aws-lambda-powertools/metrics/middleware";
import { type LeaseLockOptions, leaseLock } from "@leasehold/middy";
import type { MiddlewareObj } from "@middy/core";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { bench, type LambdaContext, middies } from "./support.ts";

/** Idempotency records in this process. */
class Records extends BasePersistenceLayer {
  readonly states = new Map<string, IdempotencyRecord>();

  protected override async _putRecord(record: IdempotencyRecord): Promise<void> {
    const present = this.states.get(record.idempotencyKey);
    if (present !== undefined) throw new IdempotencyItemAlreadyExistsError("it is there", present);
    this.states.set(record.idempotencyKey, record);
  }

  protected override async _getRecord(key: string): Promise<IdempotencyRecord> {
    const record = this.states.get(key);
    if (record === undefined) throw new Error("it is not there");
    return record;
  }

  protected override async _updateRecord(record: IdempotencyRecord): Promise<void> {
    this.states.set(record.idempotencyKey, record);
  }

  protected override async _deleteRecord(record: IdempotencyRecord): Promise<void> {
    this.states.delete(record.idempotencyKey);
  }
}

const lines: string[] = [];
beforeEach(() => {
  lines.length = 0;
  vi.spyOn(process.stdout, "write").mockImplementation((text) => lines.push(String(text)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const metrics = new Metrics({ namespace: "shop", serviceName: "orders" });
const logger = new Logger({ serviceName: "orders" });

/** What an application does before its handler with what Powertools gives it. */
const noting: MiddlewareObj<{ readonly user: string }> = {
  before(request) {
    metrics.addMetric("tries", MetricUnit.Count, 1);
    logger.appendKeys({ user: request.event.user });
  },
};

describe.each(Object.entries(middies))("in %s, outside of the lock", (_, version) => {
  function setUp(options: LeaseLockOptions = {}) {
    const b = bench();
    const records = new Records();
    const config = new IdempotencyConfig({ throwOnNoIdempotencyKey: false, eventKeyJmesPath: "order" });
    let runs = 0;
    const app = version(async (event: { readonly user: string; readonly order?: string }) => {
      runs += 1;
      return `order of ${event.user}`;
    })
      .use(logMetrics(metrics))
      .use(injectLambdaContext(logger, { resetKeys: true }))
      .use(makeHandlerIdempotent({ persistenceStore: records, config }))
      .use(noting)
      .use(
        leaseLock<unknown, unknown>({ ...b.options, whenHeld: "skip", skipResult: "skipped", ...options }),
      );
    return { ...b, app, records, runs: () => runs };
  }

  test("what an invocation that is skipped has measured is published at its end, and its keys are gone from the log", async () => {
    const { app, context, other, records } = setUp();
    // The event has no order: idempotency has nothing to forget.
    const forget = vi.spyOn(records, "deleteRecord");
    await other.acquire("job");
    expect(await app({ user: "ann" }, context())).toBe("skipped");
    expect(forget).not.toHaveBeenCalled();
    expect(metrics.hasStoredMetrics()).toBe(false);
    expect(lines.filter((line) => line.includes('"tries":[1]') || line.includes('"tries":1'))).toHaveLength(
      1,
    );
    logger.info("afterwards");
    const line = lines.find((each) => each.includes("afterwards"));
    expect(JSON.parse(line ?? "")).not.toHaveProperty("user");
  });

  test("its idempotency record does not stay in progress: the next invocation runs", async () => {
    const { app, context, other, records, runs } = setUp();
    const held = await other.acquire("job");
    expect(await app({ user: "ann", order: "1" }, context())).toBe("skipped");
    expect(records.states.size).toBe(0);
    await held.release();
    expect(await app({ user: "ann", order: "1" }, context())).toBe("order of ann");
    expect(await app({ user: "ann", order: "1" }, context())).toBe("order of ann");
    expect(runs()).toBe(1);
  });

  test("a handler that is replaced is cleaned up after like any that failed", async () => {
    const b = bench();
    const records = new Records();
    let count = 0;
    const app = version(async (_event: { time: string; order: string }, context: LambdaContext) => {
      count += 1;
      if (count > 1) return "newer";
      const { signal } = context.lock;
      return await new Promise<string>((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
      );
    })
      .use(logMetrics(metrics))
      .use(
        makeHandlerIdempotent({
          persistenceStore: records,
          config: new IdempotencyConfig({ eventKeyJmesPath: "order" }),
        }),
      )
      .use({ before: () => void metrics.addMetric("tries", MetricUnit.Count, 1) })
      .use(leaseLock({ ...b.options, whenHeld: "replace", skipResult: "replaced" }));
    const first = app({ time: "2026-01-01T10:00:00Z", order: "1" }, b.context());
    await b.clock.advance(0);
    const second = app({ time: "2026-01-01T10:01:00Z", order: "2" }, b.context());
    await b.clock.advance(20_000);
    expect([await first, await second]).toEqual(["replaced", "newer"]);
    expect(records.states.size).toBe(1);
    expect(metrics.hasStoredMetrics()).toBe(false);
  });
});
