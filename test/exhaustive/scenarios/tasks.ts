import { TaskLostError, type TaskRate } from "../../../packages/jobs/src/index.ts";
import { Task } from "../../../packages/jobs/src/tasks/task.ts";
import { TaskForm } from "../../../packages/jobs/src/tasks/task-form.ts";
import { isA } from "../../support/lease-writes.ts";
import { insistingOn } from "../../support/recomposed.ts";
import { hastyExpiry, longBelief } from "../../worlds/primitives/lease-mistakes.ts";
import { Import, type TaskStep } from "../../worlds/primitives/task-scene.ts";
import { claimsPastAnother, tasks as simulated } from "../../worlds/primitives/tasks.ts";
import { type Mistakes, named, replacing, without } from "../../worlds/simulation.ts";
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
  (world: World): Import =>
    new Import(world, workers, rate);

const ofWorlds: Mistakes = Object.assign({}, ...simulated.map(({ mistakes }) => mistakes));
const planted = (...words: readonly string[]): Mistakes => named(ofWorlds, ...words);

/** An ending that was refused counts as done. */
async function refusalIgnored(ending: Promise<void>): Promise<void> {
  await ending.catch((error: unknown) => {
    if (!(error instanceof TaskLostError)) throw error;
  });
}

export const tasks = [
  scenario({
    name: "tasks",
    kinds: ["answer lost", "sent twice", "conflict", "killed", ...dateFaults],
    make: make(2),
    lanes: [
      { process: 0, steps: [add(0, 2), wait(10), claim(0), ending(0, "fail", 2_000)] },
      { process: 1, steps: [wait(10), claim(1), ending(1, "succeed"), add(1, 2)] },
    ],
    mistakes: {
      // Each of both tests is enough against a claim that was seen too late.
      "a claim of a task that is claimed, whatever its fencing token": [
        without({ of: ["token", "fence"], by: isA("acquire") }),
        /believes to hold/,
      ],
      ...planted("added again after its success", "before its time"),
    },
  }),
  scenario({
    name: "tasks:lost",
    kinds: ["answer lost", "killed", "frozen"],
    make: make(2),
    lanes: [
      { process: 0, steps: [add(0, 2), wait(10), claim(0), wait(4_000), ending(0, "succeed")] },
      { process: 1, steps: [wait(10), claim(1), wait(6_200), claim(1), ending(1, "succeed")] },
    ],
    mistakes: {
      ...planted("an ending by another's claim"),
      ...hastyExpiry,
      ...longBelief,
      "a success that is reported although it was refused": [
        replacing(Task.prototype, "succeed", (succeed, given) => refusalIgnored(succeed(...given))),
        /was confirmed, and is|two workers were told/,
      ],
      "a claim without an answer that takes back another's": [
        replacing(TaskForm.prototype, "cancel", (cancel, given) =>
          insistingOn(cancel(...given), "attribute_exists(#token)"),
        ),
        /believes to hold/,
      ],
    },
  }),
  scenario({
    name: "tasks:handed over",
    kinds: ["request late", "sent twice", "answer lost"],
    make: make(2),
    lanes: [
      { process: 0, steps: [add(0, 2), claim(0), ending(0, "release"), claim(0), ending(0, "release")] },
      { process: 1, steps: [wait(10), claim(1), ending(1, "release")] },
    ],
    mistakes: planted("copy of a claim"),
  }),
  scenario({
    name: "tasks:begun again",
    kinds: ["request late", "sent twice", "answer lost"],
    make: make(2),
    lanes: [
      { process: 0, steps: [add(0, 2), wait(10), cancel(0), requeue(0), cancel(0), requeue(0)] },
      { process: 1, steps: [wait(10), claim(1), ending(1, "release")] },
    ],
    mistakes: planted("a cancel of a task", "copy of a requeue", "copy of a cancel"),
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
    mistakes: {
      "an ending that another call has come before, and that is confirmed all the same": [
        replacing(Task.prototype, "release", (release) => refusalIgnored(release())),
        /was ended by two calls of one claim/,
      ],
    },
  }),
  scenario({
    name: "tasks:failing",
    kinds: ["answer lost", "sent twice", "killed"],
    make: make(2),
    lanes: [
      { process: 0, steps: [add(0, 3), ...[1, 2].flatMap(() => [claim(0), ending(0, "fail")])] },
      { process: 1, steps: [wait(10), ...[3, 4].flatMap(() => [claim(1), ending(1, "fail")])] },
    ],
    mistakes: planted("with an attempt more"),
  }),
  scenario({
    name: "tasks:serial",
    kinds: ["answer lost", "sent twice", "request late", "conflict", "killed"],
    make: make(2),
    lanes: [
      { process: 0, steps: [addSerially(0, "t0"), claim(0), ending(0, "release")] },
      { process: 1, steps: [addSerially(1, "t1"), claim(1), ending(1, "succeed")] },
    ],
    mistakes: planted(
      ...["a claim beside a running task", "a first claim of a key", "token of the task alone"],
      "a claim that its key's item does not name",
    ),
  }),
  scenario({
    name: "tasks:serial, later",
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
    mistakes: claimsPastAnother,
  }),
  scenario({
    name: "tasks:serial, lost",
    kinds: ["answer lost", "killed", "frozen"],
    make: make(2),
    lanes: [
      {
        process: 0,
        steps: [addSerially(0, "t0", "t1"), wait(10), claim(0), wait(4_000), ending(0, "succeed")],
      },
      { process: 1, steps: [wait(10), claim(1), wait(6_200), claim(1), ending(1, "succeed")] },
    ],
    mistakes: hastyExpiry,
  }),
  scenario({
    name: "tasks:rate",
    kinds: ["answer lost", "sent twice", "request late", "conflict", "killed"],
    make: make(2, { claims: 1, perMs: 2_000 }),
    lanes: [
      { process: 0, steps: [add(0, 2, ["t0", "t1"]), wait(10), claim(0), wait(2_000), claim(0)] },
      { process: 1, steps: [wait(10), claim(1), ending(1, "release"), wait(1_990), claim(1)] },
    ],
    mistakes: planted("beyond the rate", "a claim that is not counted"),
  }),
];
