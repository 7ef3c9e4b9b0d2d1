import { TaskLostError, type TaskRate } from "../../../packages/jobs/src/index.ts";
import { Task } from "../../../packages/jobs/src/tasks/task.ts";
import { TaskForm } from "../../../packages/jobs/src/tasks/task-form.ts";
import { kindOf } from "../../support/lease-writes.ts";
import { insistingOn } from "../../support/recomposed.ts";
import { hastyExpiry, longBelief } from "../../worlds/primitives/lease-mistakes.ts";
import { Import, type TaskStep } from "../../worlds/primitives/task-scene.ts";
import { tasks as simulated } from "../../worlds/primitives/tasks.ts";
import { type Mistake, type Planted, replacing, withoutTests } from "../../worlds/simulation.ts";
import type { World } from "../../worlds/world.ts";
import { dateFaults, scenario, wait } from "../scenario.ts";

type Add = TaskStep & { readonly kind: "add" };
const add = (process: number, maxAttempts: number, ids = ["t0"]): Add => ({
  kind: "add",
  process,
  ids,
  delayMs: 0,
  maxAttempts,
});
/** Tasks that never run at once. */
const addSerially = (process: number, ...ids: string[]): Add => ({
  ...add(process, 2, ids),
  serialKey: "a",
});
const claim = (process: number): TaskStep => ({ kind: "claim", process });
const cancel = (process: number): TaskStep => ({ kind: "cancel", process, id: "t0" });
const requeue = (process: number): TaskStep => ({ kind: "requeue", process, which: 0 });
const ending = (process: number, how: "succeed" | "fail" | "release", retryAfterMs = 0): TaskStep => ({
  kind: "end",
  which: 0,
  of: process,
  how,
  retryAfterMs,
});

const make =
  (workers: number, rate?: TaskRate) =>
  (world: World, { tamper }: Planted): Import =>
    new Import(world, tamper, workers, rate);
const end = (tasks: Import): Promise<void> => tasks.expectAllToEnd();

const planted = (what: string): Mistake => {
  const one = simulated.flatMap(({ mistakes }) => mistakes).find((mistake) => mistake.what === what);
  if (one === undefined) throw new Error(`no simulation of tasks plants ${what}`);
  return one;
};

/** Each of both tests is enough against a claim that was seen too late. */
const whileClaimed: Mistake = {
  what: "a claim of a task that is claimed, whatever its fencing token",
  tamper: withoutTests(
    ({ attribute, write }) => ["token", "fence"].includes(attribute) && kindOf(write) === "acquire",
  ),
  violation: /believes to hold/,
};

const refusedSuccess: Mistake = {
  what: "a success that is reported although it was refused",
  plant: replacing(
    Task.prototype,
    "succeed",
    (succeed) =>
      async function (this: Task, remark) {
        await succeed.call(this, remark).catch((error: unknown) => {
          if (!(error instanceof TaskLostError)) throw error;
        });
      },
  ),
  violation: /was confirmed, and is|two workers were told/,
};

const foreignTakeBack: Mistake = {
  what: "a claim without an answer that takes back another's",
  plant: replacing(
    TaskForm.prototype,
    "cancel",
    (cancel) =>
      function (this: TaskForm, cancellation) {
        return insistingOn(cancel.call(this, cancellation), "attribute_exists(#token)");
      },
  ),
  violation: /believes to hold/,
};

const confirmedLate: Mistake = {
  what: "an ending that another call has come before, and that is confirmed all the same",
  plant: replacing(
    Task.prototype,
    "release",
    (release) =>
      async function (this: Task) {
        await release.call(this).catch((error: unknown) => {
          if (!(error instanceof TaskLostError)) throw error;
        });
      },
  ),
  violation: /was ended by two calls of one claim/,
};

