/** The course of a durable lease: how it is acquired, waited for, renewed, checked and released. */
import { createRequire } from "node:module";
import {
  ChildContextError,
  type DurableContext,
  type RetryDecision,
  StepError,
} from "@aws/durable-execution-sdk-js";
import {
  ClientClosedError,
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
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { withDurableLease } from "@leasehold/durable";
import { beforeEach, describe, expect, test } from "vitest";
import { day, hour, key, LockWorld, largeWork, minute, type Work } from "./support.ts";

let world: LockWorld;
beforeEach(() => {
  world = new LockWorld();
});

describe("a durable lease", () => {
  test("goes on over a suspension as the same lease, and is released at the end", async () => {
    const run = world.start(world.twoSteps(3 * 24 * 3_600), { leaseDurationMs: 12 * hour });
    await world.play(day);
    expect(world.holder(key)).toMatch(/^arn:.*durable-execution\/A\/4c1f#[-0-9a-f]{36}$/);
    await world.play(3 * day);
    expect(run).toMatchObject({ status: "SUCCEEDED" });
    expect(run.result).toMatch(/^first under (\d+), second under \1$/);
    expect(world.done).toEqual(["A first", "A second"]);
    expect(world.holder(key)).toBeUndefined();
    expect(world.eventsOf("lost")).toEqual([]);
  });

  test("costs 1 request to acquire, 1 every third of the lease, 1 for a step after a suspension and 1 to release", async () => {
    const betweenSeconds = 25 * 60;
    world.start(world.twoSteps(betweenSeconds));
    await world.play(betweenSeconds * 1_000 - minute);
    const acquired = 1;
    const kept = 4;
    expect(world.requests).toBe(acquired + kept);
    await world.play(2 * minute);
    const keptOnTheSameTick = 1;
    expect(world.requests).toBe(acquired + kept + keptOnTheSameTick + 1);
    expect(world.done).toEqual(["A first", "A second"]);
  });

  test("keeps the names and the order of its operations, by which a later version finds them again", async () => {
    await world.otherHolder(10_000);
    const work: Work<void> = async (_lease, own) => {
      await own.wait("pause", { seconds: 60 });
      await own.parallel("both", [{ name: "named", func: async () => undefined }]);
    };
    const run = world.start(work, { waitMs: minute });
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
    const run = world.run(async (context) => {
      const defaultSerdes = { serialize: async () => "a text", deserialize: async () => "hidden" };
      context.configureSerdes({ defaultSerdes });
      return await withDurableLease(context, world.client(), key, {}, async (_lease, own) => {
        await own.wait({ seconds: 600 });
        world.done.push(String(await own.step(async () => await world.breakLease())));
      });
    });
    await world.play(hour);
    expect(world.done).toEqual(["hidden"]);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
  });

  test("takes `data` and `lockAtLeastForMs` as any lease does", async () => {
    const run = world.start(world.twoSteps(60), { data: { order: 7 }, lockAtLeastForMs: 10 * minute });
    await world.play(10_000);
    expect(await world.client().inspect(key)).toMatchObject({ data: { order: 7 } });
    await world.play(2 * minute);
    expect(run.status).toBe("SUCCEEDED");
    await expect(world.client().acquire(key)).rejects.toMatchObject({ inCooldown: true });
    await world.play(8 * minute);
    expect((await world.client().acquire(key)).held).toBe(true);
  });

  test("of an execution that was stopped is not renewed any more, and ends by itself", async () => {
    const run = world.start(world.twoSteps(3_600));
    await world.play(10 * minute);
    world.service.stop(run);
    await world.play(14 * minute);
    await expect(world.client().acquire(key)).rejects.toBeInstanceOf(LeaseUnavailableError);
    await world.play(2 * minute);
    expect((await world.client().acquire(key)).held).toBe(true);
  });

  test("belongs to the execution: closing the client of an invocation does not release it", async () => {
    const clients: LeaseClient[] = [];
    const run = world.run(async (context) => {
      const client = world.client();
      clients.push(client);
      await withDurableLease(context, client, key, {}, async (_lease, own) => {
        await own.step("one", async () => undefined);
        await own.wait({ seconds: 60 });
      });
    });
    await world.play(0);
    expect(clients.map((client) => client.held())).toEqual([[]]);
    await clients[0]?.close();
    expect(world.holder(key)).toBeDefined();
    await world.play(2 * minute);
    expect(run.status).toBe("SUCCEEDED");
  });

  test("is released when its work fails: the work's own error comes as the SDK's, and the slot stays open", async () => {
    const work: Work<never> = async () => {
      throw new RangeError("no such order");
    };
    const run = world.start(work, { slot: "7" });
    await world.play(minute);
    expect(run.status).toBe("FAILED");
    expect(world.thrown.get("A")).toBeInstanceOf(ChildContextError);
    expect(world.thrown.get("A")).toMatchObject({
      message: "no such order",
      cause: { cause: { name: "RangeError" } },
    });
    expect(world.holder(key)).toBeUndefined();
    expect(await world.client().doneSlot(key)).toBeUndefined();
  });

  test("sends nothing more when a replay makes a result again that is too large for a checkpoint", async () => {
    const run = world.run(async (context) => {
      const text = await withDurableLease(context, world.client(), key, {}, (lease, own) =>
        largeWork(lease, own, "A"),
      );
      await context.wait({ seconds: 3_600 });
      return text.length;
    });
    await world.play(10 * minute);
    const { requests } = world;
    expect(world.holder(key)).toBeUndefined();
    await world.play(hour);
    expect(run).toMatchObject({ status: "SUCCEEDED", result: 400_000 });
    expect(world.requests).toBe(requests);
  });

  test("runs a slot once, though its event is delivered to two executions", async () => {
    const slot = "2026-03-01T10:00:00.000Z";
    const first = world.start(world.twoSteps(60), { slot }, "A");
    await world.play(5 * minute);
    const second = world.start(world.twoSteps(60), { slot }, "B");
    await world.play(5 * minute);
    expect([first.status, second.status]).toEqual(["SUCCEEDED", "FAILED"]);
    expect(world.thrown.get("B")).toBeInstanceOf(SlotDoneError);
    expect(world.done).toEqual(["A first", "A second"]);
  });

  test("keeps out another lease of the same key within the same execution", async () => {
    const run = world.run(async (context) => {
      const client = world.client();
      return await withDurableLease(context, client, key, {}, async (_lease, own) => {
        await own.step("one", async () => undefined);
        return await withDurableLease(own, client, key, {}, async () => "both").catch(
          (error: Error) => error.name,
        );
      });
    });
    await world.play(minute);
    expect(run.result).toBe("LeaseUnavailableError");
  });
});

describe("a lock that is held", () => {
  const pause = () =>
    new LeaseOperator(world.client(), { by: "alice" }).pause(key, { forMs: hour, reason: "repairs" });

  test.each<[string, () => Promise<unknown>, object]>([
    ["another holds", () => world.otherHolder(hour), { holder: "somebody else", pause: undefined }],
    [
      "an operator has paused",
      pause,
      { holder: expect.stringContaining("paused by"), pause: { by: "alice", reason: "repairs" } },
    ],
  ])(
    "and that %s is refused with LeaseUnavailableError, and a replay throws the same",
    async (_, close, held) => {
      await close();
      const refused: unknown[] = [];
      const run = world.run(async (context) => {
        await withDurableLease(context, world.client(), key, {}, async () => "never").catch(
          (error: unknown) => refused.push(error),
        );
        await context.wait({ seconds: 10 });
        return "went on";
      });
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

  test("is waited for without a request, and the release lets the execution go on", async () => {
    const lease = await world.otherHolder(60 * day);
    const run = world.start(world.twoSteps(1), { waitMs: 90 * day });
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
    const lease = await world.otherHolder(hour);
    for (const name of ["C", "A", "B"]) {
      world.start(world.twoSteps(30), { waitMs: day }, name);
      await world.play(1_000);
    }
    await lease.release();
    await world.play(10 * minute);
    expect(world.done).toEqual(["C first", "C second", "A first", "A second", "B first", "B second"]);
    expect(world.service.executions.map(({ status }) => status)).toEqual(Array(3).fill("SUCCEEDED"));
  });

  test("is waited for under the longest name that an execution can have, told apart by its end", async () => {
    const lease = await world.otherHolder(hour);
    const run = world.start(world.twoSteps(1), { waitMs: day }, "n".repeat(1_024));
    await world.play(minute);
    const [waiter] = await world.waiters(key);
    expect(waiter?.key.sk.length).toBeLessThanOrEqual(1_024);
    expect(waiter?.key.sk).toMatch(/n\/4c1f#[-0-9a-f]{36}$/);
    await lease.release();
    await world.play(minute);
    expect(run.status).toBe("SUCCEEDED");
  });

  test("is looked at after longer and longer times, up to 5 minutes, while its holder renews a short lease", async () => {
    await world.client().acquire(key, { leaseDurationMs: 1_000, heartbeat: true });
    const looks: number[] = [];
    world.failure = (what) => {
      if (what === "transact") looks.push(world.clock.now());
      return undefined;
    };
    world.start(world.twoSteps(1), { waitMs: day });
    await world.play(30 * minute);
    const seconds = looks.slice(1).map((at, index) => Math.round((at - (looks[index] ?? 0)) / 1_000));
    expect(seconds).toEqual([2, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300]);
  });

  test("is taken over from a holder that has died", async () => {
    await world.otherHolder(10 * minute);
    const run = world.start(world.twoSteps(1), { waitMs: day });
    await world.play(12 * minute);
    expect(run.status).toBe("SUCCEEDED");
    expect(world.eventsOf("takeover")).toHaveLength(1);
  });

  test("is given up with LeaseUnavailableError when the time to wait is over", async () => {
    await world.otherHolder(day);
    const run = world.start(world.twoSteps(1), { waitMs: 5 * minute });
    await world.play(5 * minute - 1_000);
    expect(run.status).toBe("RUNNING");
    await world.play(3_000);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseUnavailableError" } });
    expect(world.thrown.get("A")).toMatchObject({ holder: "somebody else" });
    expect(world.done).toEqual([]);
  });

  test("and is let go in the moment of parking is acquired at once", async () => {
    const lease = await world.otherHolder(hour);
    let isReleased = false;
    world.failure = (what) => {
      if (what !== "transact" || isReleased) return undefined;
      isReleased = true;
      void lease.release();
      return undefined;
    };
    const run = world.start(world.twoSteps(1), { waitMs: day });
    await world.play(minute);
    expect(run.status).toBe("SUCCEEDED");
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
    const run = world.start(async (_lease, own) => {
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
    const run = world.start(
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
    const run = world.start(async (_lease, own) => {
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
    const run = world.start(async (_lease, own) => {
      await own.wait({ seconds: 10 });
      const before = world.requests;
      const results = await Promise.all(["a", "b", "c"].map((name) => own.step(name, async () => name)));
      return [...results, world.requests - before];
    });
    await world.play(minute);
    expect(run).toMatchObject({ status: "SUCCEEDED", result: ["a", "b", "c", 1] });
  });
});

describe("refused by name before anything is sent", () => {
  interface Wrong {
    readonly context?: object;
    readonly client?: unknown;
    readonly key?: unknown;
    readonly work?: unknown;
    readonly options?: unknown;
  }
  const unlimited = new LeaseClient({
    store: new MemoryLeaseStore(),
    clockSkewMs: Number.POSITIVE_INFINITY,
  });
  test.each<[option: string, Wrong]>([
    ["context", { context: { awsRequestId: "1" } }],
    ["client", { client: {} }],
    ["key", { key: "" }],
    ["work", { work: "work" }],
    ["clockSkewMs", { client: unlimited }],
    ["waitMs", { options: { waitMs: -1 } }],
    ["waitMs", { options: { waitMs: Number.POSITIVE_INFINITY } }],
    ["leaseDurationMs", { options: { leaseDurationMs: 2_999 } }],
    ["leaseDurationMs", { options: { leaseDurationMs: Symbol("hostile") } }],
    ["options.heartbeat", { options: { heartbeat: true } }],
    ["slot", { options: { slot: "" } }],
    ["data", { options: { data: 1n } }],
    ["lockAtLeastForMs", { options: { lockAtLeastForMs: "1" } }],
    ["options", { options: null }],
  ])("is a wrong %s: %o", async (option, wrong) => {
    let refusal: unknown;
    const run = world.run(async (context) => {
      const right = { context, client: world.client(), key, options: {}, work: async () => 1 };
      const { context: own, client, key: name, options, work } = { ...right, ...wrong } as typeof right;
      await withDurableLease(own, client, name, options, work).catch((error) => {
        refusal = error;
        throw error;
      });
    });
    await world.play(minute);
    expect(refusal).toMatchObject({ name: "InvalidOptionsError", option });
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "InvalidOptionsError" } });
    expect(world.requests).toBe(0);
  });

  test("is a context of another copy of AWS's SDK", async () => {
    const other: typeof import("@aws/durable-execution-sdk-js") = createRequire(import.meta.url)(
      "@aws/durable-execution-sdk-js",
    );
    const handler = other.withDurableExecution(
      async (_: unknown, context: DurableContext) =>
        await withDurableLease(context, world.client(), key, {}, async () => 1),
    );
    const run = world.service.start(handler, {});
    await world.play(minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "InvalidOptionsError" } });
    expect(run.error?.ErrorMessage).toBe(
      "context is of another copy of @aws/durable-execution-sdk-js; allowed: a context of the copy that " +
        "@leasehold/durable loads; install the SDK once, and load both packages by import, or both by require",
    );
    expect(world.requests).toBe(0);
  });

  test("is a slot that is not due", async () => {
    world.start(world.twoSteps(1), { slot: new Date(world.clock.now() + day) });
    await world.play(minute);
    expect(world.thrown.get("A")).toBeInstanceOf(SlotNotDueError);
    expect(world.requests).toBe(0);
  });
});

test("a context that somebody has wrapped is taken", async () => {
  const run = world.run(async (context) => {
    const runInChildContext = async (...args: Parameters<DurableContext["runInChildContext"]>) =>
      await context.runInChildContext(...args);
    const wrapped = Object.assign(Object.create(context), { runInChildContext });
    return await withDurableLease(wrapped, world.client(), key, {}, async () => 1);
  });
  await world.play(minute);
  expect(run).toMatchObject({ status: "SUCCEEDED", result: 1 });
});

describe("an error of the work", () => {
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
  ])("stays its own, though its data look like a lease's: %s", async (data) => {
    const fail = async (): Promise<never> => {
      throw new StepError("broken", new Error("broken"), data);
    };
    const once = { retryStrategy: () => ({ shouldRetry: false }) };
    const run = world.start(async (_, own) => await own.step("fails", fail, once));
    await world.play(minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorMessage: "broken" } });
    expect(world.thrown.get("A")).toBeInstanceOf(ChildContextError);
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
  ])("of another lease comes out as what it is, also in a replay: %s", async (error) => {
    const seen: unknown[] = [];
    world.run(async (context) => {
      const work = async (): Promise<never> => {
        throw error;
      };
      await withDurableLease(context, world.client(), key, {}, work).catch((one: unknown) => seen.push(one));
      await context.wait({ seconds: 10 });
    });
    await world.play(minute);
    const { name, message } = error;
    expect(seen).toMatchObject([0, 1].map(() => ({ ...error, name, message })));
    for (const one of seen) expect(one).toBeInstanceOf(LeaseError);
  });
});
