import { LeaseClient, type LeaseEvent, LeaseServiceError, SlotDoneError } from "@leasehold/client";
import { metricNames, metricsListener } from "@leasehold/client/metrics";
import { CompletionFailedError, type LeaseLockOptions } from "@leasehold/middy";
import { describe, expect, test } from "vitest";
import { adminOf } from "../support/admin.ts";
import { follow } from "../support/follow.ts";
import { bench, type LambdaContext, ways } from "./support.ts";

const event = { scheduledTime: "2026-11-21T10:00:00.000Z" };
const throttled = () => new LeaseServiceError("LEASE_THROTTLED", "too many requests");

describe.each(Object.entries(ways))("%s: the completion of a slot", (_, wrap) => {
  /** A handler under `once`, and a table whose writes can be made to fail once the handler has run. */
  function setUp(options: LeaseLockOptions = {}) {
    const b = bench();
    const events: LeaseEvent[] = [];
    const lines: string[] = [];
    const measure = metricsListener({ tableName: "t", job: "j" }, (line) => lines.push(line));
    const client = new LeaseClient({
      store: b.store,
      clock: b.clock,
      onEvent(event) {
        events.push(event);
        measure(event);
      },
    });
    let runs = 0;
    let fail: () => Promise<void> | undefined = () => undefined;
    const app = wrap(
      {
        client,
        clock: b.clock,
        key: "job",
        once: true,
        tableName: "t",
        job: "j",
        metrics: (line) => lines.push(line),
        skipResult: "skipped",
        ...options,
      },
      () => {
        runs += 1;
        b.store.delay = async () => await fail();
        return "done";
      },
    );
    return {
      ...b,
      app,
      events,
      runs: () => runs,
      /** What the table does with the writes that follow the handler. */
      afterwards: (behaviour: () => Promise<void> | undefined) => {
        fail = behaviour;
      },
      measured: (name: string) => lines.filter((line) => name in JSON.parse(line)).length,
      slotIsDone: async () => {
        b.store.delay = undefined;
        const error = await b.other.acquire("job", { slot: event.scheduledTime }).catch((e: unknown) => e);
        return error instanceof SlotDoneError;
      },
    };
  }

  /** Fails so many writes, and lets the others through. */
  const failing = (error: LeaseServiceError, times: number) => {
    let count = 0;
    return () => (++count <= times ? Promise.reject(error) : undefined);
  };
  const throttling = (times: number) => failing(throttled(), times);

  test.each([
    ["throttled", throttling(5)],
    ["not answered", failing(new LeaseServiceError("LEASE_NO_ANSWER", "no answer"), 1)],
  ])("is tried again when it is %s, and then counts as recorded", async (_how, behaviour) => {
    const { app, context, clock, afterwards, slotIsDone, measured, events } = setUp();
    afterwards(behaviour);
    const answer = app(event, context(60_000));
    await clock.advance(30_000);
    expect(await answer).toBe("done");
    expect(measured(metricNames.jobSucceeded)).toBe(1);
    expect(events.map(({ type }) => type)).not.toContain("completionFailed");
    expect(await slotIsDone()).toBe(true);
  });

  test("is tried again until the invocation's end is near, however long its lease lasts, and then rejects, with an event and metrics", async () => {
    const { app, context, clock, afterwards, measured, events, store } = setUp({ lockAtMostForMs: 600_000 });
    afterwards(throttling(Number.POSITIVE_INFINITY));
    const startedAt = clock.monotonic();
    const answer = follow(app(event, context(20_000)), clock);
    await clock.advance(15_000);
    expect(answer).toEqual({});
    await clock.advance(5_000);
    expect(answer.error).toBeInstanceOf(CompletionFailedError);
    expect(answer.error).toMatchObject({
      code: "LEASE_COMPLETION_FAILED",
      key: "job",
      slot: event.scheduledTime,
      cause: { code: "LEASE_THROTTLED" },
    });
    expect(answer.at).toBeLessThanOrEqual(startedAt + 20_000 - 250);
    // Its pauses grow to 2 s.
    expect(store.requests.length).toBeLessThan(20);
    expect(events).toContainEqual(
      expect.objectContaining({
        type: "completionFailed",
        key: "job",
        slot: event.scheduledTime,
        code: "LEASE_THROTTLED",
      }),
    );
    expect(measured(metricNames.completionFailed)).toBe(1);
    expect(measured(metricNames.jobFailed)).toBe(1);
    expect(measured(metricNames.jobSucceeded)).toBe(0);
  });

  test("that is lost to another holder is in doubt for good after an unanswered try, whatever came in between", async () => {
    const { app, context, clock, other, afterwards } = setUp();
    const well = (): undefined => undefined;
    afterwards(async () => {
      afterwards(well);
      const lease = await other.inspect("job");
      await adminOf(other).forceRelease("job", { token: lease?.token ?? "" });
      afterwards(() => {
        afterwards(well);
        return Promise.reject(throttled());
      });
      throw new LeaseServiceError("LEASE_NO_ANSWER", "no answer");
    });
    const answer = app(event, context(60_000)).catch((error: unknown) => error);
    await clock.advance(1_000);
    expect(await answer).toMatchObject({
      code: "LEASE_COMPLETION_FAILED",
      cause: { code: "LEASE_NO_ANSWER" },
    });
  });

  test("is not tried again where that is hopeless", async () => {
    const { app, context, clock, afterwards, store } = setUp();
    afterwards(() => Promise.reject(new LeaseServiceError("LEASE_REQUEST_REJECTED", "no")));
    const answer = app(event, context(60_000)).catch((error: unknown) => error);
    await clock.advance(1_000);
    expect(await answer).toMatchObject({ code: "LEASE_COMPLETION_FAILED" });
    expect(store.requests).toHaveLength(2);
  });

  test("where no end of the invocation is known: is tried again until the lease's end", async () => {
    const { app, clock, afterwards } = setUp({ lockAtMostForMs: 5_000, heartbeat: false });
    afterwards(throttling(Number.POSITIVE_INFINITY));
    const answer = follow(app(event, { functionName: "job" } as LambdaContext), clock);
    await clock.advance(3_000);
    expect(answer).toEqual({});
    await clock.advance(2_000);
    expect(answer.error).toMatchObject({ code: "LEASE_COMPLETION_FAILED" });
  });

  test("surfaces an error that is none of the service's as it is", async () => {
    const { app, context, clock, afterwards, measured } = setUp();
    afterwards(() => Promise.reject(new TypeError("a bug")));
    const answer = app(event, context(60_000)).catch((error: unknown) => error);
    await clock.advance(1_000);
    expect(await answer).toBeInstanceOf(TypeError);
    expect(measured(metricNames.jobFailed)).toBe(1);
  });

  test("without once a release that is refused is no failure: the lock frees itself", async () => {
    const { app, context, clock, afterwards, measured, store } = setUp({ once: false });
    afterwards(throttling(Number.POSITIVE_INFINITY));
    const answer = app(event, context(60_000));
    await clock.advance(1_000);
    expect(await answer).toBe("done");
    expect(store.requests).toHaveLength(2);
    expect(measured(metricNames.jobSucceeded)).toBe(1);
  });
});

