import type { Context } from "aws-lambda";
import { Guard } from "./guard.ts";
import type { Hold, Outcome } from "./hold.ts";
import type { LeaseLockOptions } from "./options.ts";
import { type EndingRequest, type Stage, watchRequest } from "./request-end.ts";
import type { Lock } from "./signal.ts";
import { streamOf, withStreamEnd } from "./streams.ts";

/** What middy hands to the middleware. */
export interface LeaseLockRequest<TEvent = unknown> {
  event: TEvent;
  /** The handler finds its lock here. */
  context: Context & { lock: Lock };
  response: unknown;
  error: unknown;
  earlyResponse?: unknown;
  // biome-ignore lint/complexity/noBannedTypes: it is how middy's own types say that nothing is asked of it.
  internal: {};
}

/** A middleware for middy 7. */
export interface LeaseLockMiddleware<TEvent = unknown> {
  before(request: LeaseLockRequest<TEvent>): Promise<void>;
  after(request: LeaseLockRequest<TEvent>): Promise<void>;
  onError(request: LeaseLockRequest<TEvent>): Promise<void>;
}

/** One request's hold on the lock. */
interface Entry {
  readonly hold: Hold;
  /** What Lambda left the invocation when its outcome was there. */
  remainingMs: number;
  /** Whether the response is a stream, which ends the hold when it ends. */
  isStreaming: boolean;
}

/**
 * Puts a lock around a Lambda handler, as a middleware for middy 7. ADD IT LAST: then it is taken right before the
 * handler and let go right after it.
 *
 * The handler gets `context.lock`: the lease, and one signal that aborts shortly before the function's timeout, when
 * the lease is lost or revoked, and when the environment shuts down. Without options but a key, an invocation makes 2
 * requests: its lease lasts for its remaining time and a second, so that nobody gets in while it runs and it needs no
 * renewal.
 *
 * What an invocation comes to:
 * - The lock is held: what `whenHeld` says. Skipped invocations succeed with `skipResult`.
 * - The handler succeeded: the lease is released, and with `once` its slot is done. If the lease was lost meanwhile,
 *   the invocation rejects with LeaseLostError, for the work may have overlapped another's; a lease that was revoked is
 *   no error, but leaves its slot open.
 * - The handler failed: the lease is released, and its slot stays open for the retry. With `whenHeld: "replace"`, a
 *   handler that failed because it was replaced is skipped, so that no retry turns on the newer one.
 * - Middy's early timeout: the handler may still run, so the signal aborts and the lease is left to expire. Where you
 *   gave middy a `timeoutEarlyResponse`, repeat your `timeoutEarlyInMillis` here.
 * - A retry of an asynchronous event has the request id of the attempt before, and takes over its lease at once, with
 *   a larger fencing token. In the same process it waits first until the earlier lease has ended, for its handler may
 *   still run there; where there is no time for that it rejects with LeaseUnavailableError.
 * - SIGTERM: the signal aborts, and a handler that ends within 250 ms has its lease released.
 *
 * Where it is not the last middleware it lets go all the same when an inner one answers early. When an inner `onError`
 * throws, the release is sent but not waited for.
 *
 * Works with middy's standard and streaming modes; a response that is a stream holds the lock to its end. A durable
 * execution is refused with InvalidOptionsError.
 *
 * Throws InvalidOptionsError; an invocation rejects with it where a key or a slot is missing, with
 * LeaseUnavailableError, with LeaseLostError, and with the client's other errors.
 *
 * ```ts
 * export const handler = middy<{ file: string }>()
 *   .use(leaseLock<{ file: string }>({ tableName: "leases", key: (event) => `import/${event.file}`, whenHeld: "throw" }))
 *   .handler(async (event, context) => {
 *     await importFile(event.file, { signal: context.lock.signal });
 *   });
 * ```
 */
export function leaseLock<TEvent = unknown>(
  options: LeaseLockOptions<TEvent> = {},
): LeaseLockMiddleware<TEvent> {
  const guard = new Guard<TEvent>(options);
  const entryName = Symbol("leasehold");
  const entryOf = (request: LeaseLockRequest<TEvent>): Entry | undefined =>
    (request.internal as Record<symbol, Entry | undefined>)[entryName];

  return {
    async before(request) {
      if (entryOf(request) !== undefined) return;
      const entered = await guard.enter(request.event, request.context);
      if ("skipped" in entered) {
        request.earlyResponse = entered.result;
        return;
      }
      const entry: Entry = { hold: entered, remainingMs: Number.POSITIVE_INFINITY, isStreaming: false };
      (request.internal as Record<symbol, Entry>)[entryName] = entry;
      request.context.lock = entered.lock;
      watchRequest(request as EndingRequest, {
        onOutcome() {
          entry.remainingMs = entered.remainingMs();
        },
        async onCutShort(stage, error) {
          if (!entry.isStreaming) await entered.leave(outcomeOf(entry, stage, error));
        },
      });
    },

    async after(request) {
      const entry = entryOf(request);
      if (entry === undefined || entry.hold.isLeft) return;
      const stream = streamOf(request.response);
      if (stream === undefined) {
        await entry.hold.leave(outcomeOf(entry, "after", undefined));
        return;
      }
      entry.isStreaming = true;
      request.response = withStreamEnd(request.response, stream, (isWhole) =>
        entry.hold.leave(isWhole ? "succeeded" : "failed"),
      );
    },

    async onError(request) {
      const entry = entryOf(request);
      if (entry === undefined || entry.hold.isLeft) return;
      // A stream that nobody reads may still have its producer running.
      await entry.hold.leave(entry.isStreaming ? "unknown" : outcomeOf(entry, "failed", request.error));
      if (entry.hold.isReplaced) request.earlyResponse = entry.hold.skipResult() ?? null;
    },
  };
}

function outcomeOf(entry: Entry, stage: Stage, error: unknown): Outcome {
  if (stage === "before") return "unused";
  if (entry.hold.mayStillRun(entry.remainingMs, error)) return "unknown";
  return stage === "after" ? "succeeded" : "failed";
}
