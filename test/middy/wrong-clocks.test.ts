/** The middleware in environments whose clocks are wrong: the table's answers tell the right time. */
import { LeaseClient, LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
import type { LeaseLockOptions } from "@leasehold/middy";
import { describe, expect, test } from "vitest";
import { WorldOfClocks, type WrongClock, wrongClocks } from "../support/wrong-clocks.ts";
import { type LambdaContext, ways } from "./support.ts";

describe.each(Object.entries(ways))("%s", (_, wrap) => {
  describe.each(wrongClocks)("in an environment whose clock is $name", (wrong) => {
    /** A handler that works until the test ends it, in an environment with clocks of its own. */
    function setUp(machineOf: WrongClock, options: LeaseLockOptions) {
      const world = new WorldOfClocks();
      const machine = world.machine(machineOf);
      const client = new LeaseClient({ store: world.store, clock: machine });
      const work = Promise.withResolvers<string>();
      const lock = { client, clock: machine, key: "job", metrics: false, skipResult: "skipped" } as const;
      const app = wrap({ ...lock, ...options }, () => work.promise);
      const invoke = (awsRequestId: string, event: object, timeoutMs = 600_000): Promise<unknown> => {
        const end = machine.monotonic() + timeoutMs;
        const getRemainingTimeInMillis = (): number => Math.max(0, Math.floor(end - machine.monotonic()));
        return app(event, { functionName: "job", awsRequestId, getRemainingTimeInMillis } as LambdaContext);
      };
      return { world, machine, client, invoke, finish: work.resolve };
    }

    test("runs each slot once, and one that is due now", async () => {
      const { world, machine, client, invoke, finish } = setUp(wrong, { once: true });
      // The environment's first answer, as of its earlier invocations, tells it the time.
      await client.inspect("job");
      await wrong.midway(machine);
      const scheduledTime = new Date(world.time.now()).toISOString();
      finish("done");
      expect(await invoke("1", { scheduledTime })).toBe("done");
      expect(await invoke("2", { scheduledTime })).toBe("skipped");
      const right = new LeaseClient({ store: world.store, clock: world.machine() });
      await expect(right.acquire("job", { slot: scheduledTime })).rejects.toBeInstanceOf(SlotDoneError);
    });

    test("waits for its own earlier attempt no longer than its time, and says how long that one's lease is", async () => {
      const options = { resume: true, whenHeld: "throw", lockAtMostForMs: 300_000, reserveMs: 0 } as const;
      const { world, machine, invoke, finish } = setUp(wrong, options);
      const first = invoke("1", {});
      await world.time.advance(10_000);
      await wrong.midway(machine);
      const second = invoke("1", {}, 60_000).catch((error: unknown) => error);
      await world.time.advance(60_000);
      const refused = (await second) as LeaseUnavailableError;
      expect(refused).toBeInstanceOf(LeaseUnavailableError);
      expect(refused.retryAfterMs).toBeGreaterThan(200_000);
      expect(refused.retryAfterMs).toBeLessThanOrEqual(300_000);
      finish("done");
      expect(await first).toBe("done");
    });
  });
});
