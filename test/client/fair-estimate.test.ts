/** How long a caller that waits in line sleeps before it looks again. */
import { expect, it } from "vitest";
import {
  estimatedWaitMs,
  pollIntervalMs,
  type QueueEstimate,
} from "../../packages/client/src/primitives/fair/queue-estimate.ts";

/** The head of a line at the beginning of a hold, before the first release. */
const atHead: QueueEstimate = { position: 1, round: 1, holds: undefined, heldMs: 0 };
const alike = { typicalMs: 1_000, spreadMs: 0 };
const differing = { typicalMs: 1_000, spreadMs: 200 };
const unlike = { typicalMs: 1_000, spreadMs: 1_000 };

it.each<[string, Partial<QueueEstimate>, number]>([
  ["the head looks first where nothing is known of the holds", {}, 250],
  ["the second waiter sleeps twice as long as the head", { round: 2 }, 500],
  ["each one behind it twice as much longer", { round: 4 }, 1_500],
  ["but never longer than the longest look", { round: 100 }, 6_500],
  [
    "where holds are alike, the second waiter sleeps until its turn comes near",
    { round: 2, holds: alike },
    2_000,
  ],
  ["between two holds passes half a step", { round: 3, holds: alike }, 3_050],
  ["where holds differ, a waiter looks earlier", { round: 2, holds: differing }, 1_408],
  ["two steps at least", { round: 2, holds: unlike, heldMs: 1_000 }, 200],
])("%s", (_, known, sleepMs) => {
  expect(pollIntervalMs({ ...atHead, ...known })).toBeCloseTo(sleepMs, 6);
});

it.each<[string, Partial<QueueEstimate>, number | undefined]>([
  ["it is not known before the first release", { round: 2 }, undefined],
  ["the rest of the hold for the head", { holds: alike, heldMs: 300 }, 700],
  ["nothing of a hold that has lasted longer", { holds: alike, heldMs: 3_000 }, 0],
  ["a typical hold more for each turn before it", { round: 3, holds: alike, heldMs: 300 }, 2_700],
])("when a waiter's turn comes: %s", (_, known, waitMs) => {
  expect(estimatedWaitMs({ ...atHead, ...known })).toBe(waitMs);
});
