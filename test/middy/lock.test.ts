import {
  type LeaseClient,
  LeaseLostError,
  LeaseServiceError,
  LeaseUnavailableError,
  SlotDoneError,
} from "@leasehold/client";
import { coreOf } from "@leasehold/client/internal";
import { InvocationEndingError, type LeaseLockOptions, type Lock } from "@leasehold/middy";
import { describe, expect, test } from "vitest";
import { adminOf } from "../support/admin.ts";
import { follow } from "../support/follow.ts";
import { type App, type Bench, bench, type LambdaContext, type Work, ways } from "./support.ts";

const minutes = 15 * 60_000;

describe.each(Object.entries(ways))("%s", (_, wrap) => {
  function setUp(options: LeaseLockOptions, work: Work = () => "done"): Bench & { app: App; runs: Lock[] } {
    const b = bench();
    const runs: Lock[] = [];
    const app = wrap({ ...b.options, ...options }, async (lock, event) => {
      runs.push(lock);
      return await work(lock, event);
    });
    return { ...b, app, runs };
  }

  test("makes exactly 2 requests, and leaves no timer behind", async () => {
    const { app, store, context, clock } = setUp({});
    expect(await app({}, context())).toBe("done");
    expect(store.requests).toEqual(["update", "update"]);
    expect(clock.pending).toBe(0);
  });

  test("keeps no lock where the context breaks after the grant", async () => {
    const { app, context, holder, clock } = setUp({ heartbeat: true });
    const lambda = context();
    const left = lambda.getRemainingTimeInMillis;
    const leftMs = [left, left, () => Number.MAX_VALUE];
    lambda.getRemainingTimeInMillis = () => (leftMs.shift() ?? left)();
    await expect(app({}, lambda)).rejects.toMatchObject({ code: "LEASE_INVALID_OPTIONS" });
    expect([await holder(), clock.pending]).toEqual([undefined, 0]);
  });

  test.each<[string, timeoutMs: number, LeaseLockOptions, leaseMs: number, renewals: number]>([
    ["a minute is covered by one lease, and a second more", 60_000, {}, 61_000, 0],
    ["more than a minute is covered by a short one that is renewed each 10 s", minutes, {}, 30_000, 5],
    ["a lockAtMostForMs is the lease's time", minutes, { lockAtMostForMs: 120_000 }, 120_000, 0],
    ["heartbeat: false has one for the whole time", minutes, { heartbeat: false }, minutes + 1_000, 0],
  ])("of an invocation's time, %s", async (_, timeoutMs, options, leaseMs, renewals) => {
    const { app, runs, context, clock, store } = setUp(options, () => clock.advance(50_000));
    await app({}, context(timeoutMs));
    expect(runs[0]?.lease.toJSON().leaseDurationMs).toBe(leaseMs);
    expect(runs[0]?.signal.aborted).toBe(false);
    expect(store.requests).toHaveLength(1 + renewals + 1);
    expect(clock.pending).toBe(0);
  });

  test("a lock whose cooldown is longer than the invocation can last has a lease as long", async () => {
    const { app, context, clock, other } = setUp({ lockAtLeastForMs: 50_000 });
    expect(await app({}, context(3_000))).toBe("done");
    await clock.advance(49_000);
    expect(await other.tryAcquire("job")).toBeUndefined();
    await clock.advance(2_100);
    expect(await other.tryAcquire("job")).toBeDefined();
  });

  describe("while somebody else holds the lock", () => {
    test("skip answers nothing, with one request and without running the handler", async () => {
      const { app, runs, context, other, store } = setUp({ whenHeld: "skip" });
      await other.acquire("job");
      store.requests.length = 0;
      expect(await app({}, context())).toBeUndefined();
      expect(runs).toHaveLength(0);
      expect(store.requests).toEqual(["update"]);
    });

    test("a function as skipResult gets the event and the reason", async () => {
      const skipResult = (event: unknown, _: unknown, reason: unknown) => [event, (reason as Error).name];
      const { app, context, other } = setUp({ whenHeld: "skip", skipResult });
      await other.acquire("job");
      expect(await app(7, context())).toEqual([7, "LeaseUnavailableError"]);
    });

    test("wait gets the lock when it is let go, with a lease that covers the rest of the invocation", async () => {
      const { app, runs, context, other, clock } = setUp({ whenHeld: "wait" });
      const lease = await other.acquire("job", { leaseDurationMs: 60_000 });
      const lambda = context(60_000);
      const answer = app({}, lambda);
      await clock.advance(10_000);
      await lease.release();
      await clock.advance(8_000);
      expect(await answer).toBe("done");
      const remaining = lambda.getRemainingTimeInMillis();
      expect(runs[0]?.lease.expiresAt).toBeGreaterThan(clock.now() + remaining);
    });

    test.each<[string, LeaseLockOptions, leftMs: number]>([
      ["its reserve", { reserveMs: 20_000 }, 20_000],
      ["a quarter of the time by default", {}, 15_000],
    ])("wait gives up while %s is left", async (_, options, leftMs) => {
      const { app, runs, context, other, clock } = setUp({ whenHeld: "wait", ...options });
      await other.acquire("job", { leaseDurationMs: 600_000 });
      const startedAt = clock.monotonic();
      const refused = follow(app({}, context(60_000)), clock);
      await clock.advance(60_000);
      expect(refused).toMatchObject({ error: expect.any(LeaseUnavailableError) });
      expect(refused.at).toBe(startedAt + 60_000 - leftMs);
      expect(runs).toHaveLength(0);
    });
  });

  describe("replace", () => {
    const untilAborted: Work = (lock) =>
      new Promise((_, reject) => {
        const { signal } = lock;
        if (signal.aborted) reject(signal.reason);
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });

    test("a newer trigger stops the holder at its next heartbeat and runs; the replaced one is skipped", async () => {
      let count = 0;
      const lines: string[] = [];
      const metrics = { job: "j", metrics: (line: string) => void lines.push(line) };
      const { app, context, clock, holder } = setUp(
        { whenHeld: "replace", skipResult: "replaced", ...metrics },
        (lock, event) => (++count === 1 ? untilAborted(lock, event) : "newer"),
      );
      const first = app({ time: "2026-01-01T10:00:00Z" }, context());
      await clock.advance(0);
      const second = app({ time: "2026-01-01T10:01:00Z" }, context());
      await clock.advance(20_000);
      expect(await first).toBe("replaced");
      expect(await second).toBe("newer");
      expect(await holder()).toBeUndefined();
      expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ JobSkipped: 1 }, { JobSucceeded: 1 }]);
    });

    test("an older trigger that comes late does not replace a newer one", async () => {
      const { app, runs, context, clock } = setUp({ whenHeld: "replace", skipResult: "superseded" }, () =>
        clock.advance(20_000),
      );
      const newer = app({ time: "2026-01-01T10:01:00Z" }, context());
      await new Promise(setImmediate);
      expect(await app({ time: "2026-01-01T10:00:00Z" }, context())).toBe("superseded");
      await newer;
      expect(runs).toHaveLength(1);
      expect(runs[0]?.lease.loss).toBeUndefined();
    });

    test("asks each holder that comes to stop, also one of the same name as the one before", async () => {
      const { app, context, clock, other, runs } = setUp({ whenHeld: "replace" });
      const first = await other.acquire("job", { leaseDurationMs: 600_000 });
      const answer = app({}, context());
      await clock.advance(0);
      await first.renew().catch(() => undefined);
      expect(first.signal.reason).toMatchObject({ reason: "revoked" });
      await first.release();
      const second = await other.acquire("job", { leaseDurationMs: 600_000 });
      await clock.advance(2_000);
      await second.renew().catch(() => undefined);
      expect(second.signal.reason).toMatchObject({ reason: "revoked" });
      await second.release();
      await clock.advance(20_000);
      expect(await answer).toBe("done");
      expect(runs).toHaveLength(1);
      expect(runs[0]?.lease.owner).toBe("job/request-1");
    });

    test("asks nobody if the lock is free, or if its slot is done", async () => {
      const { app, context, store } = setUp({
        whenHeld: "replace",
        once: () => "slot",
        skipResult: "skipped",
      });
      expect(await app({}, context())).toBe("done");
      expect(await app({}, context())).toBe("skipped");
      expect(store.requests).toEqual(["update", "update", "update"]);
    });

    test("a handler that fails is no replaced one", async () => {
      const { app, context } = setUp({ whenHeld: "replace", skipResult: "replaced" }, () => {
        throw new Error("mine");
      });
      await expect(app({}, context())).rejects.toThrow("mine");
    });

    test("gives up on a holder that does not hear, and asks nobody any more then", async () => {
      const { app, context, clock, other, store } = setUp({ whenHeld: "replace" });
      await other.acquire("job", { leaseDurationMs: 600_000 });
      const answer = app({}, context(20_000)).catch((error: unknown) => error);
      await clock.advance(20_000);
      expect(await answer).toBeInstanceOf(LeaseUnavailableError);
      expect((await other.inspect("job"))?.revocation).toBe("replaced by job/request-1");
      const before = store.requests.length;
      await clock.advance(60_000);
      expect(store.requests.slice(before).filter((request) => request === "get")).toEqual([]);
    });

    test("asks a holder again where the request to stop has failed", async () => {
      const { app, context, clock, client, other } = setUp({ whenHeld: "replace" });
      await other.acquire("job", { leaseDurationMs: 600_000 });
      const core = coreOf(client);
      const update = core.update.bind(core);
      let asked = 0;
      core.update = async (write, budget) => {
        if (":revocation" in write.values) asked += 1;
        if (asked === 1) throw new LeaseServiceError("LEASE_THROTTLED", "too many requests");
        return await update(write, budget);
      };
      const answer = app({}, context(20_000)).catch((error: unknown) => error);
      await clock.advance(3_000);
      expect((await other.inspect("job"))?.revocation).toMatch("replaced by job/request-1");
      await clock.advance(17_000);
      expect(await answer).toBeInstanceOf(LeaseUnavailableError);
      expect(asked).toBe(2);
    });
  });

  describe("once", () => {
    const event = { scheduledTime: "2026-11-21T10:00:00+00:00", time: "ignored" };

    test("a trigger that is delivered twice runs once, the second is skipped even where held means throw, and the next time runs", async () => {
      const { app, runs, context } = setUp({
        once: true,
        whenHeld: "throw",
        skipResult: (_: unknown, __: unknown, error: unknown) => error,
      });
      expect(await app(event, context())).toBe("done");
      const again = await app({ time: "2026-11-21T10:00:00Z" }, context());
      expect(again).toBeInstanceOf(SlotDoneError);
      expect(again).toMatchObject({ slot: "2026-11-21T10:00:00.000Z" });
      expect(runs).toHaveLength(1);
      await app({ time: "2026-11-21T10:01:00Z" }, context());
      expect(runs).toHaveLength(2);
    });

    test("a trigger that is dated in the future is refused by name, before anything is sent: it would keep out all until then", async () => {
      const { app, runs, context, store, clock } = setUp({ once: true });
      const scheduledTime = new Date(clock.now() + 60_001).toISOString();
      await expect(app({ scheduledTime }, context())).rejects.toMatchObject({
        name: "SlotNotDueError",
        slot: scheduledTime,
        dueInMs: 60_001,
      });
      expect(store.requests).toEqual([]);
      await clock.advance(1);
      expect(await app({ scheduledTime }, context())).toBe("done");
      expect(runs).toHaveLength(1);
    });

    test.each([
      [{}, "event.scheduledTime is undefined"],
      [undefined, "event.scheduledTime is undefined"],
      [{ time: "soon" }, 'event.time is "soon"'],
      [{ scheduledTime: 7, time: "2026-11-21T10:00:00Z" }, "event.scheduledTime is 7"],
    ])(
      "%j without a time is refused before anything is sent, by the name of what is missing",
      async (given, message) => {
        const { app, runs, context, store } = setUp({ once: true });
        const refused = app(given, context()).catch((error: unknown) => error);
        expect(await refused).toMatchObject({ name: "InvalidOptionsError", option: message.split(" ")[0] });
        expect(await refused).toMatchObject({ message: expect.stringContaining(message) });
        expect(store.requests).toEqual([]);
        expect(runs).toHaveLength(0);
      },
    );
  });

  describe("a lease that is lost while the handler runs", () => {
    test("aborts the signal and fails the invocation", async () => {
      const { app, runs, context, clock } = setUp({ lockAtMostForMs: 1_000 }, async (lock) => {
        await clock.advance(999);
        expect(lock.signal.aborted).toBe(false);
        await clock.advance(1);
        expect(lock.signal.reason).toBeInstanceOf(LeaseLostError);
        return "done";
      });
      await expect(app({}, context())).rejects.toMatchObject({ name: "LeaseLostError", reason: "expired" });
      expect(runs).toHaveLength(1);
    });

    test("the handler's own error comes first", async () => {
      const { app, context, clock } = setUp({ lockAtMostForMs: 1_000 }, async () => {
        await clock.advance(2_000);
        throw new Error("mine");
      });
      await expect(app({}, context())).rejects.toThrow("mine");
    });

    test("a revocation aborts the signal but is no error, hides none, and leaves the slot open", async () => {
      const { app, context, clock, other, client } = setUp(
        { heartbeat: 1_000, once: () => "slot" },
        async (lock, event) => {
          await adminOf(other).requestRevocation("job", { token: lock.lease.token });
          await clock.advance(1_100);
          expect(lock.signal.reason).toMatchObject({ reason: "revoked" });
          if (event === "fails") throw new Error("mine");
          return "stopped";
        },
      );
      await expect(app("fails", context())).rejects.toThrow("mine");
      expect(await app({}, context())).toBe("stopped");
      expect(await client.tryAcquire("job", { slot: "slot" })).toBeDefined();
    });

    test("a handler that let its lease go itself has not lost it", async () => {
      const { app, context } = setUp({}, async (lock) => {
        await lock.lease.release();
        return "done";
      });
      expect(await app({}, context())).toBe("done");
    });
  });

  describe("the signal", () => {
    test("aborts shortly before the function's timeout and says so; the lease is released by a handler that stops", async () => {
      const { app, context, clock, holder } = setUp({}, async (lock) => {
        await clock.advance(9_700);
        expect(lock.signal.aborted).toBe(false);
        await clock.advance(50);
        expect(lock.signal.reason).toBeInstanceOf(InvocationEndingError);
        throw lock.signal.reason;
      });
      const ending = { code: "LEASE_INVOCATION_ENDING", reason: "timeout" };
      await expect(app({}, context(10_000))).rejects.toMatchObject(ending);
      expect(await holder()).toBeUndefined();
    });

    test("looks at the clock in a thawed process", async () => {
      const { app, context, clock } = setUp({}, (lock) => {
        clock.freeze(9_900);
        return lock.signal.reason;
      });
      expect(await app({}, context(10_000))).toMatchObject({ reason: "timeout" });
    });
  });

  test("a lease that is taken over while the grant was on its way is not believed", async () => {
    const b = setUp({ lockAtMostForMs: 1_000 });
    const acquire = b.client.acquire.bind(b.client);
    b.client.acquire = (async (...args: Parameters<LeaseClient["acquire"]>) => {
      const lease = await acquire(...args);
      b.clock.freeze(5_000);
      return lease;
    }) as LeaseClient["acquire"];
    await expect(b.app({}, b.context())).rejects.toMatchObject({ name: "LeaseLostError" });
    expect(b.runs).toHaveLength(0);
  });

  describe("without a remaining time", () => {
    const timeless = { functionName: "job" } as LambdaContext;

    test.each([
      ["renewed", {}, 10],
      ["not renewed with heartbeat: false", { heartbeat: false }, 0],
    ])("the lease is short and %s", async (_, options, renewals) => {
      const { app, clock, runs, store } = setUp(options, () => clock.advance(100_000));
      await app({}, timeless).catch(() => undefined);
      expect(runs[0]?.lease.toJSON().leaseDurationMs).toBe(30_000);
      expect(store.requests.length).toBeGreaterThan(renewals);
      expect(clock.pending).toBe(0);
    });

    test("an invocation waits for 30 s", async () => {
      const { app, clock, other } = setUp({ whenHeld: "wait" });
      await other.acquire("job", { leaseDurationMs: 600_000 });
      const refusal = follow(app({}, timeless), clock);
      await clock.advance(29_999);
      expect(refusal).toEqual({});
      await clock.advance(1);
      expect(refusal.error).toBeInstanceOf(LeaseUnavailableError);
    });
  });

  test("a key function gets the event and the context", async () => {
    const { app, runs, context } = setUp({ key: (event, { awsRequestId }) => `${event}/${awsRequestId}` });
    await app("e", context(1_000, "r"));
    expect(runs[0]?.lease.key).toBe("e/r");
  });

  test.each([[undefined], [7], [""], [null]])("a key function that gives %j is refused", async (key) => {
    const { app, context, store } = setUp({ key: () => key as string });
    await expect(app({}, context())).rejects.toMatchObject({ name: "InvalidOptionsError", option: "key" });
    expect(store.requests).toEqual([]);
  });

  test("a context of a durable execution, as middy hands it out, is refused with what to do instead", async () => {
    const { app, context, store, runs } = setUp({});
    const durable = { step: () => undefined, executionContext: {}, lambdaContext: context() };
    await expect(app({}, durable as unknown as LambdaContext)).rejects.toMatchObject({
      name: "InvalidOptionsError",
      option: "context",
      message: expect.stringMatching(/durable execution.*withDurableLease/),
    });
    expect([runs, store.requests]).toEqual([[], []]);
  });
});
