/** What can go wrong with a durable lease: processes that die, a lease that is lost, and a service that fails. */

import type { LeaseClient } from "@leasehold/client";
import { LeaseError, LeaseLostError, LeaseServiceError } from "@leasehold/client";
import { settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { DurableLock } from "../../packages/durable/src/durable-lock.ts";
import { ExecutionLease, Workload } from "../../packages/durable/src/execution-lease.ts";
import { adminOf } from "../support/admin.ts";
import type { Death, Execution } from "../support/durable-service.ts";
import { Random } from "../worlds/random.ts";
import { day, hour, key, LockWorld, largeWork, minute, type Work } from "./support.ts";

let world: LockWorld;
beforeEach(() => {
  world = new LockWorld();
});

describe("a process that dies at one of its requests", () => {
  const between = 12 * 60;
  const options = { leaseDurationMs: 15 * minute, slot: "7" };
  const isStepsResult = /^first under (\d+), second under \1$/;

  interface Story {
    readonly name: string;
    readonly begin?: () => Promise<void>;
    readonly work: () => Work<string>;
    /** At how many requests a process can die, at least. */
    readonly requests: number;
    readonly result: unknown;
  }
  const steps: Story = {
    name: "without anybody else",
    work: () => world.twoSteps(between),
    requests: 15,
    result: expect.stringMatching(isStepsResult),
  };
  const stories: readonly Story[] = [
    steps,
    {
      ...steps,
      name: "while it waits for a held lock",
      begin: async () => {
        const lease = await world.otherHolder(10 * minute);
        world.clock.schedule(() => void lease.release(), 5 * minute);
      },
      requests: 20,
    },
    {
      name: "where a replay runs the work again for its large result beside a renewal",
      work: () => largeWork,
      requests: 10,
      result: "x".repeat(200_000) + "y".repeat(200_000),
    },
  ];

  /** Plays a story in a world of its own, with these deaths. */
  async function play({ begin, work }: Story, ...deaths: readonly Death[]) {
    world = new LockWorld();
    await begin?.();
    world.service.killAt(...deaths);
    const run = world.start(work(), { ...options, waitMs: hour });
    await world.play(3 * hour);
    const { status, result, error } = run;
    const [holder, slot] = [world.holder(key), await world.client().doneSlot(key)];
    const done = [...new Set(world.done)];
    return { status, result, error, done, holder, slot, losses: world.eventsOf("lost") };
  }
  const endOf = ({ work, result }: Story) => ({
    ...{ status: "SUCCEEDED", result, error: undefined, holder: undefined, slot: "7", losses: [] },
    done: work() === largeWork ? [] : ["A first", "A second"],
  });

  describe.each(["before", "after"] as const)("%s it has an effect", (when) => {
    test.each(stories)(
      "is made good: every step is done under one lease, and the lock is free at the end: $name",
      async (story) => {
        await play(story);
        const last = world.service.boundaries.length;
        expect(last).toBeGreaterThanOrEqual(story.requests);
        for (let at = 1; at <= last; at += 1)
          expect(await play(story, { at, when }), `at request ${at} of ${last}`).toEqual(endOf(story));
      },
    );
  });

  test("after it has acquired the lease resumes at once what nobody has heard of, under a larger fencing token", async () => {
    await play(steps);
    const acquiring = world.service.boundaries.find(({ what }) => what === "lease: update")?.number ?? 0;
    world = new LockWorld();
    world.service.killAt({ at: acquiring, when: "after" });
    const run = world.start(world.twoSteps(1));
    await world.play(minute);
    expect(run).toMatchObject({ status: "SUCCEEDED", error: undefined });
    expect(world.eventsOf("takeover")).toMatchObject([
      { reason: "sameOwner", from: { owner: expect.stringContaining(run.arn) } },
    ]);
    const [acquired] = world.events.filter((event) => event.type === "acquired");
    const [takeover] = world.events.filter((event) => event.type === "takeover");
    expect(acquired?.fencingToken).toBeGreaterThan(takeover?.from.fencingToken ?? Number.POSITIVE_INFINITY);
  });

  test("after it has released the lock has the work's result, although others have had the lock since", async () => {
    await play(steps);
    const releasing = world.service.boundaries.findLast(({ what }) => what === "lease: update")?.number ?? 0;
    world = new LockWorld();
    world.service.killAt({ at: releasing, when: "after" });
    // Without a slot, of which the item would remember that it is done.
    const { leaseDurationMs } = options;
    const run = world.start(world.twoSteps(between), { leaseDurationMs });
    world.service.afterTurn = async () => {
      const isFree = world.done.includes("A second") && world.holder(key) === undefined;
      if (!isFree || run.status !== "RUNNING") return;
      // The item remembers the last release alone.
      await (await world.otherHolder(day)).release();
      await world.otherHolder(day);
    };
    await world.play(hour);
    expect(world.holder(key)).toBe("somebody else");
    expect(run).toMatchObject({ status: "SUCCEEDED", result: steps.result, error: undefined });
    expect(world.eventsOf("lost")).toEqual([]);
  });
});

describe("executions that want the same lock at the same time", () => {
  test.each(Array.from({ length: 20 }, (_, index) => index + 100))(
    "work one after the other, whatever dies, and under larger and larger fencing tokens: by the seed %i",
    async (seed) => {
      const random = new Random(seed);
      const worked: { name: string; fencingToken: number }[] = [];
      const work: Work<number> = async (lease, context, name) => {
        for (let part = 0; part < 3; part += 1) {
          await context.step(`part ${part}`, async () => {
            worked.push({ name, fencingToken: lease.fencingToken });
          });
          await context.wait({ seconds: 1 });
        }
        return lease.fencingToken;
      };
      const deaths = random.integer(0, 25);
      for (let count = 0; count < deaths; count += 1) {
        world.service.killAt({ at: random.integer(1, 150), when: random.chance(0.5) ? "before" : "after" });
      }
      world.wakes = random.chance(0.7);
      const names = ["A", "B", "C", "D"].slice(0, random.integer(2, 4));
      for (const name of names) world.start(work, { waitMs: day, leaseDurationMs: 6_000 }, name);
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
      expect(world.eventsOf("lost")).toEqual([]);
    },
  );
});

describe("a lost lease", () => {
  const month = 30 * 24 * 3_600;
  const expectLoss = (run: Execution, loss: object): void => {
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseLostError" } });
    expect(world.thrown.get("A")).toBeInstanceOf(LeaseLostError);
    expect(world.thrown.get("A")).toMatchObject({ key, ...loss });
  };
  /** An operator breaks it, and perhaps another caller has it then. */
  const breaks: [how: string, end: () => Promise<unknown>, reason: string][] = [
    ["that an operator broke", () => world.breakLease(), "released"],
    [
      "that another holder has by then",
      async () => {
        await world.breakLease();
        await world.otherHolder(day);
      },
      "taken",
    ],
  ];

  test.each(breaks)(
    "%s ends the execution at the next renewal, even out of a month's suspension",
    async (_, end, reason) => {
      const run = world.start(world.twoSteps(month));
      await world.play(minute);
      await end();
      await world.play(5 * minute);
      expectLoss(run, { reason });
      expect(world.eventsOf("lost")).toMatchObject([{ reason }]);
      expect(world.holder(key)).toBe(reason === "taken" ? "somebody else" : undefined);
      const { invocations } = run;
      await world.play(30 * day);
      expect(run.invocations).toBe(invocations);
      expect(world.done).toEqual(["A first"]);
    },
  );

  test.each(breaks)(
    "%s is found by the release where no step comes any more: the work's result does not count",
    async (_, end, reason) => {
      const run = world.start(async (_lease, context) => {
        await context.step("one", async () => undefined);
        await context.wait({ seconds: 120 });
        return "a result";
      });
      await world.play(minute);
      await end();
      await world.play(2 * minute);
      expectLoss(run, { reason });
    },
  );

  test("that an operator broke ends the execution although a look at the lock fails for a while", async () => {
    const run = world.start(world.twoSteps(month));
    await world.play(minute);
    await world.breakLease();
    world.failure = (what) =>
      what === "get" ? new LeaseServiceError("LEASE_THROTTLED", "too many requests") : undefined;
    await world.play(20 * minute);
    expect(run.status).toBe("RUNNING");
    world.failure = undefined;
    await world.play(10 * minute);
    expectLoss(run, { reason: "released" });
  });

  test("of a holder that was asked to stop is released, so that the one who asked gets the lock", async () => {
    const run = world.start(world.twoSteps(day / 1_000));
    await world.play(minute);
    const client = world.client();
    const { token = "" } = (await client.inspect(key)) ?? {};
    await adminOf(client).requestRevocation(key, { token, reason: "deploying" });
    await world.play(5 * minute);
    expectLoss(run, { reason: "revoked", message: expect.stringContaining("deploying") });
    expect(world.holder(key)).toBeUndefined();
  });

  test("that ends in the midst of a step aborts the step's signal, is told, and ends the execution", async () => {
    const run = world.start(async (lease, own) => {
      await own.step("long", async () => {
        const { signal } = lease;
        await world.clock.advance(16 * minute);
        world.done.push(String(signal.reason));
      });
      await own.step("next", async () => world.done.push("never"));
    });
    await world.play(minute);
    expectLoss(run, { reason: "expired" });
    expect(world.done).toEqual([expect.stringContaining("LeaseLostError")]);
    expect(world.eventsOf("lost")).toMatchObject([{ reason: "expired" }]);
    expect(world.holder(key)).toBeUndefined();
  });

  test("does not let the work's result count where the look for the reason fails", async () => {
    const run = world.start(async (_lease, own) => {
      await own.step("one", async () => {
        await world.breakLease();
        let writes = 0;
        const silence = new LeaseServiceError("LEASE_NO_ANSWER", "silence");
        // The first is the release, which is refused.
        world.failure = () => (++writes === 2 ? silence : undefined);
      });
      return "a result";
    });
    await world.play(minute);
    expectLoss(run, { reason: "taken" });
  });

  test("refuses every kind of operation that runs code, in child contexts too, and repeats none", async () => {
    const refused: string[] = [];
    const note = (name: string) => (error: unknown) => {
      if (error instanceof LeaseLostError) refused.push(name);
      else refused.push(`${name}: ${String(error)}`);
    };
    const does = (what: string) => async (): Promise<void> => void world.done.push(what);
    const run = world.start(async (_lease, own) => {
      await own.step("before", async () => undefined);
      await own.wait({ seconds: 60 });
      const retryStrategy = () => ({ shouldRetry: true, delay: { seconds: 1 } });
      await own.step("step", does("step"), { retryStrategy }).catch(note("step"));
      await own
        .waitForCondition("condition", async () => world.done.push("condition"), {
          initialState: 0,
          waitStrategy: () => ({ shouldContinue: false }),
        })
        .catch(note("condition"));
      await own.waitForCallback("callback", does("callback")).catch(note("callback"));
      await own.invoke("invoke", "other:1", {}).catch(note("invoke"));
      await own
        .runInChildContext("child", async (child) => await child.step("in it", does("child")))
        .catch(note("child"));
      const mapped = await own.map("map", [1, 2], async (child) => await child.step(does("map")));
      refused.push(`map ${mapped.failureCount}`);
      const branches = await own.parallel("parallel", [
        async (child) => await child.step(does("branch")),
        { name: "named", func: async (child) => await child.step(does("branch")) },
      ]);
      refused.push(`parallel ${branches.failureCount}`);
      branches.throwIfError();
    });
    await world.play(30_000);
    await world.breakLease();
    await world.play(minute);
    expect(world.done).toEqual([]);
    expect(refused).toEqual(["step", "condition", "callback", "invoke", "child", "map 1", "parallel 1"]);
    expectLoss(run, { reason: "released" });
  });
});

describe("a service that fails", () => {
  const throttled = new LeaseServiceError("LEASE_THROTTLED", "too many requests");

  test("while the lock is acquired is asked again, and when it fails for ever rejects with its own error", async () => {
    world.failure = () => throttled;
    const run = world.start(world.twoSteps(1));
    await world.play(3 * minute);
    expect(run.status).toBe("RUNNING");
    await world.play(minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseServiceError" } });
    expect(world.thrown.get("A")).toMatchObject({ code: "LEASE_THROTTLED", message: "too many requests" });
  });

  test("at the parking, in a way that does not pass, rejects with its own error", async () => {
    await world.otherHolder(hour);
    const rejected = new LeaseServiceError("LEASE_REQUEST_REJECTED", "no such attribute");
    let failures = 1;
    world.failure = (what) => (what === "transact" && failures-- > 0 ? rejected : undefined);
    const run = world.start(world.twoSteps(1), { waitMs: day });
    await world.play(minute);
    expect(run).toMatchObject({ status: "FAILED", error: { ErrorType: "LeaseServiceError" } });
    const { code, message } = rejected;
    expect(world.thrown.get("A")).toMatchObject({ code, message });
  });

  test("while the lease is renewed is asked again, sooner, and the lease stands", async () => {
    const run = world.start(world.twoSteps(20 * 60));
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
    expect(world.eventsOf("lost")).toEqual([]);
  });

  test("while a step is to be checked holds the step up, and does not fail it", async () => {
    const run = world.start(world.twoSteps(120));
    await world.play(minute);
    world.failure = () => throttled;
    await world.play(2 * minute);
    expect(world.done).toEqual(["A first"]);
    world.failure = undefined;
    await world.play(5 * minute);
    expect(run.status).toBe("SUCCEEDED");
  });

  test("at the release does not hide the result: the lock opens when the lease ends", async () => {
    const run = world.start(world.twoSteps(10));
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
  const run = world.start(async (_lease, own) => {
    await own.wait({ seconds: 400 });
  });
  await world.play(minute);
  if (request === "get") await world.breakLease();
  let requests = 0;
  world.failure = (what) => {
    if (what === request) requests += 1;
    return what === request && requests === at ? new TypeError("a mistake") : undefined;
  };
  await world.play(hour);
  expect(run).toMatchObject({ status: "FAILED", error: { ErrorMessage: "a mistake" } });
  expect(world.thrown.get("A")).not.toBeInstanceOf(LeaseError);
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

  test("that a process with a slower clock takes on again is renewed by 1 request: its versions go on growing", async () => {
    world.clock.jump(hour);
    const ahead = lock.resume(held.lease.toJSON());
    await ahead.renew();
    world.clock.jump(-hour);
    const asked: string[] = [];
    world.failure = (what) => void asked.push(what);
    await lock.resume(ahead.toJSON()).renew();
    expect(asked).toEqual(["update"]);
  });
});
