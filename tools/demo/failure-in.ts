import type { InvokeResult } from "@leasehold/local";

/**
 * How an invocation failed; undefined where it did not. One that failed for want of time, its own or that of the gate of
 * this process, says something about this machine and nothing about the app.
 */
export function failureIn({
  payload,
  functionError,
}: InvokeResult): "died" | "timedOut" | "failed" | undefined {
  if (functionError === undefined) return undefined;
  const { errorType, errorMessage } = payload as {
    readonly errorType: string;
    readonly errorMessage: string;
  };
  if (errorType === "Runtime.ExitError") return "died";
  const isLate =
    ["Sandbox.Timedout", "TimeoutError"].includes(errorType) || errorMessage.includes("no answer");
  return isLate ? "timedOut" : "failed";
}
