import { Lease } from "../../../packages/client/src/core/lease.ts";
import { RunForm } from "../../../packages/jobs/src/runs/run-form.ts";
import { leaving } from "../../support/recomposed.ts";
import { type JobStep, Schedule, jobRuns as simulated } from "../../worlds/primitives/job-runs.ts";
import { hastyExpiry, longBelief } from "../../worlds/primitives/lease-mistakes.ts";
import { type Mistakes, named, replacing, without } from "../../worlds/simulation.ts";
import type { World } from "../../worlds/world.ts";
import { dateFaults, scenario } from "../scenario.ts";

const run = (
  process: number,
  outcome: "succeeds" | "fails",
  workMs: number,
  waitMs: number,
): JobStep & { readonly kind: "run" } => ({ kind: "run", process, ago: 0, workMs, outcome, waitMs });

const skip = (process: number): JobStep => ({ kind: "skip", process, ago: 0 });

/** All of them run the one slot of the hour. */
const make =
  (workers: number) =>
  (world: World): Schedule =>
    new Schedule(world, { workers, attempts: 2, everyMs: 3_600_000, slots: 1 });

const uncounted: Mistakes = {
  "an attempt that is counted twice": [
    replacing(RunForm.prototype, "acquire", (acquire, given) => {
      const write = acquire(...given);
      write.values[":one"] = 2;
      return write;
    }),
    /went from the attempt 0 to 2/,
  ],
  "a takeover that does not count its attempt": [
    replacing(RunForm.prototype, "acquire", (acquire, [grant, passed]) => {
      const write = acquire(grant, passed);
      return passed.length === 0 ? write : leaving(write, "#attempt");
    }),
    /was given to two works/,
  ],
  "a success that does not mark its slot as done": [
    replacing(RunForm.prototype, "release", (release, given) => leaving(release(...given), "#doneSlot")),
    /was tried again after its success/,
  ],
};

const refusedSuccess: Mistakes = {
  "a success that is reported although it was refused": [
    replacing(Lease.prototype, "end", async (end, [completed]) => {
      await end(completed);
      return { wasOurs: true, isRecorded: completed };
    }),
    /was confirmed, and shows as|two callers were told|tried again after its success/,
  ],
};

const skipsRunning: Mistakes = {
  "a skip of a slot that is running": [
    without({ of: "token", test: "missing", by: ({ values }) => values[":state"] === "skipped" }),
    /believes to hold/,
  ],
};

export const jobRuns = [
  scenario({
    name: "job-runs",
    faults: 2,
    kinds: ["request late", "answer lost", "killed", ...dateFaults],
    make: make(2),
    lanes: [
      { process: 0, steps: [run(0, "succeeds", 1_000, 0)] },
      { process: 1, steps: [run(1, "succeeds", 500, 8_000)] },
    ],
    mistakes: { ...named(simulated.mistakes, "slot that is done"), ...uncounted },
  }),
  scenario({
    name: "job-runs:lost",
    kinds: ["request lost", "request late", "answer lost", "answer late", "sent twice", "killed", "frozen"],
    make: make(2),
    lanes: [
      { process: 0, steps: [run(0, "succeeds", 4_000, 0)] },
      { process: 1, steps: [run(1, "succeeds", 2_000, 12_000)] },
    ],
    mistakes: {
      ...named(simulated.mistakes, "outcome of another"),
      ...refusedSuccess,
      ...hastyExpiry,
      ...longBelief,
    },
  }),
  scenario({
    name: "job-runs:failing",
    kinds: ["request late", "answer lost", "sent twice", "killed"],
    make: make(3),
    lanes: [
      { process: 0, steps: [run(0, "fails", 500, 0), run(0, "fails", 500, 0)] },
      { process: 1, steps: [run(1, "fails", 500, 4_000)] },
      { process: 2, steps: [skip(2)] },
    ],
    mistakes: { ...named(simulated.mistakes, "without an attempt left"), ...skipsRunning },
  }),
];
