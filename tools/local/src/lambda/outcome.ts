// How an invocation ended, in the words of Lambda.

/** How an invocation ended. The payload is the text that the client sent, which is JSON from ours. */
export interface Outcome {
  readonly payload: string;
  readonly functionError?: "Unhandled";
}

/** An error as a function's caller sees it. */
export interface ErrorPayload {
  readonly errorType: string;
  readonly errorMessage: string;
  readonly trace?: readonly string[];
}

/** The payload as a value; text that is no JSON, which other clients may send, stays text. */
export function payloadOf({ payload }: Outcome): unknown {
  try {
    return JSON.parse(payload);
  } catch {
    // Ignored: reading text as JSON throws for nothing but text that is none.
    return payload;
  }
}

/** A failed invocation. */
export function failure(error: ErrorPayload): Outcome {
  return { payload: JSON.stringify(error), functionError: "Unhandled" };
}

/** The process ended, by itself or by force, before it answered. */
export function exited(requestId: string, reason: string): Outcome {
  return failure({
    errorType: "Runtime.ExitError",
    errorMessage: `RequestId: ${requestId} Error: ${reason}`,
  });
}

/** The words in which Lambda says how a process ended. */
export function exitReason(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal !== null) {
    const words: Partial<Record<NodeJS.Signals, string>> = { SIGKILL: "killed", SIGTERM: "terminated" };
    return `Runtime exited with error: signal: ${words[signal] ?? signal}`;
  }
  return code === 0
    ? "Runtime exited without providing a reason"
    : `Runtime exited with error: exit status ${code}`;
}

/** The time was up. The message is that of Lambda's own log line. */
export function timedOut(requestId: string, timeoutMs: number, now: number): Outcome {
  const seconds = (timeoutMs / 1000).toFixed(2);
  return failure({
    errorType: "Sandbox.Timedout",
    errorMessage: `${new Date(now).toISOString()} ${requestId} Task timed out after ${seconds} seconds`,
  });
}
