import { LeaseError } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { breakLease } from "../../packages/client/src/expressions.ts";
import {
  endedTaskKey,
  endedTaskPrefix,
  openTaskKey,
  taskAttributeNames,
  taskIdOf,
} from "../../packages/client/src/schema-tasks.ts";
import { type Task, TaskSet } from "../../packages/client/src/tasks/index.ts";
import { Beliefs } from "../support/simulated-beliefs.ts";
import type { Change } from "../support/simulated-table.ts";
import type { Tamper } from "../support/simulated-weather.ts";
import {
  type Mishap,
  mishaps,
  type Running,
  SimulatedWorld,
  type Tally,
} from "../support/simulated-world.ts";
import { expectToHaveHappened, played, runs, violationOf, without } from "../support/simulations.ts";

const processes = 4;
const set = "import";
const ids = ["t0", "t1", "t2", "t3", "t4"] as const;
const maxAttempts = 3;
const keepForMs = 3_600_000;

type Ending = "succeed" | "fail" | "release";
type Step =
  | Mishap
  | { readonly kind: "add"; readonly process: number; readonly ids: readonly string[] }
  | { readonly kind: "claim"; readonly process: number }
  | { readonly kind: "end"; readonly which: number; readonly how: Ending; readonly retryAfterMs: number }
  | { readonly kind: "requeue"; readonly process: number; readonly which: number }
  | { readonly kind: "break"; readonly which: number }
  | { readonly kind: "night" };

const anyProcess = fc.nat(processes - 1);
const usualStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("add" as const),
      process: anyProcess,
      ids: fc.shuffledSubarray([...ids], { minLength: 1 }),
    }),
  },
  { weight: 10, arbitrary: fc.record({ kind: fc.constant("claim" as const), process: anyProcess }) },
  {
    weight: 7,
    arbitrary: fc.record({
      kind: fc.constant("end" as const),
      which: fc.nat(50),
      how: fc.constantFrom<Ending>("succeed", "fail", "fail", "release"),
      retryAfterMs: fc.constantFrom(0, 0, 2_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("requeue" as const),
      process: anyProcess,
      which: fc.nat(50),
    }),
  },
  ...mishaps(processes),
);
const night: fc.Arbitrary<Step> = fc.record({ kind: fc.constant("night" as const) });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 80, arbitrary: usualStep },
  { weight: 1, arbitrary: night },
);
const breaking: fc.Arbitrary<Step> = fc.record({ kind: fc.constant("break" as const), which: fc.nat(50) });
const stepOrBreak: fc.Arbitrary<Step> = fc.oneof(
  { weight: 20, arbitrary: step },
  { weight: 1, arbitrary: breaking },
);

interface Worker {
  readonly tasks: TaskSet;
  readonly claimed: Set<Task>;
}

class Import {
  readonly world: SimulatedWorld<Worker>;
  readonly #beliefs: Beliefs;
  /** Tasks for which some worker was told of its success, until ttl has forgotten them. */
  readonly #succeeded = new Set<string>();

  constructor(seed: number, tally: Tally, tamper?: Tamper) {
    this.world = new SimulatedWorld<Worker>(seed, tally, {
      processes,
      begin: (client) => ({
        tasks: new TaskSet(client, set, { maxAttempts, keepForMs }),
        claimed: new Set(),
      }),
      onChange: (changes) => this.#changed(changes),
      ...(tamper ? { tamper } : {}),
    });
    this.#beliefs = new Beliefs(this.world);
  }

  async take(one: Step): Promise<void> {
    if (one.kind === "add" || one.kind === "claim" || one.kind === "requeue") this.#call(one);
    else if (one.kind === "end") this.#end(one);
    else if (one.kind === "break") this.#break(one.which);
    else if (one.kind === "night") await this.#night();
    else await this.world.befall(one);
    await this.world.clock.advance(0);
  }

  /** In calm weather one worker is enough to bring every task to its end, those of dead workers included. */
  async expectAllToEnd(): Promise<void> {
    const { world } = this;
    await world.clearUp();
    world.killAll();
    const [running] = world.processes;
    if (running === undefined) return;
    const { tasks } = running.parts;
    let isOver = false;
    const work = async (task: Task): Promise<void> => {
      this.#claimed(running, task);
      await running.process.pause(100);
      running.parts.claimed.delete(task);
      if (world.random.chance(0.3)) throw new WorkError();
    };
    world.watch(
      running,
      tasks.process(work),
      () => {
        isOver = true;
      },
      () => false,
    );
    await world.clock.advance(60_000);
    if (!isOver) world.fault("the set is not drained in calm weather");
    const counts = await Promise.all([tasks.counts(), world.clock.advance(30_000)]);
    const { waiting, running: claimed, ...ended } = counts[0];
    if (waiting + claimed > 0) world.fault(`${waiting} wait and ${claimed} run in calm weather`);
    for (const [state, count] of Object.entries(ended)) if (count > 0) world.count(`in the end: ${state}`);
  }

