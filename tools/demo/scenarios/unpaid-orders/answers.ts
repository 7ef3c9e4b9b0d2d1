import type { InvokeResult } from "@leasehold/local";
import type { TriggerOutcome } from "../../../../functions/close-unpaid-orders/handler.ts";
import type { JobOutcome } from "../../../../functions/close-unpaid-orders/job.ts";
import { errorFieldsIn } from "../../../../functions/support/answers.ts";
import { failureIn } from "../../failure-in.ts";

/** What an instance made of a trigger. */
export type Answer =
  | ((TriggerOutcome | Extract<JobOutcome, { readonly result: "lost" }>) & { readonly tookMs: number })
  /** The job rejected. */
  | { readonly result: "failed"; readonly problem: string; readonly timedOut: boolean }
  /** The process ended before it answered. */
  | { readonly result: "died" };

/** A run that stands still: its lease has been checked, and its write is under way. */
export interface Holding {
  readonly tick: number;
  /** The order that it is about to close. */
  readonly orderId: string;
  /** How many it has closed. */
  readonly closed: number;
  readonly fencingToken: number;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

interface FunctionFailure {
  readonly errorType: string;
  readonly errorMessage: string;
}

/**
 * Reads what Lambda said about an invocation.
 *
 * @param holding what the run was about to do when it was last seen, if it lost its lease
 */
export function answerOf(result: InvokeResult, tookMs: number, holding: Holding | undefined): Answer {
  const { payload } = result;
  const failure = failureIn(result);
  if (failure === undefined) return { ...(payload as TriggerOutcome), tookMs };
  if (failure === "died") return { result: "died" };
  const { errorType, errorMessage } = payload as FunctionFailure;
  if (errorType !== "LeaseLostError" || holding === undefined) {
    const problem = `${errorType}: ${errorMessage.split("\n")[0]}`;
    return { result: "failed", problem, timedOut: failure === "timedOut" };
  }
  const { reason } = errorFieldsIn(errorMessage) as Pick<Answer & { result: "lost" }, "reason">;
  const [, fencedOff] = /order (\S+) was fenced off/.exec(errorMessage) ?? [];
  const { fencingToken, closed } = holding;
  return { result: "lost", fencingToken, closed, reason, fencedOff, tookMs };
}
