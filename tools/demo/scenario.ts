/** The systems of the app, in the order in which they are shown. */
export const systems = ["orders", "imports", "stock", "tasks", "tickets"] as const;

/** A system of the app. */
export type System = (typeof systems)[number];

/** One line of the audit. */
export interface Check {
  readonly label: string;
  readonly expected: string;
  readonly actual: string;
  readonly ok: boolean;
  /** Whether it has to hold on every machine: a plan that could not be kept is no excuse for it. */
  readonly atAnyPace: boolean;
}

/** Makes a line that is right when both values read the same, provided that the plan could be kept. */
export function check(label: string, expected: string | number, actual: string | number): Check {
  return line(label, expected, actual, false);
}

/** Makes a line that is right when both values read the same, however slow the machine is: what the lock promises. */
export function promise(label: string, expected: string | number, actual: string | number): Check {
  return line(label, expected, actual, true);
}

/** Puts names into one cell of the audit. */
export function listed(names: readonly string[]): string {
  return names.length === 0 ? "nobody" : names.join(", ");
}

function line(label: string, expected: string | number, actual: string | number, atAnyPace: boolean): Check {
  const wanted = String(expected);
  const found = String(actual);
  return { label, expected: wanted, actual: found, ok: wanted === found, atAnyPace };
}

/** What a scenario came to. */
export interface Outcome {
  readonly checks: readonly Check[];
  /** Some counts, for the last line; of use only if all checks hold. */
  readonly inShort: string;
  /** What came too late for the plan, in words. Nothing but a promise can be judged then. */
  readonly late: readonly string[];
}

/** One system of the app at work, with its planned incidents. */
export interface Scenario {
  readonly system: System;
  /** What the system does, and what happens to it, in a line for newcomers. */
  readonly about: string;
  /** Starts slow parts early, so that they do not disturb the rest later. */
  prepare?(): Promise<void>;
  /**
   * Plays it to the end, beside the others, and judges by its own evidence what came of it.
   *
   * Rejects with NotStaged where the plan cannot go on, since something of it did not come in its time.
   */
  play(): Promise<Outcome>;
}
