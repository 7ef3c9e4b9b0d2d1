import { exitCodes } from "./command-line.ts";
import type { Check, Outcome, System } from "./scenario.ts";
import type { Screen } from "./screen.ts";

/** One slow moment delays many. */
const mostReasons = 2;

/** What one system came to. */
export interface SystemOutcome extends Outcome {
  readonly system: System;
}

/**
 * Judges all systems.
 *
 * A plan that could not be kept excuses a check of its system that depends on it, and never one that holds at any pace.
 */
export function verdictOn(outcomes: readonly SystemOutcome[]): keyof typeof exitCodes {
  if (outcomes.some((outcome) => failedIn(outcome).length > 0)) return "failed";
  return outcomes.every(isRight) ? "holds" : "tooSlow";
}

/** Shows how it ended, and gives the exit code. */
export function tellVerdict(screen: Screen, outcomes: readonly SystemOutcome[], showsAll: boolean): number {
  const verdict = verdictOn(outcomes);
  const all = outcomes.flatMap(({ checks }) => checks);
  const wrong = all.filter(({ ok }) => !ok);
  if (showsAll) screen.audit(outcomes);
  else if (verdict === "failed")
    screen.audit(
      outcomes
        .map(({ system, checks }) => ({ system, checks: checks.filter((one) => wrong.includes(one)) }))
        .filter(({ checks }) => checks.length > 0),
    );
  screen.gap();
  for (const outcome of outcomes) screen.result(outcome.system, isRight(outcome), inShort(outcome));
  screen.gap();
  const texts = {
    holds: `${all.length} checks hold.`,
    failed: `${wrong.length} of ${all.length} checks FAILED.`,
    tooSlow: tooSlow(),
  };
  screen.verdict(verdict === "holds", texts[verdict]);
  if (verdict === "holds" && !showsAll) screen.note("All of them, and every event: npm start -- --all");
  return exitCodes[verdict];
}

/** Says that the plan could not be kept, and what to do about it. */
export function tooSlow(): string {
  return (
    "This machine is too slow for the plan, or has too much else to do. That is no failed check: nothing was seen to fail.\n" +
    "End other programs and try again, or give the plan more time, such as: npm start -- --stretch 6"
  );
}

/** The checks that are wrong, and that nothing excuses. */
function failedIn({ checks, late }: SystemOutcome): Check[] {
  return checks.filter(({ ok, atAnyPace }) => !ok && (atAnyPace || late.length === 0));
}

function isRight({ checks }: SystemOutcome): boolean {
  return checks.length > 0 && checks.every(({ ok }) => ok);
}

function inShort(outcome: SystemOutcome): string {
  if (isRight(outcome)) return outcome.inShort;
  const failed = failedIn(outcome);
  if (failed.length > 0) return `${failed.map(({ label }) => label).join("; ")}: not as expected`;
  const { late } = outcome;
  const more = late.length > mostReasons ? `; and ${late.length - mostReasons} more like it` : "";
  return `the plan could not be kept: ${late.slice(0, mostReasons).join("; ")}${more}`;
}
