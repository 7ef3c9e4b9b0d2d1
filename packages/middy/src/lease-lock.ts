import type { Context, Handler } from "aws-lambda";
import { Guard } from "./guard.ts";
import type { Hold, Outcome } from "./hold.ts";
import type { LeaseLockOptions } from "./options.ts";
import { cleanUpPowertools } from "./powertools.ts";
import { answerEarly, type EndingRequest, type Stage, watchRequest } from "./request-end.ts";
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

/** A middleware for middy 6 and 7. */
export interface LeaseLockMiddleware<TEvent = unknown> {
  before(request: LeaseLockRequest<TEvent>): Promise<void>;
  after(request: LeaseLockRequest<TEvent>): Promise<void>;
  onError(request: LeaseLockRequest<TEvent>): Promise<void>;
}

/** An event that nobody has declared, as in AWS's own `Handler`: nothing about it is checked. */
type UndeclaredEvent = Parameters<Handler>[0];
/** Such an event tells a middy chain nothing about the event of its handler. */
type Declared<TEvent> = 0 extends 1 & TEvent ? unknown : TEvent;

/** One request's hold on the lock. */
interface Entry {
  readonly hold: Hold;
  /** What Lambda left the invocation when its outcome was there. */
  remainingMs: number;
  /** Whether the response is a stream, which ends the hold when it ends. */
  isStreaming: boolean;
}

/**
 * Puts a lock around a Lambda handler, as a middleware for middy 6 and 7. ADD IT LAST: then it is taken right before the
 * handler and let go right after it.
 *
 * The handler gets `context.lock`: the lease, and one signal that aborts shortly before the function's timeout, when
 * the lease is lost or revoked, and when the environment shuts down. Without options but a key, an invocation makes 2
 * requests: its lease lasts for its remaining time and a second, so that it covers the whole run and needs no renewal.
 *
 * What becomes of an invocation:
 * - The lock is held: `whenHeld` decides. Skipped invocations succeed with `skipResult`. Events with records (of a queue, a
 *   stream or a topic) are never skipped unasked, and a request of an HTTP API is answered with 423 and Retry-After.
 * - An attempt at the same event (the same request id) holds the lock: the invocation waits or rejects as `whenHeld` says,
 *   and rejects where that says `skip`. So Lambda's retry of an invocation that was killed fails until the dead lease has
 *   ended; a lease of the default length has, when the first retry comes after a minute. `resume` takes over at once.
 * - The handler succeeded: the lease is released, and with `once` its slot is recorded as done. If the lease was lost
 *   meanwhile, the invocation rejects with LeaseLostError, for the work may have overlapped another's. A lease that was
 *   revoked is no error, but leaves its slot open. If the service does not confirm the record while there is time, the
 *   invocation rejects with CompletionFailedError.
 * - The handler failed: the lease is released, and its slot stays open for the retry. With `whenHeld: "replace"`, a
 *   handler that failed because it was replaced is skipped, so that no retry turns on the newer one.
 * - Middy's early timeout: the handler may still run, so the signal aborts and the lease is left to expire. Where you
 *   gave middy a `timeoutEarlyResponse`, repeat your `timeoutEarlyInMillis` here.
 * - SIGTERM: the signal aborts, a wait is given up and leaves its queue, and a handler that ends within 250 ms has its
 *   lease released.
 *
 * A skip ends the chain early. Middlewares of Powertools that ran before are cleaned up after, as its own
 * `cleanupMiddlewares` does; an idempotency record that they began is deleted, for its work was not done.
 *
 * Where it is not the last middleware it lets go all the same when an inner one answers early. When an inner `onError`
 * throws, the release is sent but not waited for.
 *
 * Works with middy's standard and streaming modes; a response that is a stream holds the lock to its end. A durable
 * execution is refused with InvalidOptionsError: `withDurableLease` of `@leasehold/durable` is for that.
 *
 * Throws InvalidOptionsError; an invocation rejects with it where a key or a slot is missing, and where middy is older
 * than 6 and would run the handler though the lock is held; with LeaseUnavailableError, LeaseLostError,
 * CompletionFailedError, and the client's other errors.
 *
 * ```ts
 * export const handler = middy<{ file: string }>()
 *   .use(leaseLock({ tableName: "leases", key: (event) => `import/${event.file}`, whenHeld: "throw" }))
 *   .handler(async (event, context) => {
 *     await importFile(event.file, { signal: context.lock.signal });
 *   });
 * ```
 */
export function leaseLock<TEvent = UndeclaredEvent, TResult = unknown>(
  options: LeaseLockOptions<TEvent, TResult> = {},
): LeaseLockMiddleware<Declared<TEvent>> {
  const guard = new Guard<TEvent>(options);
  // Not in `request.internal`, which middy 6 can share between requests.
  const entries = new WeakMap<object, Entry>();
  const entryOf = (request: object): Entry | undefined => entries.get(request);

  return {
    async before(request) {
      if (entryOf(request) !== undefined) return;
      const entered = await guard.enter(request.event as TEvent, request.context);
      if ("skipped" in entered) {
        await cleanUpPowertools(request);
        answerEarly(request as EndingRequest, entered.result);
        return;
      }
      const entry: Entry = { hold: entered, remainingMs: Number.POSITIVE_INFINITY, isStreaming: false };
      entries.set(request, entry);
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
      // Not by an early response: the hooks of outer middlewares have their own to clean up.
      if (entry.hold.isReplaced) request.response = (await entry.hold.skipResult()) ?? null;
    },
  };
}

function outcomeOf(entry: Entry, stage: Stage, error: unknown): Outcome {
  if (stage === "before") return "unused";
  if (entry.hold.mayStillRun(entry.remainingMs, error)) return "unknown";
  return stage === "after" ? "succeeded" : "failed";
}