  #call(one: Extract<Step, { kind: "add" | "claim" | "requeue" }>): void {
    const { world } = this;
    const running = world.processes[one.process];
    if (running === undefined) return;
    const { tasks } = running.parts;
    if (one.kind === "add") {
      const inputs = one.ids.map((id) => ({ id, payload: { id } }));
      world.watch(
        running,
        tasks.add(inputs),
        ({ added }) => world.count(added > 0 ? "added" : "known"),
        isExpected,
      );
    } else if (one.kind === "claim") {
      world.watch(running, tasks.claim(), (task) => task && this.#claimed(running, task), isExpected);
    } else {
      const given = this.#givenUp();
      const id = given[one.which % Math.max(1, given.length)] ?? "t0";
      world.watch(running, tasks.requeue(id), (done) => world.count(`requeued: ${done}`), isExpected);
    }
  }

  /** Tasks that have ended without success. */
  #givenUp(): string[] {
    return ids.filter((id) => {
      const state = this.world.table.memory.peek(endedTaskKey(set, id))?.[taskAttributeNames.state];
      return state === "failed" || state === "parked";
    });
  }

  #claimed({ process, parts }: Running<Worker>, task: Task): void {
    const { world } = this;
    world.count("claimed");
    if (task.attempt > 1) world.count("claimed again");
    if (task.attempt > maxAttempts) world.fault(`${task.id} was claimed ${task.attempt} times`);
    if (this.#succeeded.has(task.id)) world.fault(`${task.id} was claimed after its success`);
    if ((task.payload as { id: string }).id !== task.id)
      world.fault(`${task.id} came with another's payload`);
    parts.claimed.add(task);
    const { fencingToken } = task;
    // Whoever has begun to end a task acts on it no more, though its claim stands until the answer comes.
    const holding = {
      fencingToken,
      get held() {
        return parts.claimed.has(task) && task.held;
      },
    };
    this.#beliefs.add(process, holding, openTaskKey(set, task.id));
  }

  /** One of the tasks that workers believe to have, and the worker. */
  #believed(which: number): { readonly running: Running<Worker>; readonly task: Task } | undefined {
    const all = this.world.processes.flatMap((running) =>
      [...running.parts.claimed].map((task) => ({ running, task })),
    );
    return all[which % Math.max(1, all.length)];
  }

  /** An operator breaks a claim; that its worker may believe in it for a while longer is no fault. */
  #break(which: number): void {
    const { world } = this;
    const one = this.#believed(which);
    if (one === undefined) return;
    const { running, task } = one;
    const { sk: place } = openTaskKey(set, task.id);
    const item = world.table.memory.peek(openTaskKey(set, task.id));
    const token = item?.[attributeNames.token];
    if (token === undefined || item?.[attributeNames.fence] !== task.fencingToken) return;
    running.parts.claimed.delete(task);
    world.table.update(breakLease({ key: set, place, token: String(token) }));
    world.count("broken");
  }

  #end({ which, how, retryAfterMs }: Extract<Step, { kind: "end" }>): void {
    const { world } = this;
    const one = this.#believed(which);
    if (one === undefined) return;
    const { running, task } = one;
    running.parts.claimed.delete(task);
    const call: Promise<unknown> =
      how === "succeed" ? task.succeed() : how === "fail" ? task.fail("", { retryAfterMs }) : task.release();
    const ended = (): void => {
      world.count(`confirmed: ${how}`);
      if (how === "succeed") this.#succeeds(task);
    };
    world.watch(running, call, ended, isExpected);
  }

  #succeeds({ id }: Task): void {
    if (this.#succeeded.has(id)) this.world.fault(`two workers were told of the success of ${id}`);
    this.#succeeded.add(id);
    const item = this.world.table.memory.peek(endedTaskKey(set, id));
    const state = item?.[taskAttributeNames.state];
    if (state !== "succeeded") this.world.fault(`${id} was confirmed, and is ${state}`);
  }

  /** Everybody dies, and ttl forgets the tasks. */
  async #night(): Promise<void> {
    const { world } = this;
    world.killAll();
    await world.clock.advance(2 * keepForMs);
    await world.befall({ kind: "collect" });
    this.#succeeded.clear();
  }

  #changed(changes: readonly Change[]): void {
    const { world } = this;
    const { attempts, state } = taskAttributeNames;
    for (const { key, before, after } of changes) {
      const tries = Number(after?.[attempts] ?? 0);
      if (tries < 0 || tries > maxAttempts) world.fault(`${key.sk} has ${tries} attempts`);
      if (!key.sk.startsWith(endedTaskPrefix)) continue;
      if (before?.[state] === "succeeded") world.fault(`${key.sk} was written after its success`);
      if (before !== undefined) world.count("begun again");
      if (after !== undefined) this.#checkEnded(key.sk, after, changes);
    }
    this.#beliefs.check();
  }

  /** Ended by the claim that held it, in the very write that took the claim away, or parked with no attempt left. */
  #checkEnded(sortKey: string, after: NonNullable<Change["after"]>, changes: readonly Change[]): void {
    const { token, releasedToken } = attributeNames;
    const state = after[taskAttributeNames.state];
    this.world.count(`recorded: ${state}`);
    const id = taskIdOf(sortKey);
    const open = changes.find(({ key }) => key.sk === openTaskKey(set, id).sk);
    if (open?.after !== undefined) this.world.fault(`${id} is ${state}, and still open`);
    const holder = open?.before?.[token];
    const isSpent =
      open?.before?.[taskAttributeNames.attempts] === open?.before?.[taskAttributeNames.maxAttempts];
    const isParked = state === "parked" && open?.before !== undefined && isSpent;
    if (isParked && holder === undefined) this.world.count("parked with its claim broken");
    if (!isParked && holder !== after[releasedToken]) {
      this.world.fault(`${id} is ${state} by ${after[releasedToken]}, and was held by ${holder}`);
    }
  }
}

