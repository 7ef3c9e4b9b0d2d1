import type { InvokeResult } from "@leasehold/local";

/**
 * Whether an invocation failed for want of time: its own was over, or DynamoDB, behind the gate of this process, did not
 * answer in time. That says something about this machine and nothing about the app.
 */
export function isOutOfTime({ payload, functionError }: InvokeResult): boolean {
  if (functionError === undefined) return false;
  const { errorType, errorMessage } = payload as {
    readonly errorType: string;
    readonly errorMessage: string;
  };
  return ["Sandbox.Timedout", "TimeoutError"].includes(errorType) || errorMessage.includes("no answer");
}
