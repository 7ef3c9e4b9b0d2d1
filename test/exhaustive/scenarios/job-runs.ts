import { Lease } from "../../../packages/client/src/core/lease.ts";
import { RunForm } from "../../../packages/jobs/src/runs/run-form.ts";
import { leaving } from "../../support/recomposed.ts";
import { type JobStep, Schedule, jobRuns as simulated } from "../../worlds/primitives/job-runs.ts";
import { hastyExpiry, longBelief } from "../../worlds/primitives/lease-mistakes.ts";
import { type Mistake, type Planted, replacing, without } from "../../worlds/simulation.ts";
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
  (world: World, { tamper }: Planted): Schedule =>
    new Schedule(world, tamper, { workers, attempts: 2, everyMs: 3_600_000, slots: 1 });
const end = (schedule: Schedule): Promise<void> => schedule.expectEverySlotToBeRun();

const [doneSlot, spentAttempts, , foreignOutcome] = simulated.mistakes as [
  Mistake,
  Mistake,
  Mistake,
  Mistake,
];

const countedTwice: Mistake = {
  what: "an attempt that is counted twice",
  plant: replacing(
    RunForm.prototype,
    "acquire",
    (acquire) =>
      function (this: RunForm, ...given) {
        const write = acquire.apply(this, given);
        write.values[":one"] = 2;
        return write;
      },
  ),
  violation: /went from the attempt 0 to 2/,
};

const lostNotCounted: Mistake = {
  what: "a takeover that does not count its attempt",
  plant: replacing(
    RunForm.prototype,
    "acquire",
    (acquire) =>
      function (this: RunForm, grant, passed) {
        const write = acquire.call(this, grant, passed);
        if (passed.length === 0) return write;
        return leaving(write, "#attempt");
      },
  ),
  violation: /was given to two works/,
};

const forgottenSlot: Mistake = {
  what: "a success that does not mark its slot as done",
  plant: replacing(
    RunForm.prototype,
    "release",
    (release) =>
      function (this: RunForm, ending) {
        return leaving(release.call(this, ending), "#doneSlot");
      },
  ),
  violation: /was tried again after its success/,
};

const refusedSuccess: Mistake = {
  what: "a success that is reported although it was refused",
  plant: replacing(
    Lease.prototype,
    "end",
    (end) =>
      async function (this: Lease, completed) {
        await end.call(this, completed);
        return { wasOurs: true, isRecorded: completed };
      },
  ),
  violation: /was confirmed, and shows as|two callers were told|tried again after its success/,
};

const skipsRunning: Mistake = {
  what: "a skip of a slot that is running",
  tamper: without("attribute_not_exists(#token)", ({ values }) => values[":state"] === "skipped"),
  violation: /believes to hold/,
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
    end,
    mistakes: [doneSlot, countedTwice, lostNotCounted, forgottenSlot],
  }),
  scenario({
    name: "job-runs:lost",
    faults: 1,
    kinds: ["request lost", "request late", "answer lost", "answer late", "sent twice", "killed", "frozen"],
    make: make(2),
    lanes: [
      { process: 0, steps: [run(0, "succeeds", 4_000, 0)] },
      { process: 1, steps: [run(1, "succeeds", 2_000, 12_000)] },
    ],
    end,
    mistakes: [
      { ...foreignOutcome, violation: /believes to hold|by nobody|two callers were told/ },
      refusedSuccess,
      hastyExpiry,
      longBelief,
    ],
  }),
  scenario({
    name: "job-runs:failing",
    faults: 1,
    kinds: ["request late", "answer lost", "sent twice", "killed"],
    make: make(3),
    lanes: [
      { process: 0, steps: [run(0, "fails", 500, 0), run(0, "fails", 500, 0)] },
      { process: 1, steps: [run(1, "fails", 500, 4_000)] },
      { process: 2, steps: [skip(2)] },
    ],
    end,
    mistakes: [{ ...spentAttempts, violation: /went from the attempt 2 to 3/ }, skipsRunning],
  }),
];
