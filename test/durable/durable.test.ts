import { createRequire } from "node:module";
import {
  ChildContextError,
  type DurableContext,
  type DurableLambdaHandler,
  StepError,
  withDurableExecution,
} from "@aws/durable-execution-sdk-js";
import {
  type Lease,
  LeaseClient,
  LeaseLostError,
  LeaseServiceError,
  LeaseUnavailableError,
  SlotDoneError,
} from "@leasehold/client";
import { MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { type DurableLease, type DurableLeaseOptions, withDurableLease } from "@leasehold/durable";
import { beforeEach, describe, expect, test } from "vitest";
import { DurableLock } from "../../packages/durable/src/durable-lock.ts";
import { ExecutionLease, Workload } from "../../packages/durable/src/execution-lease.ts";
import { adminOf } from "../support/admin.ts";
import { DurableWorld } from "../support/durable-leases.ts";
import type { Execution } from "../support/durable-service.ts";
import { Random } from "../worlds/random.ts";

interface Input {
  readonly name: string;
}
type Work<T> = (lease: DurableLease, context: DurableContext, input: Input) => Promise<T>;

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const key = "orders/7";

let world: DurableWorld;
/** What the steps have done, in order. */
let done: string[];
/** What came out of withDurableLease, by the name of the run. */
let thrown: Map<string, unknown>;

beforeEach(() => {
  world = new DurableWorld();
  done = [];
  thrown = new Map();
});

/** A durable function whose process makes its client anew in each invocation, as a cold start does. */
function leased<T>(work: Work<T>, options: DurableLeaseOptions = {}): DurableLambdaHandler {
  return withDurableExecution(async (input: Input, context: DurableContext) => {
    try {
      return await withDurableLease(context, world.client(), key, options, (lease, own) =>
        work(lease, own, input),
      );
    } catch (error) {
      thrown.set(input.name, error);
      throw error;
    }
  });
}

/** Starts an execution whose work runs under the lease. */
function start<T>(work: Work<T>, options?: DurableLeaseOptions, name?: string): Execution {
  return world.service.start(leased(work, options), { name: "A" }, name);
}

/** Two steps, with a time between them. */
function twoSteps(betweenSeconds: number): Work<string> {
  return async (lease, context, { name }) => {
    const first = await context.step("first", async () => {
      done.push(`${name} first`);
      return `first under ${lease.fencingToken}`;
    });
    await context.wait({ seconds: betweenSeconds });
    return await context.step("second", async () => {
      done.push(`${name} second`);
      return `${first}, second under ${lease.fencingToken}`;
    });
  };
}

/** Somebody else's lease, in a process of its own. */
async function otherHolder(leaseDurationMs: number): Promise<Lease> {
  return await world.client().acquire(key, { leaseDurationMs, owner: "somebody else" });
}

async function breakLease(): Promise<void> {
  const client = world.client();
  const token = (await client.inspect(key))?.token;
  if (token === undefined) throw new Error("nobody holds it");
  await adminOf(client).forceRelease(key, { token });
}

function losses(): unknown[] {
  return world.events.filter(({ type }) => type === "lost");
}

describe("a durable lease", () => {
  test("goes on over a suspension as the same lease, and is released at the end", async () => {
    const run = start(twoSteps(3 * 24 * 3_600), { leaseDurationMs: 12 * hour });
    await world.play(day);
    expect(world.holder(key)).toMatch(/^arn:.*durable-execution\/run-1\/4c1f#[-0-9a-f]{36}$/);
    await world.play(3 * day);
    expect(run).toMatchObject({ status: "SUCCEEDED" });
    expect(run.result).toMatch(/^first under (\d+), second under \1$/);
    expect(done).toEqual(["A first", "A second"]);
    expect(world.holder(key)).toBeUndefined();
    expect(losses()).toEqual([]);
  });

  test("costs 1 request to acquire, 1 every third of the lease, 1 for a step after a suspension and 1 to release", async () => {
    const betweenSeconds = 25 * 60;
    start(twoSteps(betweenSeconds));
    await world.play(betweenSeconds * 1_000 - minute);
    const acquired = 1;
    const kept = 4;
    expect(world.requests).toBe(acquired + kept);
    await world.play(2 * minute);
    const keptOnTheSameTick = 1;
    expect(world.requests).toBe(acquired + kept + keptOnTheSameTick + 1);
    expect(done).toEqual(["A first", "A second"]);
  });

  test("a lock that is held is refused with LeaseUnavailableError, and a replay throws the same", async () => {
    await otherHolder(hour);
    const refused: unknown[] = [];
    const handler = withDurableExecution(async (_: Input, context: DurableContext) => {
      try {
        await withDurableLease(context, world.client(), key, {}, async () => "never");
      } catch (error) {
        refused.push(error);
      }
      await context.wait({ seconds: 10 });
      return "went on";
    });
    const run = world.service.start(handler, { name: "A" });
    await world.play(minute);
    expect(run).toMatchObject({ status: "SUCCEEDED", result: "went on" });
    expect(refused).toHaveLength(2);
    for (const error of refused) {
      expect(error).toBeInstanceOf(LeaseUnavailableError);
      expect(error).toMatchObject({ key, holder: "somebody else", code: "LEASE_UNAVAILABLE" });
    }
    expect((refused[0] as Error).message).toBe((refused[1] as Error).message);
  });

  test("an execution that was stopped renews no more, and its lock opens when the lease ends", async () => {
    const run = start(twoSteps(3_600));
    await world.play(10 * minute);
    world.service.stop(run);
    await world.play(14 * minute);
    await expect(world.client().acquire(key)).rejects.toBeInstanceOf(LeaseUnavailableError);
    await world.play(2 * minute);
    expect((await world.client().acquire(key)).held).toBe(true);
  });

  test("belongs to the execution: closing the client of an invocation does not release it", async () => {
    const clients: ReturnType<DurableWorld["client"]>[] = [];
    const handler = withDurableExecution(async (_: Input, context: DurableContext) => {
      const client = world.client();
      clients.push(client);
      await withDurableLease(context, client, key, {}, async (_lease, own) => {
        await own.step("one", async () => undefined);
        await own.wait({ seconds: 60 });
      });
    });
    const run = world.service.start(handler, { name: "A" });
    await world.service.play(0);
    expect(clients.map((client) => client.held())).toEqual([[]]);
    await clients[0]?.close();
    expect(world.holder(key)).toBeDefined();
    await world.play(2 * minute);
    expect(run.status).toBe("SUCCEEDED");
  });

  test("the work's own error comes as the SDK's ChildContextError, and the lock is released", async () => {
    const run = start(async () => {
      throw new RangeError("no such order");
    });
    await world.play(minute);
    expect(run.status).toBe("FAILED");
    expect(thrown.get("A")).toBeInstanceOf(ChildContextError);
    expect(thrown.get("A")).toMatchObject({
      message: "no such order",
      cause: { cause: { name: "RangeError" } },
    });
    expect(world.holder(key)).toBeUndefined();
  });

  test("a result that is too large for a checkpoint is made again by the replay, without a request", async () => {
    const handler = withDurableExecution(async (input: Input, context: DurableContext) => {
      const text = await withDurableLease(context, world.client(), key, {}, async (_lease, own) => {
        const part = await own.step("part", async () => "x".repeat(200_000));
        await own.wait({ seconds: 5 });
        return part + (await own.step("rest", async () => "y".repeat(200_000)));
      });
      const before = world.requests;
      await context.wait({ seconds: 3_600 });
      return [input.name, text.length, world.requests - before];
    });
    const run = world.service.start(handler, { name: "A" });
    await world.play(2 * hour);
    expect(run).toMatchObject({ status: "SUCCEEDED", result: ["A", 400_000, 0] });
    expect(world.holder(key)).toBeUndefined();
  });

  test("a slot that was completed is not run again by an event that is delivered twice", async () => {
    const handler = leased(twoSteps(60), { slot: "2026-03-01T10:00:00.000Z" });
    const first = world.service.start(handler, { name: "A" });
    await world.play(5 * minute);
    const second = world.service.start(handler, { name: "B" });
    await world.play(5 * minute);
    expect([first.status, second.status]).toEqual(["SUCCEEDED", "FAILED"]);
    expect(thrown.get("B")).toBeInstanceOf(SlotDoneError);
    expect(done).toEqual(["A first", "A second"]);
  });

  test("the same event under the same execution name is one execution, with one lease", async () => {
    const handler = leased(twoSteps(60));
    const first = world.service.start(handler, { name: "A" }, "order-7");
    await world.play(10_000);
    expect(world.service.start(handler, { name: "A" }, "order-7")).toBe(first);
    await world.play(5 * minute);
    expect(done).toEqual(["A first", "A second"]);
    expect(world.events.filter(({ type }) => type === "acquired")).toHaveLength(1);
  });

  test("keeps out another lease of the same key within the same execution", async () => {
    const handler = withDurableExecution(async (_: Input, context: DurableContext) => {
      const client = world.client();
      return await withDurableLease(context, client, key, {}, async (_lease, own) => {
        await own.step("one", async () => undefined);
        return await withDurableLease(own, client, key, {}, async () => "both").catch(
          (error: Error) => error.name,
        );
      });
    });
    const run = world.service.start(handler, { name: "A" });
    await world.play(minute);
    expect(run.result).toBe("LeaseUnavailableError");
  });
});

describe("a process that dies at one of its requests", () => {
  const between = 12 * 60;
  const options = { leaseDurationMs: 15 * minute, slot: "7" };

  async function requestsOf(setUp: () => Promise<void> | void): Promise<number> {
    world = new DurableWorld();
    await setUp();
    start(twoSteps(between), { ...options, waitMs: hour });
    await world.play(2 * hour);
    return world.service.boundaries.length;
  }

  async function outcomeOf(
    deaths: readonly number[],
    when: "before" | "after",
    setUp: () => Promise<void> | void,
  ) {
    world = new DurableWorld();
    done = [];
    await setUp();
    world.service.killAt(...deaths.map((at) => ({ at, when })));
    const run = start(twoSteps(between), { ...options, waitMs: hour });
    await world.play(3 * hour);
    return {
      status: run.status,
      result: String(run.result),
      done: [...new Set(done)],
      holder: world.holder(key),
      slot: await world.client().doneSlot(key),
      losses: losses(),
      error: run.error,
    };
  }

  const ended = {
    status: "SUCCEEDED",
    result: expect.stringMatching(/^first under (\d+), second under \1$/),
    done: ["A first", "A second"],
    holder: undefined,
    slot: "7",
    losses: [],
    error: undefined,
  };

  test.each(["before", "after"] as const)(
    "%s it has an effect is made good: every step is done under one lease, and the lock is free at the end",
    async (when) => {
      const last = await requestsOf(() => undefined);
      expect(last).toBeGreaterThanOrEqual(15);
      for (let at = 1; at <= last; at += 1) {
        expect(await outcomeOf([at], when, () => undefined), `at request ${at} of ${last}`).toEqual(ended);
      }
    },
  );

  test.each(["before", "after"] as const)(
    "%s it has an effect, while it waits for a held lock",
    async (when) => {
      const setUp = async (): Promise<void> => {
        const lease = await otherHolder(10 * minute);
        world.clock.schedule(() => void lease.release(), 5 * minute);
      };
      const last = await requestsOf(setUp);
      expect(last).toBeGreaterThanOrEqual(20);
      for (let at = 1; at <= last; at += 1) {
        expect(await outcomeOf([at], when, setUp), `at request ${at} of ${last}`).toEqual(ended);
      }
    },
  );

  test("after it has acquired the lease resumes at once what nobody has heard of, under a larger fencing token", async () => {
    await requestsOf(() => undefined);
    const acquiring = world.service.boundaries.find(({ what }) => what === "lease: update")?.number ?? 0;
    world = new DurableWorld();
    world.service.killAt({ at: acquiring, when: "after" });
    const run = start(twoSteps(1));
    await world.play(minute);
    expect(run).toMatchObject({ status: "SUCCEEDED", error: undefined });
    expect(world.events.filter(({ type }) => type === "takeover")).toMatchObject([
      { reason: "sameOwner", from: { owner: expect.stringContaining(run.arn) } },
    ]);
    const [acquired] = world.events.filter((event) => event.type === "acquired");
    const [takeover] = world.events.filter((event) => event.type === "takeover");
    expect(acquired?.fencingToken).toBeGreaterThan(takeover?.from.fencingToken ?? Number.POSITIVE_INFINITY);
  });

  test("after it has released the lock has the work's result, although others have had the lock since", async () => {
    await requestsOf(() => undefined);
    const releasing = world.service.boundaries.findLast(({ what }) => what === "lease: update")?.number ?? 0;
    world = new DurableWorld();
    world.service.killAt({ at: releasing, when: "after" });
    // Without a slot, of which the item would remember that it is done.
    const { leaseDurationMs } = options;
    const run = start(twoSteps(between), { leaseDurationMs });
    world.service.afterTurn = async () => {
      const isFree = done.includes("A second") && world.holder(key) === undefined;
      if (!isFree || run.status !== "RUNNING") return;
      // The item remembers the last release alone.
      await (await otherHolder(day)).release();
      await otherHolder(day);
    };
    done = [];
    await world.play(hour);
    expect(world.holder(key)).toBe("somebody else");
    expect(run).toMatchObject({ status: "SUCCEEDED", result: ended.result, error: undefined });
    expect(losses()).toEqual([]);
  });

  test.each(["before", "after"] as const)(
    "%s it has an effect, where a replay runs the work again for its large result beside a renewal",
    async (when) => {
      /** Resolves to the status, and gives the number of requests. */
      const outcome = async (at: number): Promise<unknown[]> => {
        world = new DurableWorld();
        world.service.killAt({ at, when });
        const work: Work<string> = async (_lease, own) => {
          const part = await own.step("part", async () => "x".repeat(200_000));
          await own.wait({ seconds: 300 });
          return part + (await own.step("rest", async () => "y".repeat(200_000)));
        };
        const run = world.service.start(
          withDurableExecution(
            async (input: Input, context: DurableContext) =>
              (
                await withDurableLease(context, world.client(), key, options, (lease, own) =>
                  work(lease, own, input),
                )
              ).length,
          ),
          { name: "A" },
        );
        await world.play(hour);
        return [run.status, run.result, world.holder(key), await world.client().doneSlot(key), losses()];
      };
      await outcome(0);
      const last = world.service.boundaries.length;
      expect(last).toBeGreaterThanOrEqual(10);
      for (let at = 1; at <= last; at += 1) {
        const expected = ["SUCCEEDED", 400_000, undefined, "7", []];
        expect(await outcome(at), `at request ${at} of ${last}`).toEqual(expected);
      }
    },
  );

  test.each(["before", "after"] as const)("again and again, %s it has an effect", async (when) => {
    const last = await requestsOf(() => undefined);
    for (let step = 2; step <= 5; step += 1) {
      const deaths = Array.from({ length: Math.ceil((2 * last) / step) }, (_, index) => 1 + index * step);
      expect(await outcomeOf(deaths, when, () => undefined), `at every ${step}th request`).toEqual(ended);
    }
  });
});

describe("a lock that is held", () => {
  test("is waited for without a request, and the release lets the execution go on", async () => {
    const lease = await otherHolder(hour);
    const run = start(twoSteps(1), { waitMs: day });
    await world.play(minute);
    const whenParked = world.requests;
    await world.play(50 * minute);
    expect(world.requests).toBe(whenParked);
    expect(run.invocations).toBe(1);
    await lease.release();
    await world.play(minute);
    expect(run.status).toBe("SUCCEEDED");
    expect(await world.waiters(key)).toEqual([]);
  });

  test("wakes those who wait in the order in which they came, one after the other", async () => {
    const lease = await otherHolder(hour);
    const handler = leased(twoSteps(30), { waitMs: day });
    for (const name of ["A", "B", "C"]) {
      world.service.start(handler, { name });
      await world.play(1_000);
    }
    await lease.release();
    await world.play(10 * minute);
    expect(done).toEqual(["A first", "A second", "B first", "B second", "C first", "C second"]);
    expect(world.service.executions.map(({ status }) => status)).toEqual([
      "SUCCEEDED",
      "SUCCEEDED",
      "SUCCEEDED",
    ]);
  });

  test("is waited for under the longest name that an execution can have, told apart by its end", async () => {
    const lease = await otherHolder(hour);
    const name = "n".repeat(1_024);
    const run = world.service.start(leased(twoSteps(1), { waitMs: day }), { name: "A" }, name);
    await world.play(minute);
    const [waiter] = await world.waiters(key);
    expect(waiter?.key.sk.length).toBeLessThanOrEqual(1_024);
    expect(waiter?.key.sk).toMatch(/n\/4c1f#[-0-9a-f]{36}$/);
    await lease.release();
    await world.play(minute);
    expect(run.status).toBe("SUCCEEDED");
  });

  test("is tried again by itself where the wake-up is lost", async () => {
    world.wakes = false;
    const lease = await otherHolder(10 * minute);
    const run = start(twoSteps(1), { waitMs: day });
    await world.play(minute);
    await lease.release();
    await world.play(11 * minute);
    expect(run.status).toBe("SUCCEEDED");
  });

  test("is taken over from a holder that has died", async () => {
    await otherHolder(10 * minute);
    const run = start(twoSteps(1), { waitMs: day });
    await world.play(12 * minute);
    expect(run.status).toBe("SUCCEEDED");
    expect(world.events.filter(({ type }) => type === "takeover")).toHaveLength(1);
  });

  test("is given up with LeaseUnavailableError when the time to wait is over", async () => {
    await otherHolder(day);
    const run = start(twoSteps(1), { waitMs: 5 * minute });
    await world.play(5 * minute - 1_000);
    expect(run.status).toBe("RUNNING");
    await world.play(3_000);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseUnavailableError" } });
    expect(thrown.get("A")).toMatchObject({ holder: "somebody else" });
    expect(done).toEqual([]);
  });

  test("that is let go in the moment of parking is acquired at once", async () => {
    const lease = await otherHolder(hour);
    let isReleased = false;
    world.failure = (what) => {
      if (what !== "transact" || isReleased) return undefined;
      isReleased = true;
      void lease.release();
      return undefined;
    };
    const run = start(twoSteps(1), { waitMs: day });
    await world.play(minute);
    expect(run.status).toBe("SUCCEEDED");
  });
});

describe("executions that want the same lock at the same time", () => {
  test("never have it together, whatever becomes of their processes", async () => {
    let running: string[] = [];
    const overlaps: string[][] = [];
    const work: Work<void> = async (_lease, context, { name }) => {
      for (const part of ["one", "two", "three"]) {
        await context.step(part, async () => {
          // A step of its own whose process was killed may not have come to its end yet, on a busy machine.
          if (running.some((other) => other !== name)) overlaps.push([...running, name]);
          running.push(name);
          await new Promise((resolve) => setTimeout(resolve, 1));
          done.push(name);
          running = running.filter((other) => other !== name);
        });
        await context.wait({ seconds: 7 });
      }
    };
    const handler = leased(work, { waitMs: day, leaseDurationMs: 9_000 });
    const names = ["A", "B", "C", "D"];
    for (const name of names) world.service.start(handler, { name });
    world.service.killAt(
      ...[9, 23, 41, 58, 77, 103].map(
        (at, index) => ({ at, when: index % 2 === 0 ? "before" : "after" }) as const,
      ),
    );
    await world.service.playTogether();
    await world.play(2 * hour);
    expect(world.service.executions.map(({ status }) => status)).toEqual(names.map(() => "SUCCEEDED"));
    expect(overlaps).toEqual([]);
    // Nobody was let in between two parts of another one.
    const turns = done.filter((name, index) => name !== done[index - 1]);
    expect(turns.toSorted()).toEqual(names);
  });
});

describe("by the seed", () => {
  test.each(Array.from({ length: 20 }, (_, index) => index + 100))(
    "%i, whatever dies: nobody works under a lease that is older than another's work",
    async (seed) => {
      const random = new Random(seed);
      const worked: { name: string; fencingToken: number }[] = [];
      const work: Work<number> = async (lease, context, { name }) => {
        for (let part = 0; part < 3; part += 1) {
          await context.step(`part ${part}`, async () => {
            worked.push({ name, fencingToken: lease.fencingToken });
          });
          await context.wait({ seconds: 1 });
        }
        return lease.fencingToken;
      };
      const handler = leased(work, { waitMs: day, leaseDurationMs: 6_000 });
      const deaths = random.integer(0, 25);
      for (let count = 0; count < deaths; count += 1) {
        world.service.killAt({ at: random.integer(1, 150), when: random.chance(0.5) ? "before" : "after" });
      }
      world.wakes = random.chance(0.7);
      const names = ["A", "B", "C", "D"].slice(0, random.integer(2, 4));
      for (const name of names) world.service.start(handler, { name });
      await world.service.playTogether();
      await world.play(3 * hour);
      expect(world.service.executions.map(({ status, error }) => [status, error])).toEqual(
        names.map(() => ["SUCCEEDED", undefined]),
      );
      const order = worked.map(({ fencingToken }) => fencingToken);
      expect(order).toEqual(order.toSorted((one, other) => one - other));
      for (const { name, fencingToken } of worked) {
        expect(worked.filter((entry) => entry.fencingToken === fencingToken && entry.name !== name)).toEqual(
          [],
        );
      }
      expect(world.holder(key)).toBeUndefined();
      expect(losses()).toEqual([]);
    },
  );
});

describe("a lost lease", () => {
  test("ends the execution at the next renewal, even while it is suspended", async () => {
    const run = start(twoSteps(30 * 24 * 3_600));
    await world.play(minute);
    await breakLease();
    await otherHolder(day);
    await world.play(5 * minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
    expect(thrown.get("A")).toBeInstanceOf(LeaseLostError);
    expect(thrown.get("A")).toMatchObject({ key, reason: "taken" });
    expect(done).toEqual(["A first"]);
    expect(world.holder(key)).toBe("somebody else");
  });

  test("that an operator broke ends the execution at the next renewal, even out of a month's suspension", async () => {
    const run = start(twoSteps(30 * 24 * 3_600));
    await world.play(minute);
    await breakLease();
    await world.play(5 * minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
    expect(thrown.get("A")).toMatchObject({ key, reason: "released" });
    const { invocations } = run;
    await world.play(30 * day);
    expect(run.invocations).toBe(invocations);
    expect(done).toEqual(["A first"]);
    expect(losses()).toMatchObject([{ reason: "released" }]);
  });

  test("that an operator broke ends the execution although a look at the lock fails for a while", async () => {
    const run = start(twoSteps(30 * 24 * 3_600));
    await world.play(minute);
    await breakLease();
    world.failure = (what) =>
      what === "get" ? new LeaseServiceError("LEASE_THROTTLED", "too many requests") : undefined;
    await world.play(20 * minute);
    expect(run.status).toBe("RUNNING");
    world.failure = undefined;
    await world.play(10 * minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
    expect(thrown.get("A")).toMatchObject({ key, reason: "released" });
  });

  test("refuses the next step before it does anything, and does not repeat it", async () => {
    const run = start(twoSteps(120));
    await world.play(minute);
    await breakLease();
    await otherHolder(day);
    await world.play(minute + 1_000);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
    expect(done).toEqual(["A first"]);
    expect(world.holder(key)).toBe("somebody else");
  });

  test("is found by the release where no step comes any more, and then the work's result does not count", async () => {
    const run = start(async (_lease, context) => {
      await context.step("one", async () => undefined);
      await context.wait({ seconds: 120 });
      return "a result";
    });
    await world.play(minute);
    await breakLease();
    await world.play(2 * minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
    expect(thrown.get("A")).toMatchObject({ key, reason: "released" });
  });

  test("that another holder has by then is found by the release as taken", async () => {
    const run = start(async (_lease, context) => {
      await context.step("one", async () => undefined);
      await context.wait({ seconds: 120 });
      return "a result";
    });
    await world.play(minute);
    await breakLease();
    await otherHolder(day);
    await world.play(2 * minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
    expect(thrown.get("A")).toMatchObject({ key, reason: "taken" });
  });

  test("of a holder that was asked to stop is released, so that the one who asked gets the lock", async () => {
    const run = start(twoSteps(day / 1_000));
    await world.play(minute);
    const client = world.client();
    const { token = "" } = (await client.inspect(key)) ?? {};
    await adminOf(client).requestRevocation(key, { token, reason: "deploying" });
    await world.play(5 * minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
    expect(thrown.get("A")).toMatchObject({
      reason: "revoked",
      message: expect.stringContaining("deploying"),
    });
    expect(world.holder(key)).toBeUndefined();
  });

  test("refuses every kind of operation that runs code, in child contexts too", async () => {
    const refused: string[] = [];
    const note = (name: string) => (error: unknown) => {
      if (error instanceof LeaseLostError) refused.push(name);
      else refused.push(`${name}: ${String(error)}`);
    };
    const run = start(async (_lease, own) => {
      await own.step("before", async () => undefined);
      await own.wait({ seconds: 60 });
      await own.step("step", async () => void done.push("step")).catch(note("step"));
      await own
        .waitForCondition("condition", async () => done.push("condition"), {
          initialState: 0,
          waitStrategy: () => ({ shouldContinue: false }),
        })
        .catch(note("condition"));
      await own.waitForCallback("callback", async () => void done.push("callback")).catch(note("callback"));
      await own.invoke("invoke", "other:1", {}).catch(note("invoke"));
      await own
        .runInChildContext(
          "child",
          async (child) => await child.step("in it", async () => void done.push("child")),
        )
        .catch(note("child"));
      const mapped = await own.map(
        "map",
        [1, 2],
        async (child) => await child.step(async () => void done.push("map")),
      );
      refused.push(`map ${mapped.failureCount}`);
      const branches = await own.parallel("parallel", [
        async (child) => await child.step(async () => void done.push("branch")),
        { name: "named", func: async (child) => await child.step(async () => void done.push("branch")) },
      ]);
      refused.push(`parallel ${branches.failureCount}`);
      branches.throwIfError();
    });
    await world.play(30_000);
    await breakLease();
    await world.play(minute);
    expect(done).toEqual([]);
    expect(refused).toEqual(["step", "condition", "callback", "invoke", "child", "map 1", "parallel 1"]);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
  });
});

describe("a service that fails", () => {
  const throttled = new LeaseServiceError("LEASE_THROTTLED", "too many requests");

  test("while the lock is acquired is asked again", async () => {
    let failures = 3;
    world.failure = () => (failures-- > 0 ? throttled : undefined);
    const run = start(twoSteps(1));
    await world.play(minute);
    expect(run.status).toBe("SUCCEEDED");
  });

  test("for ever rejects with its own error", async () => {
    world.failure = () => throttled;
    const run = start(twoSteps(1));
    await world.play(hour);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseServiceError" } });
    expect(thrown.get("A")).toMatchObject({ code: "LEASE_THROTTLED", message: "too many requests" });
  });

  test("while the lease is renewed is asked again, sooner, and the lease stands", async () => {
    const run = start(twoSteps(20 * 60));
    await world.play(minute);
    world.failure = () => throttled;
    await world.play(10 * minute);
    world.failure = undefined;
    await world.play(10 * minute);
    expect(run.status).toBe("SUCCEEDED");
    expect(losses()).toEqual([]);
  });

  test("while a step is to be checked holds the step up, and does not fail it", async () => {
    const run = start(twoSteps(120));
    await world.play(minute);
    world.failure = () => throttled;
    await world.play(2 * minute);
    expect(done).toEqual(["A first"]);
    world.failure = undefined;
    await world.play(5 * minute);
    expect(run.status).toBe("SUCCEEDED");
  });

  test("at the release does not hide the result: the lock opens when the lease ends", async () => {
    const run = start(twoSteps(10));
    await world.play(5_000);
    let renewals = 1;
    world.failure = () => (renewals-- > 0 ? undefined : throttled);
    await world.play(30 * minute);
    expect(run.status).toBe("SUCCEEDED");
    world.failure = undefined;
    expect((await world.client().acquire(key)).held).toBe(true);
  });
});

test.each([
  ["completed", true],
  ["failed", false],
])("is released only when no piece of the %s work runs under it any more", async (_, completed) => {
  const client = new LeaseClient({ store: new MemoryLeaseStore() });
  const lock = new DurableLock(client, "k", { leaseDurationMs: 30_000, isWorking: () => true });
  const held = new ExecutionLease(await client.acquire("k"), lock, new Workload());
  const piece = Promise.withResolvers<string>();
  const running = held.run(() => piece.promise);
  const ending = held.end(completed, false);
  await settled();
  expect(await client.inspect("k")).toBeDefined();
  if (completed) piece.resolve("over");
  else piece.reject("over");
  expect(await running.catch((error: unknown) => error)).toBe("over");
  expect(await ending).toBe("released");
  expect(await client.inspect("k")).toBeUndefined();
});

test("a renewal that finds the lock released by an earlier invocation leaves it to the release to tell", async () => {
  const client = new LeaseClient({ store: new MemoryLeaseStore() });
  const lock = new DurableLock(client, "k", { leaseDurationMs: 30_000, isWorking: () => true });
  const lease = await client.acquire("k");
  const earlier = new ExecutionLease(lease, lock, new Workload());
  const later = new ExecutionLease(lock.resume(lease.toJSON()), lock, new Workload());
  later.workIs("runs");
  expect(await earlier.end(true, false)).toBe("released");
  expect(await later.beat()).toEqual({ state: "unanswered" });
  expect(await later.end(true, true)).toBe("unknown");
});

describe("a step of the work", () => {
  test("is repeated as the user's own strategy says, also where it fails for a lock of its own", async () => {
    let attempts = 0;
    const handler = leased(async (_lease, own) => {
      return await own.step(
        "takes another lock",
        async () => {
          attempts += 1;
          if (attempts < 3) throw new LeaseUnavailableError("another lock", undefined, 0);
          return attempts;
        },
        { retryStrategy: (_, attempt) => ({ shouldRetry: attempt < 5, delay: { seconds: 1 } }) },
      );
    });
    const run = world.service.start(handler, { name: "A" });
    await world.play(minute);
    expect(run).toMatchObject({ status: "SUCCEEDED", result: 3 });
  });

  test("runs beside others at the same time, with one check for all of them", async () => {
    const handler = leased(async (_lease, own) => {
      await own.wait({ seconds: 10 });
      const before = world.requests;
      const results = await Promise.all(["a", "b", "c"].map((name) => own.step(name, async () => name)));
      return [...results, world.requests - before];
    });
    const run = world.service.start(handler, { name: "A" });
    await world.play(minute);
    expect(run).toMatchObject({ status: "SUCCEEDED", result: ["a", "b", "c", 1] });
  });
});

describe("options", () => {
  test.each([
    [{ waitMs: -1 }, "waitMs"],
    [{ waitMs: Number.POSITIVE_INFINITY }, "waitMs"],
    [{ leaseDurationMs: 2_999 }, "leaseDurationMs"],
    [{ heartbeat: true }, "heartbeat"],
    [{ slot: "" }, "slot"],
    [{ leaseDurationMs: Symbol("hostile") }, "leaseDurationMs"],
    [null, "options"],
  ])("%o are refused before anything is sent", async (options, name) => {
    const run = start(twoSteps(1), options as never);
    await world.play(minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "InvalidOptionsError" } });
    expect(run.error?.ErrorMessage).toContain(name);
    expect(world.requests).toBe(0);
  });

  test("a context of another copy of AWS's SDK is refused by name before anything is sent", async () => {
    const other: typeof import("@aws/durable-execution-sdk-js") = createRequire(import.meta.url)(
      "@aws/durable-execution-sdk-js",
    );
    const handler = other.withDurableExecution(
      async (_: Input, context: DurableContext) =>
        await withDurableLease(context, world.client(), key, {}, async () => 1),
    );
    const run = world.service.start(handler, { name: "A" });
    await world.play(minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "InvalidOptionsError" } });
    expect(run.error?.ErrorMessage).toBe(
      "context is of another copy of @aws/durable-execution-sdk-js; allowed: a context of the copy that " +
        "@leasehold/durable loads; install the SDK once, and load both packages by import, or both by require",
    );
    expect(world.requests).toBe(0);
  });

  test("a context that is none of a durable execution is refused", async () => {
    const lambda = { awsRequestId: "1" } as never;
    const leasing = withDurableLease(lambda, world.client(), key, {}, async () => 1);
    await expect(leasing).rejects.toMatchObject({ name: "InvalidOptionsError", option: "context" });
  });
});

test.each([
  "null",
  '"x"',
  '{"leasehold":null}',
  '{"leasehold":"lost"}',
  '{"leasehold":"unavailable","key":"k"}',
])("an error of the work's own stays its own, though its data look like a lease's: %s", async (data) => {
  const work: Work<unknown> = async (_, own) =>
    await own.step(
      "fails",
      async () => {
        throw new StepError("broken", new Error("broken"), data);
      },
      { retryStrategy: () => ({ shouldRetry: false }) },
    );
  const run = start(work);
  await world.play(minute);
  expect(run).toMatchObject({ status: "FAILED", error: { ErrorMessage: "broken" } });
  expect(world.holder(key)).toBeUndefined();
});
