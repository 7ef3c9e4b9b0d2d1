import { runTraced } from "@leasehold/client/internal";
import type { Callback, Context } from "aws-lambda";
import type { Guard } from "./guard.ts";
import type { Lock } from "./signal.ts";
import { streamOf, withStreamEnd } from "./streams.ts";

/**
 * A Lambda handler, as Lambda or middy calls it, and as AWS's types (`Handler`, `SQSHandler`...) declare it. Its
 * `length` is two: since Node.js 24, Lambda refuses handlers with the former third parameter, the callback.
 */
export type LeasedHandler<TEvent, TResult> = (
  event: TEvent,
  context: Context,
  /** Middy's third argument: the handler follows its signal. A callback of Lambda is not called. */
  more?: { readonly signal?: AbortSignal } | Callback<TResult>,
) => Promise<TResult>;

/** Wraps a handler with a guard. */
export function wrapped<TEvent, TResult>(
  guard: Guard<TEvent>,
  handler: (event: TEvent, context: Context, lock: Lock) => Promise<TResult> | TResult,
): LeasedHandler<TEvent, TResult> {
  return async (event, context, ...[more]) => {
    const entry = await guard.enter(event, context, typeof more === "function" ? undefined : more?.signal);
    if ("skipped" in entry) return entry.result as TResult;
    let result: TResult;
    try {
      result = await runTraced(entry.lock.lease, () => handler(event, context, entry.lock));
    } catch (error) {
      await entry.leave("failed");
      if (entry.isReplaced) return (await entry.skipResult()) as TResult;
      throw error;
    }
    const stream = streamOf(result);
    if (stream !== undefined) {
      return withStreamEnd(result, stream, (isWhole) =>
        entry.leave(isWhole ? "succeeded" : "failed"),
      ) as TResult;
    }
    await entry.leave("succeeded");
    return result;
  };
}