test.each(Object.entries(ways))(
  "%s: a heartbeat that fails of a bug aborts the signal and fails the invocation",
  async (_, wrap) => {
    const { clock, client, context, store } = bench();
    let reason: unknown;
    const app = wrap({ client, clock, key: "job", lockAtMostForMs: 3_000, heartbeat: true }, async (lock) => {
      store.delay = () => Promise.reject(new TypeError("a bug"));
      await clock.advance(1_500);
      reason = lock.signal.reason;
      store.delay = undefined;
      return "done";
    });
    const failed = { code: "LEASE_LOST", reason: "failed", cause: expect.any(TypeError) };
    await expect(app({}, context())).rejects.toMatchObject(failed);
    expect(reason).toMatchObject(failed);
  },
);

describe.each(Object.entries(ways))("%s: a release that fails", (_, wrap) => {
  const bug = new TypeError("a bug");

  test.each([
    ["of the service", throttled()],
    ["of a bug", bug],
  ])("%s does not hide the handler's own error", async (_, error) => {
    const { clock, client, context, store } = bench();
    const app = wrap({ client, clock, key: "job" }, () => {
      store.delay = () => Promise.reject(error);
      throw new Error("mine");
    });
    await expect(app({}, context())).rejects.toThrow("mine");
  });

  test.each([
    ["of the service is no failure", throttled(), "stopped"],
    ["of a bug is told", bug, bug],
  ])("%s, of work that was asked to stop and succeeded", async (_, error, expected) => {
    const { clock, client, context, store, other } = bench();
    const app = wrap({ client, clock, key: "job", heartbeat: 1_000 }, async ({ lease }) => {
      await adminOf(other).requestRevocation("job", { token: lease.token });
      await clock.advance(1_100);
      store.delay = () => Promise.reject(error);
      return "stopped";
    });
    expect(await app({}, context()).catch((thrown: unknown) => thrown)).toBe(expected);
  });
});
