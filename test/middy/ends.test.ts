/** What an invocation leaves behind, and by when it has ended. */
import { getEventListeners } from "node:events";
import { LeaseClient, LeaseUnavailableError } from "@leasehold/client";
import { settled } from "@leasehold/client/testing";
import { leased, leaseLock } from "@leasehold/middy";
import middy from "@middy/core";
import { describe, expect, test } from "vitest";
import { follow } from "../support/follow.ts";
import { bench, ways } from "./support.ts";

const quiet = { metrics: false } as const;

describe.each(Object.entries(ways))("%s", (_, wrap) => {
  test("an attempt that waits for its own earlier one, and then for another's, gives up in time", async () => {
    const { clock, store, other, context } = bench();
    // As soon as the earlier attempt has let go, somebody else has the lock.
    const client = new LeaseClient({
      ...{ store, clock },
      onEvent: ({ type }) => {
        if (type === "released") void other.acquire("job", { leaseDurationMs: 600_000 });
      },
    });
    const work = Promise.withResolvers<void>();
    const options = { client, clock, key: "job", resume: true, whenHeld: "wait", ...quiet } as const;
    const app = wrap(options, () => work.promise);
    const first = app({}, context(60_000, "1"));
    await clock.advance(0);
    const startedAt = clock.monotonic();
    // A quarter of its 40 s is its reserve.
    const second = follow(app({}, context(40_000, "1")), clock);
    await clock.advance(10_000);
    work.resolve();
    await first;
    await clock.advance(60_000);
    expect(second.error).toBeInstanceOf(LeaseUnavailableError);
    expect(second.at).toBeLessThanOrEqual(startedAt + 30_000);
  });

  test("a heartbeat that would come too late for its lease comes each third of it", async () => {
    const { clock, options, other, context } = bench();
    const work = Promise.withResolvers<string>();
    const app = wrap({ ...options, heartbeat: 60_000 }, () => work.promise);
    const run = app({}, context(900_000));
    await clock.advance(120_000);
    expect(await other.tryAcquire("job")).toBeUndefined();
    work.resolve("done");
    expect(await run).toBe("done");
  });

  test("a lease is renewed to the end of its invocation's time, and not for a handler that never ends", async () => {
    const { clock, options, other, context } = bench();
    const app = wrap(
      { ...options, heartbeat: true, lockAtMostForMs: 30_000 },
      () => new Promise(() => undefined),
    );
    void app({}, context(120_000));
    await clock.advance(119_000);
    expect(await other.tryAcquire("job")).toBeUndefined();
    await clock.advance(35_000);
    expect(await other.tryAcquire("job")).toBeDefined();
  });

  test("a second delivery of an event that was done is skipped while its lock is in its cooldown", async () => {
    const { clock, client, context } = bench();
    const options = { client, clock, key: "job", lockAtLeastForMs: 30_000, skipResult: "skipped", ...quiet };
    const app = wrap({ ...options, whenHeld: "skip" }, () => "done");
    expect(await app({}, context(60_000, "1"))).toBe("done");
    expect(await app({}, context(60_000, "1"))).toBe("skipped");
  });
});

