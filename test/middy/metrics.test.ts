import { LeaseServiceError } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import type { ManualClock } from "@leasehold/client/testing";
import { type LeaseLockOptions, leasedBatch, leaseLock } from "@leasehold/middy";
import { describe, expect, test, vi } from "vitest";
import { collectUncaught } from "../support/uncaught.ts";
import { bench, middies, ways } from "./support.ts";

const sleep = (clock: ManualClock, ms: number): Promise<void> =>
  new Promise((resolve) => void clock.schedule(resolve, ms));

type Line = Readonly<Record<string, unknown>>;

/** The metrics of a line with their values. */
function valuesIn(line: string): Line {
  const { _aws, Table, Job, Key, ...values } = JSON.parse(line);
  return values;
}

describe.each(Object.entries(ways))("%s writes one line of metrics for each invocation", (_, wrap) => {
  function setUp(options: LeaseLockOptions = {}, work: () => unknown = () => "done") {
    const b = bench();
    const lines: string[] = [];
    const app = wrap(
      {
        store: b.store,
        clock: b.clock,
        key: "job",
        job: "j",
        metrics: (line) => lines.push(line),
        ...options,
      },
      work,
    );
    return { ...b, app, lines, values: () => lines.map(valuesIn) };
  }

  test("that succeeds, with its renewals", async () => {
    const { clock, app, context, values } = setUp({ heartbeat: true, lockAtMostForMs: 30_000 }, () =>
      sleep(clock, 25_000),
    );
    const answer = app({}, context(60_000));
    await clock.advance(25_000);
    await answer;
    expect(values()).toEqual([
      {
        LeaseAcquired: 1,
        WaitTime: 0,
        LeaseRenewed: 2,
        LeaseReleased: 1,
        HoldTime: 25_000,
        JobSucceeded: 1,
      },
    ]);
  });

  test("whose handler fails", async () => {
    const { app, context, values } = setUp({}, () => {
      throw new Error("no");
    });
    await expect(app({}, context())).rejects.toThrow("no");
    expect(values()).toEqual([expect.objectContaining({ LeaseAcquired: 1, LeaseReleased: 1, JobFailed: 1 })]);
  });

  test.each([
    ["skip", { LeaseContended: 1, JobSkipped: 1 }],
    ["throw", { LeaseContended: 1 }],
  ] as const)("that finds the lock held, with whenHeld %s", async (whenHeld, values) => {
    const b = setUp({ whenHeld });
    await b.other.acquire("job");
    // Ignored: with "throw" the invocation rejects; the metrics are what counts.
    await b.app({}, b.context()).catch(() => undefined);
    expect(b.values()).toEqual([values]);
  });

  test("that finds the lock paused, and one that the service refuses", async () => {
    const { app, context, values, other, store } = setUp({ whenHeld: "skip" });
    await new LeaseOperator(other, { by: "alice" }).pause("job", { forMs: 60_000, reason: "INC-1" });
    await app({}, context());
    store.delay = () => Promise.reject(new LeaseServiceError("LEASE_REQUEST_REJECTED", "no"));
    await app({}, context()).catch(() => undefined);
    expect(values()).toEqual([{ LeaseContended: 1, JobPaused: 1 }, { JobFailed: 1 }]);
  });

  test("that waits, and no line of one leaks into the next", async () => {
    const b = setUp({ whenHeld: "wait" });
    const held = await b.other.acquire("job", { heartbeat: true });
    const answer = b.app({}, b.context(60_000));
    await b.clock.advance(5_000);
    await held.release();
    // Longer than the longest pause between two looks, whatever chance says.
    await b.clock.advance(20_000);
    await answer;
    await b.app({}, b.context(60_000));
    expect(b.values()).toEqual([
      expect.objectContaining({ LeaseContended: 1, LeaseAcquired: 1, LeaseReleased: 1, JobSucceeded: 1 }),
      { LeaseAcquired: 1, WaitTime: 0, LeaseReleased: 1, HoldTime: 0, JobSucceeded: 1 },
    ]);
  });

  test("at the margin before the function's timeout, because Lambda kills the process then; the rest later", async () => {
    const b = setUp({ timeoutMarginMs: 250 }, () => sleep(b.clock, 9_900));
    const answer = b.app({}, b.context(10_000));
    await b.clock.advance(9_749);
    expect(b.values()).toEqual([]);
    await b.clock.advance(1);
    expect(b.values()).toEqual([{ LeaseAcquired: 1, WaitTime: 0 }]);
    await b.clock.advance(150);
    await answer;
    expect(b.values().slice(1)).toEqual([{ LeaseReleased: 1, HoldTime: 9_900, JobSucceeded: 1 }]);
  });

  test("and the key's dimension for what is about the key, in the same line", async () => {
    const { app, context, lines } = setUp({ keyDimension: true });
    await app({}, context());
    const [line = ""] = lines;
    const { _aws, ...members } = JSON.parse(line);
    expect(lines).toHaveLength(1);
    expect(members).toMatchObject({ Key: "job", LeaseAcquired: 1, JobSucceeded: 1 });
    const named = _aws.CloudWatchMetrics.map((each: { Metrics: { Name: string }[] }) =>
      each.Metrics.map(({ Name }) => Name),
    );
    expect(named).toEqual([["LeaseAcquired", "WaitTime", "LeaseReleased", "HoldTime"], ["JobSucceeded"]]);
  });

  test("with a client of the user's own only what became of the job, under that client's table, also before it has a lease", async () => {
    const b = bench();
    const options = { client: b.client, store: undefined as never, whenHeld: "skip" } as const;
    const { app, context, lines } = setUp(options);
    const held = await b.other.acquire("job");
    await app({}, context());
    await held.release();
    await app({}, context());
    const about = { Table: b.store.tableName, Job: "j" };
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { ...about, JobSkipped: 1 },
      { ...about, JobSucceeded: 1 },
    ]);
    expect(lines.map(valuesIn)).toEqual([{ JobSkipped: 1 }, { JobSucceeded: 1 }]);
  });

  test.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("full");
      },
    ],
    ["rejects", () => Promise.reject(new Error("full"))],
  ])("and goes on when that %s", async (_how, metrics) => {
    const mistake = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const uncaught = collectUncaught();
    const { app, context, clock, holder } = setUp({ metrics }, () => sleep(clock, 9_900));
    const answer = app({}, context(10_000));
    await clock.advance(9_900);
    await answer;
    await new Promise(setImmediate);
    expect(await holder()).toBeUndefined();
    expect(mistake).toHaveBeenCalledTimes(2);
    expect(uncaught).toEqual([]);
    vi.restoreAllMocks();
  });

  test.each<[string, (key: string) => unknown, told: number]>([
    [
      "throws",
      () => {
        throw new Error("no such group");
      },
      2,
    ],
    ["gives no text", () => ({ group: 1 }), 0],
  ])("and without the dimension Key where its function %s", async (_how, keyDimension, told) => {
    const mistake = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const uncaught = collectUncaught();
    const { app, context, lines, values } = setUp({ keyDimension: keyDimension as () => string });
    expect(await app({}, context())).toBe("done");
    await new Promise(setImmediate);
    expect(values()).toMatchObject([{ LeaseAcquired: 1, LeaseReleased: 1, JobSucceeded: 1 }]);
    expect(JSON.parse(lines[0] ?? "")).not.toHaveProperty("Key");
    expect(uncaught).toEqual([]);
    expect(mistake).toHaveBeenCalledTimes(told);
    vi.restoreAllMocks();
  });

  test("that runs beside another: no more lines than invocations, and nothing twice", async () => {
    const b = setUp({ key: (event) => String(event), heartbeat: true, lockAtMostForMs: 3_000 }, () =>
      sleep(b.clock, 4_500),
    );
    const first = b.app("a", b.context());
    await b.clock.advance(2_500);
    const second = b.app("b", b.context());
    await b.clock.advance(10_000);
    await Promise.all([first, second]);
    expect(b.lines).toHaveLength(2);
    const sum = (name: string): number =>
      b.values().reduce((total, line) => total + Number(line[name] ?? 0), 0);
    expect(["LeaseAcquired", "LeaseReleased", "JobSucceeded", "LeaseRenewed"].map(sum)).toEqual([2, 2, 2, 8]);
  });
});

