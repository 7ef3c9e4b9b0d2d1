/** The promises of the middleware in environments whose clocks are wrong: the table's answers tell the right time. */
import { LeaseClient, LeaseLostError, LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
import type { LeaseLockOptions, Lock } from "@leasehold/middy";
import { describe, expect, test } from "vitest";
import { lapses, WorldOfClocks, type WrongClock, wrongClocks } from "../support/wrong-clocks.ts";
import { type LambdaContext, ways } from "./support.ts";

type Way = (typeof ways)[string];

/** A handler that works until the test ends it, in an environment with clocks of its own. */
function setUp(wrap: Way, wrong: WrongClock, options: LeaseLockOptions = {}) {
  const world = new WorldOfClocks();
  const machine = world.machine(wrong);
  const client = new LeaseClient({ store: world.store, clock: machine });
  const right = new LeaseClient({ store: world.store, clock: world.machine(), owner: "another environment" });
  const locks: Lock[] = [];
  const work = Promise.withResolvers<string>();
  const app = wrap(
    {
      client,
      clock: machine,
      key: "job",
      metrics: false,
      whenHeld: "skip",
      skipResult: "skipped",
      ...options,
    },
    async (lock) => {
      locks.push(lock);
      return await work.promise;
    },
  );
  const context = (awsRequestId: string, timeoutMs = 600_000): LambdaContext => {
    const end = machine.monotonic() + timeoutMs;
    const getRemainingTimeInMillis = (): number => Math.max(0, Math.floor(end - machine.monotonic()));
    return { functionName: "job", awsRequestId, getRemainingTimeInMillis } as LambdaContext;
  };
  return { world, machine, client, right, locks, app, context, finish: work.resolve };
}

describe.each(Object.entries(ways))("%s", (_, wrap) => {
  describe.each(wrongClocks)("in an environment whose clock is $name", (wrong) => {
    test.each([
      ["a lease that covers the invocation", {}],
      ["a heartbeat", { heartbeat: true, lockAtMostForMs: 60_000 }],
    ])("holds the lock for the handler's whole time, by %s", async (_how, options) => {
      const { world, machine, right, locks, app, context, finish } = setUp(wrap, wrong, options);
      const answer = app({}, context("1"));
      await world.time.advance(20_000);
      await wrong.midway(machine);
      await world.time.advance(120_000);
      expect(locks[0]?.signal.aborted).toBe(false);
      expect(locks[0]?.lease.held).toBe(true);
      expect(await right.tryAcquire("job")).toBeUndefined();
      expect(await app({}, context("2"))).toBe("skipped");
      finish("done");
      expect(await answer).toBe("done");
      expect(await right.inspect("job")).toBeUndefined();
    });

    test("runs each slot once, and one that is due now", async () => {
      const { world, machine, client, right, app, context, finish } = setUp(wrap, wrong, { once: true });
      // The environment's first answer, as of its earlier invocations, tells it the time.
      await client.inspect("job");
      await wrong.midway(machine);
      const scheduledTime = new Date(world.time.now()).toISOString();
      finish("done");
      expect(await app({ scheduledTime }, context("1"))).toBe("done");
      expect(await app({ scheduledTime }, context("2"))).toBe("skipped");
      await expect(right.acquire("job", { slot: scheduledTime })).rejects.toBeInstanceOf(SlotDoneError);
    });

    test("waits for a holder, and follows it when it has died", async () => {
      const { world, machine, right, app, context, finish } = setUp(wrap, wrong, { whenHeld: "wait" });
      await right.acquire("job", { leaseDurationMs: 30_000 });
      let answered: unknown;
      const answer = app({}, context("1")).then((result) => {
        answered = result;
      });
      await world.time.advance(10_000);
      await wrong.midway(machine);
      finish("done");
      expect(answered).toBeUndefined();
      await world.time.advance(60_000);
      await answer;
      expect(answered).toBe("done");
    });

    test("waits for its own earlier attempt no longer than that one's lease, and says how long that is", async () => {
      const options = { resume: true, whenHeld: "throw", lockAtMostForMs: 300_000, reserveMs: 0 } as const;
      const { world, machine, app, context, finish } = setUp(wrap, wrong, options);
      const first = app({}, context("1"));
      await world.time.advance(10_000);
      await wrong.midway(machine);
      const second = app({}, context("1", 60_000)).catch((error: unknown) => error);
      await world.time.advance(60_000);
      const refused = (await second) as LeaseUnavailableError;
      expect(refused).toBeInstanceOf(LeaseUnavailableError);
      expect(refused.retryAfterMs).toBeGreaterThan(200_000);
      expect(refused.retryAfterMs).toBeLessThanOrEqual(300_000);
      finish("done");
      expect(await first).toBe("done");
    });
  });

  describe.each(lapses)("in an environment that was $name", (lapse) => {
    test("the handler is told at once that its lease is over, and its result is none", async () => {
      const options = { heartbeat: true, lockAtMostForMs: 60_000 };
      const { world, machine, right, locks, app, context, finish } = setUp(wrap, lapse, options);
      const answer = app({}, context("1")).catch((error: unknown) => error);
      await world.time.advance(5_000);
      await lapse.midway(machine);
      await world.time.advance(20_001);
      expect(locks[0]?.signal.aborted).toBe(true);
      expect(locks[0]?.lease.held).toBe(false);
      finish("done");
      expect(await answer).toBeInstanceOf(LeaseLostError);
      await world.time.advance(60_000);
      expect((await right.acquire("job")).held).toBe(true);
    });
  });
});
