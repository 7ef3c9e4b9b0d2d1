import { problemOf } from "./problems.ts";

/** One thing that has to hold, and what was seen of it. */
export interface Check {
  readonly name: string;
  readonly promised: string;
  readonly measured: string;
  readonly holds: boolean;
  /** Why it does not hold, where there is more to say. @default - nothing */
  readonly details?: readonly string[];
}

/**
 * Performs one check: what it rejects with is a failure of this check, and the others go on.
 *
 * Rejects where none of the others could go on either: with the signal's reason, and with an AcceptanceProblem.
 */
export async function checked(
  name: string,
  promised: string,
  perform: () => Promise<{ readonly measured: string; readonly holds: boolean }>,
  signal: AbortSignal,
): Promise<Check> {
  try {
    return { name, promised, ...(await perform()) };
  } catch (error) {
    signal.throwIfAborted();
    const problem = problemOf(error, name);
    if (problem !== undefined) throw problem;
    return { name, promised, measured: "failed", holds: false, details: [describe(error)] };
  }
}

/** An error in a line. */
export function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** Such as `2.4 s`. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