class WorkError extends Error {
  override readonly name = "WorkError";
}

const expectedCodes = ["LEASE_NO_ANSWER", "LEASE_CONFLICT", "LEASE_TASK_LOST"];

function isExpected(error: unknown): boolean {
  return error instanceof LeaseError && expectedCodes.includes(error.code);
}

function imports(tally: Tally, tamper?: Tamper, any = step): fc.IAsyncProperty<[number, Step[]]> {
  return played(
    any,
    80,
    (seed) => new Import(seed, tally, tamper),
    (scene) => scene.expectAllToEnd(),
    [{ kind: "add", process: 0, ids }],
  );
}

describe("the tasks of a set under delays, lost and late answers, freezes, deaths, ttl and clocks that differ", () => {
  it("succeed once, by the claim that holds them, are claimed no more often than allowed, and all end", async () => {
    const tally: Tally = {};
    await fc.assert(imports(tally), { seed: 1, numRuns: runs(300) });
    expectToHaveHappened(
      tally,
      "added",
      "known",
      "claimed again",
      "takeover",
      "death",
      "begun again",
      "requeued: true",
      "confirmed: succeed",
      "confirmed: fail",
      "confirmed: release",
      "rejected: TaskLostError",
      "request lost",
      "answer lost",
      "sent twice",
      "late arrival",
      "conflict",
      "ttl removed an item",
      "in the end: succeeded",
      "in the end: failed",
      "in the end: parked",
    );
  });

  it("and the same where an operator breaks claims: what was broken at its last attempt is parked", async () => {
    const tally: Tally = {};
    await fc.assert(imports(tally, undefined, stepOrBreak), { seed: 3, numRuns: runs(150) });
    expectToHaveHappened(tally, "broken", "parked with its claim broken", "takeover", "in the end: parked");
  });

  it.each([
    [
      "an ending by another's claim",
      without("#token = :token", isRemoval),
      /by token .*, and was held by token/,
    ],
    ["a task that is added with an attempt more", withOneMore, /has 4 attempts/],
    ["a takeover of a claim that has been renewed", without("#version = :judgedVersion"), /believes to hold/],
    [
      "a task that is added again after its success",
      without("attribute_not_exists(#state)"),
      /after its success/,
    ],
    ["a claim of a task that is claimed", without("attribute_not_exists(#token)"), /believes to hold/],
  ])("are seen through: %s", async (_, mistake, violation) => {
    expect(await violationOf(imports({}, mistake))).toMatch(violation);
  });
});

const withOneMore: Tamper = (write) =>
  "action" in write && ":zero" in write.values
    ? { ...write, values: { ...write.values, ":maxAttempts": maxAttempts + 1 } }
    : write;

function isRemoval(write: object): boolean {
  return "action" in write && write.action === "delete";
}