export const tasks = [
  scenario({
    name: "tasks",
    faults: 1,
    kinds: ["answer lost", "sent twice", "conflict", "killed", ...dateFaults],
    make: make(2),
    lanes: [
      { process: 0, steps: [add(0, 2), wait(10), claim(0), ending(0, "fail", 2_000)] },
      { process: 1, steps: [wait(10), claim(1), ending(1, "succeed"), add(1, 2)] },
    ],
    end,
    mistakes: [
      whileClaimed,
      planted("a task that is added again after its success"),
      planted("a claim before its time"),
    ],
  }),
  scenario({
    name: "tasks:lost",
    faults: 1,
    kinds: ["answer lost", "killed", "frozen"],
    make: make(2),
    lanes: [
      { process: 0, steps: [add(0, 2), wait(10), claim(0), wait(4_000), ending(0, "succeed")] },
      { process: 1, steps: [wait(10), claim(1), wait(6_200), claim(1), ending(1, "succeed")] },
    ],
    end,
    mistakes: [
      planted("an ending by another's claim"),
      hastyExpiry,
      longBelief,
      refusedSuccess,
      foreignTakeBack,
    ],
  }),
  scenario({
    name: "tasks:handed over",
    faults: 1,
    kinds: ["request late", "sent twice", "answer lost"],
    make: make(2),
    lanes: [
      { process: 0, steps: [add(0, 2), claim(0), ending(0, "release"), claim(0), ending(0, "release")] },
      { process: 1, steps: [wait(10), claim(1), ending(1, "release")] },
    ],
    end,
    mistakes: [planted("a late copy of a claim")],
  }),
  scenario({
    name: "tasks:begun again",
    faults: 1,
    kinds: ["request late", "sent twice", "answer lost"],
    make: make(2),
    lanes: [
      { process: 0, steps: [add(0, 2), wait(10), cancel(0), requeue(0), cancel(0), requeue(0)] },
      { process: 1, steps: [wait(10), claim(1), ending(1, "release")] },
    ],
    end,
    mistakes: [
      {
        ...planted("a cancel of a task that is claimed"),
        violation: /was not waiting, and is cancelled|has landed after its answer/,
      },
      planted("a late copy of a requeue"),
      planted("a late copy of a cancel"),
    ],
  }),
  scenario({
    name: "tasks:ended thrice",
    // The service fails the first ending as often as it is tried.
    faults: 3,
    kinds: ["throttled"],
    make: make(2),
    lanes: [
      { process: 0, steps: [add(0, 2), claim(0), { kind: "endThrice", of: 0 }] },
      { process: 1, steps: [wait(10), claim(1), ending(1, "succeed")] },
    ],
    end,
    mistakes: [confirmedLate],
  }),
  scenario({
    name: "tasks:failing",
    faults: 1,
    kinds: ["answer lost", "sent twice", "killed"],
    make: make(2),
    lanes: [
      { process: 0, steps: [add(0, 3), ...[1, 2].flatMap(() => [claim(0), ending(0, "fail")])] },
      { process: 1, steps: [wait(10), ...[3, 4].flatMap(() => [claim(1), ending(1, "fail")])] },
    ],
    end,
    mistakes: [planted("a task that is added with an attempt more")],
  }),
  scenario({
    name: "tasks:serial",
    faults: 1,
    kinds: ["answer lost", "sent twice", "request late", "conflict", "killed"],
    make: make(2),
    lanes: [
      { process: 0, steps: [addSerially(0, "t0"), claim(0), ending(0, "release")] },
      { process: 1, steps: [addSerially(1, "t1"), claim(1), ending(1, "succeed")] },
    ],
    end,
    mistakes: [
      planted("a claim beside a running task of its key"),
      planted("a first claim of a key though another task was first"),
      planted("a fencing token of the task alone"),
      planted("a claim that its key's item does not name"),
    ],
  }),
  scenario({
    name: "tasks:serial, later",
    faults: 1,
    kinds: ["answer lost", "sent twice", "request late", "conflict", "killed"],
    openingMs: 10,
    make: make(2),
    lanes: [
      {
        process: 0,
        steps: [
          ...[addSerially(0, "t2"), claim(0), ending(0, "succeed")],
          // Due when the other process looks, which takes it then as the older one of two.
          { ...addSerially(0, "t0"), delayMs: 1_000 },
          ...[wait(10), addSerially(0, "t1"), claim(0), ending(0, "release")],
        ],
      },
      { process: 1, steps: [wait(1_010), claim(1), ending(1, "succeed")] },
    ],
    end,
    mistakes: [planted("a claim though another task of its key was claimed since")],
  }),
  scenario({
    name: "tasks:serial, lost",
    faults: 1,
    kinds: ["answer lost", "killed", "frozen"],
    make: make(2),
    lanes: [
      {
        process: 0,
        steps: [addSerially(0, "t0", "t1"), wait(10), claim(0), wait(4_000), ending(0, "succeed")],
      },
      { process: 1, steps: [wait(10), claim(1), wait(6_200), claim(1), ending(1, "succeed")] },
    ],
    end,
    mistakes: [hastyExpiry],
  }),
  scenario({
    name: "tasks:rate",
    faults: 1,
    kinds: ["answer lost", "sent twice", "request late", "conflict", "killed"],
    make: make(2, { claims: 1, perMs: 2_000 }),
    lanes: [
      { process: 0, steps: [add(0, 2, ["t0", "t1"]), wait(10), claim(0), wait(2_000), claim(0)] },
      { process: 1, steps: [wait(10), claim(1), ending(1, "release"), wait(1_990), claim(1)] },
    ],
    end,
    mistakes: [planted("a count beyond the rate"), planted("a claim that is not counted")],
  }),
];
