import { exitCodes } from "./command-line.ts";
import type { Outcome, System } from "./scenario.ts";
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
  const wrong = outcomes.flatMap(wrongOf);
  if (wrong.some(({ isExcused }) => !isExcused)) return "failed";
  return wrong.length > 0 || outcomes.some(({ checks }) => checks.length === 0) ? "tooSlow" : "holds";
}

/** Shows how it ended, and gives the exit code. */
export function tellVerdict(screen: Screen, outcomes: readonly SystemOutcome[], showsAll: boolean): number {
  const verdict = verdictOn(outcomes);
  const checks = outcomes.flatMap((outcome) => outcome.checks);
  const wrong = outcomes.map(({ system, ...outcome }) => ({
    system,
    checks: outcome.checks.filter(({ ok }) => !ok),
  }));
  if (showsAll) screen.audit(outcomes);
  else if (verdict === "failed") screen.audit(wrong.filter((one) => one.checks.length > 0));
  screen.gap();
  for (const outcome of outcomes) screen.result(outcome.system, isRight(outcome), inShort(outcome));
  screen.gap();
  switch (verdict) {
    case "holds":
      screen.verdict(true, `${checks.length} checks hold.`);
      if (!showsAll) screen.note("All of them, and every event: npm start -- --all");
      break;
    case "failed":
      screen.verdict(
        false,
        `${wrong.flatMap((one) => one.checks).length} of ${checks.length} checks FAILED.`,
      );
      break;
    case "tooSlow":
      screen.verdict(false, tooSlow());
      break;
  }
  return exitCodes[verdict];
}

/** Says that the plan could not be kept, and what to do about it. */
export function tooSlow(): string {
  return (
    "This machine is too slow for the plan, or has too much else to do. That is no failed check: nothing was seen to fail.\n" +
    "End other programs and try again, or give the plan more time, such as: npm start -- --stretch 6"
  );
}

function wrongOf({ checks, late }: SystemOutcome): { readonly isExcused: boolean }[] {
  return checks.flatMap(({ ok, atAnyPace }) => (ok ? [] : [{ isExcused: late.length > 0 && !atAnyPace }]));
}

function isRight({ checks }: SystemOutcome): boolean {
  return checks.length > 0 && checks.every(({ ok }) => ok);
}

function inShort(outcome: SystemOutcome): string {
  if (isRight(outcome)) return outcome.inShort;
  const { checks, late } = outcome;
  const wrong = checks.filter(({ ok, atAnyPace }) => !ok && (atAnyPace || late.length === 0));
  if (wrong.length > 0) return `${wrong.map(({ label }) => label).join("; ")}: not as expected`;
  const more = late.length > mostReasons ? `; and ${late.length - mostReasons} more like it` : "";
  return `the plan could not be kept: ${late.slice(0, mostReasons).join("; ")}${more}`;
}
