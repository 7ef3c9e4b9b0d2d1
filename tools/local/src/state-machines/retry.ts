// Which retrier or catcher takes an error, and how long to wait before the next attempt.

import type { Catcher, Retrier } from "./definition.ts";
import type { StatesError } from "./errors.ts";

/** Errors that the wildcards leave alone. */
const terminal: readonly string[] = ["States.DataLimitExceeded", "States.Runtime"];

/** Whether a retrier or catcher names an error. */
export function matches(errorEquals: readonly string[], error: string): boolean {
  if (error === "States.Runtime") return false;
  return errorEquals.some((name) => {
    if (name === error) return true;
    if (name === "States.ALL") return !terminal.includes(error);
    return name === "States.TaskFailed" && !terminal.includes(error) && error !== "States.Timeout";
  });
}

/** The first catcher that takes an error. */
export function catcherFor(
  catchers: readonly Catcher[] | undefined,
  error: StatesError,
): { readonly catcher: Catcher; readonly index: number } | undefined {
  const index = catchers?.findIndex(({ ErrorEquals }) => matches(ErrorEquals, error.error)) ?? -1;
  const catcher = catchers?.[index];
  return catcher === undefined ? undefined : { catcher, index };
}

/** Counts the retries of one run of a state; each retrier has a count of its own. */
export class Retries {
  readonly #retriers: readonly Retrier[];
  readonly #random: () => number;
  readonly #used = new Map<Retrier, number>();

  constructor(retriers: readonly Retrier[] | undefined, random: () => number) {
    this.#retriers = retriers ?? [];
    this.#random = random;
  }

  /** How long to wait before the next attempt, in milliseconds; undefined when there is none. */
  next(error: StatesError): number | undefined {
    // The first retrier that matches decides, even when it has no attempts left.
    const retrier = this.#retriers.find(({ ErrorEquals }) => matches(ErrorEquals, error.error));
    if (retrier === undefined) return undefined;
    const used = this.#used.get(retrier) ?? 0;
    if (used >= (retrier.MaxAttempts ?? 3)) return undefined;
    this.#used.set(retrier, used + 1);
    const backedOff = (retrier.IntervalSeconds ?? 1) * (retrier.BackoffRate ?? 2) ** used;
    const seconds = Math.min(backedOff, retrier.MaxDelaySeconds ?? Number.POSITIVE_INFINITY);
    return seconds * 1000 * (retrier.JitterStrategy === "FULL" ? this.#random() : 1);
  }
}