test.each(Object.entries(middies))(
  "in %s an early timeout writes one line, and what its lease does later is written when it happens",
  async (_, version) => {
    const b = bench();
    const lines: string[] = [];
    const app = version(async () => await sleep(b.clock, 300_000), {
      timeoutEarlyInMillis: 5,
      timeoutEarlyResponse: () => "late",
    }).use(
      leaseLock({
        store: b.store,
        clock: b.clock,
        key: "job",
        job: "j",
        metrics: (line) => lines.push(line),
        timeoutMarginMs: 0,
      }),
    );
    // Middy's own timer is the machine's: it ends 2 ms after the handler's start.
    expect(await app({}, b.context(7))).toBe("late");
    expect(lines.map(valuesIn)).toEqual([{ LeaseAcquired: 1, WaitTime: 0, JobFailed: 1 }]);
    await b.clock.advance(120_000);
    expect(lines.slice(1).map(valuesIn)).toEqual([{ LeaseLost: 1, HoldTime: expect.any(Number) }]);
  },
);

describe("a batch", () => {
  const batchOf = (count: number) => ({
    Records: Array.from({ length: count }, (_, index) => ({
      eventSource: "aws:sqs",
      messageId: `m-${index}`,
      body: `${index}`,
    })),
  });

  test("writes one line for all of its records, and counts each of them once", async () => {
    const b = bench();
    vi.stubEnv("LEASEHOLD_JOB", "j");
    const lines: string[] = [];
    const app = leasedBatch<{ body: string }>(
      {
        store: b.store,
        clock: b.clock,
        key: ({ body }) => body,
        once: true,
        onFailure: () => undefined,
        metrics: (line) => lines.push(line),
      },
      ({ body }) => {
        if (body === "7") throw new Error("no");
      },
    );
    vi.unstubAllEnvs();
    await app(batchOf(40), b.context());
    const { WaitTime, HoldTime, ...counts } = valuesIn(lines[0] ?? "");
    expect(lines).toHaveLength(1);
    expect(counts).toEqual({ LeaseAcquired: 80, LeaseReleased: 80, JobSucceeded: 39, JobFailed: 1 });
    expect(WaitTime).toHaveLength(80);
    expect(HoldTime).toHaveLength(80);
  });

  test("writes no more than the 100 values of a metric that CloudWatch takes in a line", async () => {
    const b = bench();
    const lines: string[] = [];
    const app = leasedBatch<{ body: string }>(
      { store: b.store, clock: b.clock, key: ({ body }) => body, metrics: (line) => lines.push(line) },
      () => undefined,
    );
    await app(batchOf(250), b.context());
    const values = lines.map(valuesIn);
    expect(values.map(({ WaitTime }) => (WaitTime as unknown[]).length)).toEqual([100, 100, 50]);
    expect(values.map(({ LeaseAcquired }) => LeaseAcquired)).toEqual([250, undefined, undefined]);
  });

  test("with the dimension Key has a line for each value of it", async () => {
    const b = bench();
    const lines: string[] = [];
    const app = leasedBatch<{ body: string }>(
      {
        store: b.store,
        clock: b.clock,
        key: ({ body }) => body,
        keyDimension: (key) => (Number(key) < 2 ? "low" : undefined),
        metrics: (line) => lines.push(line),
      },
      () => undefined,
    );
    await app(batchOf(5), b.context());
    const found = lines.map((line) => JSON.parse(line)).map(({ Key, LeaseAcquired }) => [Key, LeaseAcquired]);
    expect(found).toEqual([
      ["low", 2],
      [undefined, 3],
    ]);
  });
});
