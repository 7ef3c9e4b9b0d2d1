import type { Callback, Context } from "aws-lambda";
import type { Guard } from "./guard.ts";
import type { Lock } from "./signal.ts";
import { streamOf, withStreamEnd } from "./streams.ts";

/**
 * A Lambda handler, as Lambda or middy calls it, and as AWS's types (`Handler`, `SQSHandler`...) want it. It takes two
 * parameters by its `length`: Lambda refuses to run a third one, the callback of old, since Node.js 24.
 */
export type LeasedHandler<TEvent, TResult> = (
  event: TEvent,
  context: Context,
  /** Middy's third argument: its signal is followed. A callback of Lambda's is not called. */
  more?: { readonly signal?: AbortSignal } | Callback<TResult>,
) => Promise<TResult>;

/** Puts what lets invocations in around a handler. */
export function wrapped<TEvent, TResult>(
  guard: Guard<TEvent>,
  handler: (event: TEvent, context: Context, lock: Lock) => Promise<TResult> | TResult,
): LeasedHandler<TEvent, TResult> {
  return async (event, context, ...[more]) => {
    const entry = await guard.enter(event, context, typeof more === "function" ? undefined : more?.signal);
    if ("skipped" in entry) return entry.result as TResult;
    let result: TResult;
    try {
      result = await handler(event, context, entry.lock);
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
