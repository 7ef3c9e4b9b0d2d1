import { mistakes, Queue, type QueueStep } from "../../worlds/primitives/fair-lock.ts";
import {
  deathMistakes,
  roomMistakes,
  threeInLine,
  turnMistakes,
} from "../../worlds/primitives/fair-lock-mistakes.ts";
import { named } from "../../worlds/simulation.ts";
import { type AnyScenario, dateFaults, scenario, wait, withFaults } from "../scenario.ts";

const acquire = (process: number, waitMs = 60_000): QueueStep => ({
  kind: "acquire",
  process,
  waitMs,
  heartbeat: false,
});
const release = (process: number): QueueStep => ({ kind: "release", process });

const usual = scenario({
  name: "fair-lock",
  kinds: ["request lost", "request late", "answer lost", "sent twice", "killed", ...dateFaults],
  make: (world) => new Queue(world, { processes: 2 }),
  lanes: [
    { process: 0, steps: [acquire(0), release(0), wait(1_500), acquire(0), release(0)] },
    { process: 1, steps: [acquire(1), release(1)] },
  ],
  mistakes: { ...named(mistakes, "bound", "second", "newcomer"), ...turnMistakes },
});

export const fairLock: readonly AnyScenario[] = [
  usual,
  ...withFaults(usual, 2, {
    "two-lost": { kinds: ["request lost", "killed"] },
    "two-answers": {
      kinds: ["answer lost", "sent twice"],
      lanes: [
        { process: 0, steps: [acquire(0), release(0)] },
        { process: 1, steps: [acquire(1), release(1)] },
      ],
    },
  }),
  scenario({
    name: "fair-lock:line",
    faults: 2,
    kinds: ["request lost", "request late", "killed"],
    openingMs: 1_900,
    make: (world) => new Queue(world, { processes: 3 }),
    lanes: [
      { process: 0, steps: [acquire(0), wait(2_000), release(0)] },
      { process: 1, steps: [wait(1_800), acquire(1), release(1)] },
      { process: 2, steps: [wait(1_900), acquire(2), release(2)] },
    ],
    mistakes: threeInLine,
  }),
  // Each that dies while the lock is free keeps the others out for 11 s more.
  scenario({
    name: "fair-lock:deaths",
    faults: 2,
    kinds: ["killed"],
    make: (world) => new Queue(world, { processes: 4, isCalm: true }),
    lanes: [
      { process: 0, steps: [acquire(0), wait(800), release(0)] },
      { process: 1, steps: [wait(100), acquire(1, 120_000), release(1)] },
      { process: 2, steps: [wait(200), acquire(2, 120_000), release(2)] },
      { process: 3, steps: [wait(300), acquire(3, 120_000), release(3)] },
    ],
    mistakes: deathMistakes,
  }),
  scenario({
    name: "fair-lock:full",
    kinds: ["request late", "answer lost", "sent twice", "killed"],
    make: (world) => new Queue(world, { processes: 3, maxWaiters: 1 }),
    lanes: [
      { process: 0, steps: [acquire(0), wait(900), release(0)] },
      { process: 1, steps: [acquire(1, 500), release(1)] },
      { process: 2, steps: [acquire(2, 500), release(2)] },
    ],
    mistakes: { ...named(mistakes, "twice"), ...roomMistakes },
  }),
];