describe.each(Object.entries(ways).filter(([name]) => name !== "leased"))("%s", (_, wrap) => {
  test("an invocation that may still run after its end listens to SIGTERM no more: an idle process dies of it", async () => {
    const { clock, client, context, holder } = bench();
    // One listener serves all invocations of a process, those that other tests have left running too.
    const listeners = (): number =>
      process.listeners("SIGTERM").filter(({ name }) => name === "onSigterm").length;
    const before = listeners();
    let during = 0;
    const app = wrap({ client, clock, key: "job", ...quiet }, () => {
      during = listeners();
      // Its time is over: middy's early timeout does not wait for the handler.
      clock.freeze(59_999);
      throw new Error("out of time");
    });
    await expect(app({}, context(60_000))).rejects.toThrow("out of time");
    expect(during).toBe(1);
    expect(await holder()).toMatch(/^job\/request/);
    expect(listeners()).toBeLessThanOrEqual(before);
  });

  // Middy's early timeout is 5 ms before the end. Its timer fires a little late or, by whole milliseconds, a little early.
  test.each([
    [7, "is left to expire", "job/request-1"],
    [8, "is released", undefined],
  ])("the lease of an invocation that ends with %i ms left %s", async (leftMs, _what, expected) => {
    const { clock, client, context, holder } = bench();
    const app = wrap({ client, clock, key: "job", ...quiet }, () => {
      clock.freeze(60_000 - leftMs);
      throw new Error("out of time");
    });
    await expect(app({}, context(60_000))).rejects.toThrow("out of time");
    expect(await holder()).toBe(expected);
  });

  test("a handler that throws the signal's reason has stopped, however late: its lock is released", async () => {
    const { clock, client, context, holder } = bench();
    const app = wrap({ client, clock, key: "job", ...quiet }, (lock) => {
      clock.freeze(59_999);
      throw lock.signal.reason;
    });
    await expect(app({}, context(60_000))).rejects.toMatchObject({ code: "LEASE_INVOCATION_ENDING" });
    expect(await holder()).toBeUndefined();
  });

  test("with resume, a retry runs as soon as the lease of an attempt that may still run has ended", async () => {
    const { clock, client, context } = bench();
    const options = { client, clock, key: "job", resume: true, lockAtMostForMs: 20_000, ...quiet } as const;
    let runs = 0;
    const app = wrap(options, () => {
      runs += 1;
      if (runs > 1) return "second";
      clock.freeze(4_999);
      throw new Error("out of time");
    });
    await expect(app({}, context(5_000, "1"))).rejects.toThrow("out of time");
    const retry = app({}, context(60_000, "1"));
    await clock.advance(14_000);
    expect(runs).toBe(1);
    await clock.advance(2_000);
    expect(runs).toBe(2);
    expect(await retry).toBe("second");
  });
});

test("a refused invocation leaves no listener on the signal that it has followed", async () => {
  const { clock, client, other, context } = bench();
  await other.acquire("job", { leaseDurationMs: 60_000 });
  const { signal } = new AbortController();
  const app = leased({ client, clock, key: "job", whenHeld: "throw", ...quiet }, () => "done");
  await expect(app({}, context(), { signal })).rejects.toThrow(LeaseUnavailableError);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("an invocation that waits to replace another ends with the signal that it follows", async () => {
  const { clock, client, other, context } = bench();
  await other.acquire("job", { leaseDurationMs: 60_000 });
  const follows = new AbortController();
  const app = leased({ client, clock, key: "job", whenHeld: "replace", ...quiet }, () => "done");
  const refusal = follow(app({}, context(), follows), clock);
  await clock.advance(1_000);
  follows.abort(new Error("over"));
  await clock.advance(0);
  expect(refusal.error).toMatchObject({ name: "LeaseAbortedError", cause: { message: "over" } });
});

test("an invocation that is skipped answers when Powertools' middlewares are cleaned up", async () => {
  const { clock, client, other, context } = bench();
  await other.acquire("job", { leaseDurationMs: 60_000 });
  const { promise: flushed, resolve: flush } = Promise.withResolvers<void>();
  const metrics = {
    before: (request: { internal: Record<string, unknown> }) => {
      request.internal["powertools-for-aws.metrics"] = () => flushed;
    },
  };
  const app = middy(async () => "done")
    .use(metrics)
    .use(leaseLock({ client, clock, key: "job", skipResult: "skipped", whenHeld: "skip", ...quiet }));
  const answer = follow(app({}, context()) as Promise<unknown>, clock);
  await settled();
  await settled();
  expect(answer).toEqual({});
  flush();
  await settled();
  expect(answer.value).toBe("skipped");
});
