// The limit of payloads, and their copies: nothing in an execution is shared with its caller.

import { statesLimits } from "./definition.ts";
import { StatesError } from "./errors.ts";

/**
 * A copy as JSON carries it: no undefined, no dates, no references to the original. Nothing at all becomes null.
 *
 * @throws StatesError `States.Runtime` when JSON cannot carry the value, `States.DataLimitExceeded` beyond 256 KiB
 */
export function asPayload(value: unknown, what: string): unknown {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new StatesError("States.Runtime", `${what} is not JSON: ${String(error)}`);
  }
  if (text === undefined) return null;
  const bytes = Buffer.byteLength(text);
  if (bytes > statesLimits.payloadBytes) {
    throw new StatesError(
      "States.DataLimitExceeded",
      `${what} has ${bytes} bytes, more than the maximum of ${statesLimits.payloadBytes} bytes.`,
    );
  }
  return JSON.parse(text);
}
