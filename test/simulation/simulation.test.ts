import { expect, it } from "vitest";
import type { Tally } from "./monitor.ts";
import { tellViolation } from "./report.ts";
import { simulate } from "./simulate.ts";

const seeds = 400;

it(`nothing goes wrong in ${seeds} worlds, and everything that could go wrong has happened in them`, async () => {
  const tally: Tally = {};
  for (let seed = 1; seed <= seeds; seed += 1) {
    const outcome = await simulate(seed);
    if (outcome.violation !== undefined) expect.fail(`\n${tellViolation(outcome)}`);
    for (const [what, times] of Object.entries(outcome.tally)) tally[what] = (tally[what] ?? 0) + times;
  }
  const mustHappen = [
    "acquired",
    "contended",
    "gave up",
    "fenced off",
    "late release refused",
    "lost: expired",
    "lost: revoked",
    "opened after lockAtLeastFor",
    "renewed",
    "slot was done",
    "takeover by observation",
    "takeover by serviceClock",
    "ttl removed an item",
  ];
  expect(mustHappen.filter((what) => !((tally[what] ?? 0) > 0))).toEqual([]);
}, 60_000);

it("the same seed tells the same story", async () => {
  const [first, second] = [await simulate(7), await simulate(7)];
  expect(second.timeline).toEqual(first.timeline);
});
