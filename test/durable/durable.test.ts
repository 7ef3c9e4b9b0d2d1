import { createRequire } from "node:module";
import {
  ChildContextError,
  type DurableContext,
  type DurableLambdaHandler,
  type RetryDecision,
  StepError,
  withDurableExecution,
} from "@aws/durable-execution-sdk-js";
import {
  ClientClosedError,
  type Lease,
  LeaseClient,
  LeaseError,
  LeaseLostError,
  LeaseServiceError,
  LeaseUnavailableError,
  SlotDoneError,
  SlotNotDueError,
} from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { attributeNames } from "@leasehold/client/schema";
import { settled } from "@leasehold/client/testing";
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

  test("keeps the names and the order of its operations, by which a later version finds them again", async () => {
    await otherHolder(10_000);
    const work: Work<void> = async (_lease, own) => {
      await own.wait("pause", { seconds: 60 });
      await own.parallel("both", [{ name: "named", func: async () => undefined }]);
    };
    const run = start(work, { waitMs: minute });
    await world.play(5 * minute);
    expect(run.status).toBe("SUCCEEDED");
    const started = world.service.boundaries.flatMap(({ what }) =>
      [...what.matchAll(/START ([^,]*)/g)].map(([, name]) => name),
    );
    const wait = ["lease:wait", "CALLBACK", "STEP", "lease:acquire"];
    expect(started).toEqual([
      ...["lease:hold", "lease:begin", "lease:acquire", ...wait, ...wait, "lease:keep", "lease:work"],
      ...["pause", "both", "named", "lease:release"],
    ]);
  });

  test("keeps its checkpoints in a form of its own, whatever serdes the execution has", async () => {
    const handler = withDurableExecution(async (_: Input, context: DurableContext) => {
      const defaultSerdes = { serialize: async () => "a text", deserialize: async () => "hidden" };
      context.configureSerdes({ defaultSerdes });
      return await withDurableLease(context, world.client(), key, {}, async (_lease, own) => {
        await own.wait({ seconds: 600 });
        done.push(String(await own.step(async () => await breakLease())));
      });
    });
    const run = world.service.start(handler, { name: "A" });
    await world.play(hour);
    expect(done).toEqual(["hidden"]);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
  });

  test("takes `data` and `lockAtLeastForMs` as any lease does", async () => {
    const run = start(twoSteps(60), { data: { order: 7 }, lockAtLeastForMs: 10 * minute });
    await world.play(10_000);
    expect(await world.client().inspect(key)).toMatchObject({ data: { order: 7 } });
    await world.play(2 * minute);
    expect(run.status).toBe("SUCCEEDED");
    await expect(world.client().acquire(key)).rejects.toMatchObject({ inCooldown: true });
    await world.play(8 * minute);
    expect((await world.client().acquire(key)).held).toBe(true);
  });

  test.each([
    ["held", async () => void (await otherHolder(hour)), { holder: "somebody else", pause: undefined }],
    [
      "paused",
      async () =>
        void (await new LeaseOperator(world.client(), { by: "alice" }).pause(key, {
          forMs: hour,
          reason: "repairs",
        })),
      { holder: expect.stringContaining("paused by"), pause: { by: "alice", reason: "repairs" } },
    ],
  ])(
    "a lock that is %s is refused with LeaseUnavailableError, and a replay throws the same",
    async (_, close, held) => {
      await close();
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
      expect(world.requests).toBe(1);
      expect(refused).toHaveLength(2);
      for (const error of refused) {
        expect(error).toBeInstanceOf(LeaseUnavailableError);
        expect(error).toMatchObject({ key, ...held, code: "LEASE_UNAVAILABLE" });
      }
      expect((refused[0] as Error).message).toBe((refused[1] as Error).message);
    },
  );

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

  test("the work's own error comes as the SDK's ChildContextError, and the slot stays open", async () => {
    const work: Work<never> = async () => {
      throw new RangeError("no such order");
    };
    const run = start(work, { slot: "7" });
    await world.play(minute);
    expect(run.status).toBe("FAILED");
    expect(thrown.get("A")).toBeInstanceOf(ChildContextError);
    expect(thrown.get("A")).toMatchObject({
      message: "no such order",
      cause: { cause: { name: "RangeError" } },
    });
    expect(world.holder(key)).toBeUndefined();
    expect(await world.client().doneSlot(key)).toBeUndefined();
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
    const lease = await otherHolder(60 * day);
    const run = start(twoSteps(1), { waitMs: 90 * day });
    await world.play(minute);
    const [waiter] = await world.waiters(key);
    const removedAt = Number(waiter && world.table.peek(waiter.key)?.[attributeNames.timeToLive]) * 1_000;
    expect(removedAt).toBeGreaterThan(world.clock.now() + 60 * day);
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
    for (const name of ["C", "A", "B"]) {
      world.service.start(handler, { name }, name);
      await world.play(1_000);
    }
    await lease.release();
    await world.play(10 * minute);
    expect(done).toEqual(["C first", "C second", "A first", "A second", "B first", "B second"]);
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

  test("is looked at after longer and longer times, up to 5 minutes, while its holder renews a short lease", async () => {
    await world.client().acquire(key, { leaseDurationMs: 1_000, heartbeat: true });
    const looks: number[] = [];
    world.failure = (what) => {
      if (what === "transact") looks.push(world.clock.now());
      return undefined;
    };
    start(twoSteps(1), { waitMs: day });
    await world.play(30 * minute);
    const seconds = looks.slice(1).map((at, index) => Math.round((at - (looks[index] ?? 0)) / 1_000));
    expect(seconds).toEqual([2, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300]);
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

  test("that ends in the midst of a step aborts the step's signal, is told, and ends the execution", async () => {
    const run = start(async (lease, own) => {
      await own.step("long", async () => {
        const { signal } = lease;
        await world.clock.advance(16 * minute);
        done.push(String(signal.reason));
      });
      await own.step("next", async () => done.push("never"));
    });
    await world.play(minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
    expect(thrown.get("A")).toMatchObject({ key, reason: "expired" });
    expect(done).toEqual([expect.stringContaining("LeaseLostError")]);
    expect(losses()).toMatchObject([{ reason: "expired" }]);
    expect(world.holder(key)).toBeUndefined();
  });

  test("does not let the work's result count where the look for the reason fails", async () => {
    const run = start(async (_lease, own) => {
      await own.step("one", async () => {
        await breakLease();
        let writes = 0;
        const silence = new LeaseServiceError("LEASE_NO_ANSWER", "silence");
        // The first is the release, which is refused.
        world.failure = () => (++writes === 2 ? silence : undefined);
      });
      return "a result";
    });
    await world.play(minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
    expect(thrown.get("A")).toMatchObject({ key, reason: "taken" });
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
      const retryStrategy = () => ({ shouldRetry: true, delay: { seconds: 1 } });
      await own.step("step", async () => void done.push("step"), { retryStrategy }).catch(note("step"));
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
    await world.play(3 * minute);
    expect(run.status).toBe("RUNNING");
    await world.play(minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseServiceError" } });
    expect(thrown.get("A")).toMatchObject({ code: "LEASE_THROTTLED", message: "too many requests" });
  });

  test("at the parking, in a way that does not pass, rejects with its own error", async () => {
    await otherHolder(hour);
    const rejected = new LeaseServiceError("LEASE_REQUEST_REJECTED", "no such attribute");
    let failures = 1;
    world.failure = (what) => (what === "transact" && failures-- > 0 ? rejected : undefined);
    const run = start(twoSteps(1), { waitMs: day });
    await world.play(minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseServiceError" } });
    expect(thrown.get("A")).toMatchObject({ code: "LEASE_REQUEST_REJECTED", message: "no such attribute" });
  });

  test("while the lease is renewed is asked again, sooner, and the lease stands", async () => {
    const run = start(twoSteps(20 * 60));
    await world.play(minute);
    const askedAt = new Set<number>();
    const begunAt = world.clock.now() - minute;
    world.failure = () => {
      askedAt.add(Math.round((world.clock.now() - begunAt) / 1_000));
      return throttled;
    };
    await world.play(10 * minute);
    expect([...askedAt]).toEqual([300, 400, 500, 600]);
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
  ["at a renewal", "update", 1],
  ["at a look for the end of a lease that was broken", "get", 1],
  ["at the release", "update", 2],
])("a mistake in the program %s is not taken for a failure that passes", async (_, request, at) => {
  const run = start(async (_lease, own) => {
    await own.wait({ seconds: 400 });
  });
  await world.play(minute);
  if (request === "get") await breakLease();
  let requests = 0;
  world.failure = (what) => {
    if (what === request) requests += 1;
    return what === request && requests === at ? new TypeError("a mistake") : undefined;
  };
  await world.play(hour);
  expect(run).toMatchObject({ status: "FAILED", error: { ErrorMessage: "a mistake" } });
  expect(thrown.get("A")).not.toBeInstanceOf(LeaseError);
});

describe("a lease as one invocation sees it", () => {
  let client: LeaseClient;
  let lock: DurableLock;
  let held: ExecutionLease;

  beforeEach(async () => {
    client = world.client();
    lock = new DurableLock(client, key, { leaseDurationMs: 30_000, isWorking: () => true });
    held = new ExecutionLease(await client.acquire(key, { slot: "7" }), lock, new Workload());
  });

  test.each([
    ["completed", true],
    ["failed", false],
  ])("is released only when no piece of the %s work runs under it any more", async (_, completed) => {
    const pieces = [Promise.withResolvers<string>(), Promise.withResolvers<string>()] as const;
    const running = pieces.map((piece) => held.run(() => piece.promise).catch((error: unknown) => error));
    const ending = held.end(completed, false);
    for (const piece of pieces) {
      await settled();
      expect(await client.inspect(key)).toBeDefined();
      if (completed) piece.resolve("over");
      else piece.reject("over");
    }
    expect(await Promise.all(running)).toEqual(["over", "over"]);
    expect(await ending).toBe("released");
    expect(await client.inspect(key)).toBeUndefined();
    expect(await client.doneSlot(key)).toBe(completed ? "7" : undefined);
  });

  test("protects work whose holder was asked to stop, and leaves its slot open", async () => {
    await adminOf(client).requestRevocation(key, { token: held.lease.token, reason: "deploying" });
    await expect(held.lease.renew()).rejects.toMatchObject({ reason: "revoked" });
    expect(await held.end(true, false)).toBe("released");
    expect(await client.doneSlot(key)).toBeUndefined();
  });

  test("did not protect work that went on after its end, though nobody has taken it", async () => {
    await world.clock.advance(hour);
    expect(await held.end(true, false)).toMatchObject({ state: "lost", reason: "expired" });
    expect(await client.inspect(key)).toBeUndefined();
    expect(await client.doneSlot(key)).toBeUndefined();
  });

  test("that a renewal finds released by its execution is not lost: the release tells how it has ended", async () => {
    const later = new ExecutionLease(lock.resume(held.lease.toJSON()), lock, new Workload());
    for (const one of [held, later]) one.workIs("runs");
    expect(await held.end(true, false)).toBe("released");
    expect(await later.beat()).toEqual({ state: "unanswered" });
    expect(await later.end(true, true)).toBe("unknown");
    await (await client.acquire(key)).release();
    expect(await held.beat()).toEqual({ state: "unanswered" });
  });
});

describe("a step of the work", () => {
  const retryStrategy = (_: Error, attempt: number): RetryDecision => ({
    shouldRetry: attempt < 5,
    delay: { seconds: 1 },
  });

  test.each([
    ["the user's own strategy", { retryStrategy }, new StepError("own", new Error("own"), "own")],
    ["the user's own strategy", { retryStrategy }, new LeaseUnavailableError("another lock", undefined, 0)],
    ["the SDK", undefined, new Error("own")],
  ])("is repeated as %s says, also where it fails for a lock of its own", async (_, config, error) => {
    let attempts = 0;
    const run = start(async (_lease, own) => {
      const failsTwice = async (): Promise<number> => {
        attempts += 1;
        if (attempts < 3) throw error;
        return attempts;
      };
      return await own.step("fails twice", failsTwice, config);
    });
    await world.play(5 * minute);
    expect(run).toMatchObject({ status: "SUCCEEDED", result: 3 });
  });

  test("keeps the user's other options", async () => {
    const run = start(
      async (_lease, own) =>
        await own
          .waitForCallback("answer", async () => undefined, { timeout: { seconds: 60 } })
          .catch((error: unknown) => (error as Error).name),
    );
    await world.play(2 * minute);
    expect(run).toMatchObject({ status: "SUCCEEDED", result: "CallbackTimeoutError" });
  });

  test("is checked again when a third of the lease is over, and begins where the service fails then", async () => {
    const requests: number[] = [];
    const run = start(async (_lease, own) => {
      await own.wait({ seconds: 10 });
      for (const afterMs of [4 * minute, 2 * minute, 4 * minute, 2 * minute, 0]) {
        await own.step(async () => {
          requests.push(world.requests);
          await world.clock.advance(afterMs);
          if (requests.length === 4)
            world.failure = () => new LeaseServiceError("LEASE_NO_ANSWER", "silence");
        });
      }
      world.failure = undefined;
    });
    await world.play(minute);
    expect(run.status).toBe("SUCCEEDED");
    const acquired = 1;
    expect(requests).toEqual([1, 1, 2, 2, 3].map((checks) => acquired + checks));
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
  /** Starts an execution that calls withDurableLease with something wrong. */
  function misused(wrong: { context?: unknown; work?: unknown; clockSkewMs?: number }): Execution {
    const { clockSkewMs = 1_000, ...given } = wrong;
    const client = new LeaseClient({ store: world.table, clockSkewMs });
    const handler = withDurableExecution(async (_: Input, context: DurableContext) => {
      const { context: own, work } = { context, work: async () => 1, ...given };
      await withDurableLease(own as never, client, key, {}, work as never).catch((error: unknown) => {
        thrown.set("A", error);
        throw error;
      });
    });
    return world.service.start(handler, { name: "A" });
  }

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

  test.each<[string, Parameters<typeof misused>[0]]>([
    ["context", { context: { awsRequestId: "1" } }],
    ["work", { work: "work" }],
    ["clockSkewMs", { clockSkewMs: Number.POSITIVE_INFINITY }],
  ])("a wrong %s is refused", async (option, given) => {
    const run = misused(given);
    await world.play(minute);
    expect(thrown.get("A")).toMatchObject({ name: "InvalidOptionsError", option });
    expect(run.status).toBe("FAILED");
    expect(world.requests).toBe(0);
  });

  test("a slot that is not due is refused before anything is sent", async () => {
    start(twoSteps(1), { slot: new Date(world.clock.now() + day) });
    await world.play(minute);
    expect(thrown.get("A")).toBeInstanceOf(SlotNotDueError);
    expect(world.requests).toBe(0);
  });

  test("a context that somebody has wrapped is taken", async () => {
    const handler = withDurableExecution(async (_: Input, context: DurableContext) => {
      const runInChildContext = async (...args: Parameters<DurableContext["runInChildContext"]>) =>
        await context.runInChildContext(...args);
      const wrapped = Object.assign(Object.create(context), { runInChildContext });
      return await withDurableLease(wrapped, world.client(), key, {}, async () => 1);
    });
    const run = world.service.start(handler, { name: "A" });
    await world.play(minute);
    expect(run).toMatchObject({ status: "SUCCEEDED", result: 1 });
  });
});

test.each([
  "null",
  '"x"',
  '{"leasehold":null}',
  '{"leasehold":"lost"}',
  '{"leasehold":"lost","key":"k"}',
  '{"leasehold":"unavailable","key":"k"}',
  '{"leasehold":"unavailable","key":"k","held":null}',
  '{"leasehold":"unavailable","held":null,"retryAfterMs":1}',
  '{"leasehold":"unavailable","key":"k","held":{"owner":"o"},"retryAfterMs":1}',
  '{"leasehold":"unavailable","key":"k","held":{"expiresAt":1},"retryAfterMs":1}',
  '{"leasehold":"notDue","key":"k","slot":"s"}',
  '{"leasehold":"other","code":"x"}',
  '{"leasehold":"none","code":"x","name":"y"}',
])("an error of the work's own stays its own, though its data look like a lease's: %s", async (data) => {
  const run = start(
    async (_, own) =>
      await own.step(
        "fails",
        async () => {
          throw new StepError("broken", new Error("broken"), data);
        },
        { retryStrategy: () => ({ shouldRetry: false }) },
      ),
  );
  await world.play(minute);
  expect(run).toMatchObject({ status: "FAILED", error: { ErrorMessage: "broken" } });
  expect(thrown.get("A")).toBeInstanceOf(ChildContextError);
  expect(world.holder(key)).toBeUndefined();
});

test.each([
  new LeaseLostError("another", "taken"),
  new LeaseUnavailableError("another", undefined, 5_000),
  new LeaseUnavailableError("another", { owner: "B", expiresAt: 7, inCooldown: true }, 5_000),
  new LeaseUnavailableError(
    "another",
    { owner: "C", expiresAt: 7, inCooldown: false, pause: { by: "C", reason: "repairs" } },
    5_000,
  ),
  new SlotDoneError("another", "1", "2"),
  new SlotNotDueError("another", "1", 5_000),
  new LeaseServiceError("LEASE_CONFLICT", "too many at once"),
  new ClientClosedError(),
])("an error of another lease comes out of the work as what it is, also in a replay: %s", async (error) => {
  const seen: unknown[] = [];
  const handler = withDurableExecution(async (_: Input, context: DurableContext) => {
    const work = async (): Promise<never> => {
      throw error;
    };
    await withDurableLease(context, world.client(), key, {}, work).catch((one: unknown) => seen.push(one));
    await context.wait({ seconds: 10 });
  });
  world.service.start(handler, { name: "A" });
  await world.play(minute);
  const { name, message } = error;
  expect(seen).toMatchObject([0, 1].map(() => ({ ...error, name, message })));
  for (const one of seen) expect(one).toBeInstanceOf(LeaseError);
});
