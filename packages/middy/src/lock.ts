import { LeaseClient } from "@leasehold/client";
import type { Context } from "aws-lambda";
import { Guard } from "./guard.ts";
import { type Declared, type LeaseLockMiddleware, middlewareOf, type UndeclaredEvent } from "./lease-lock.ts";
import { type LeasedHandler, wrapped } from "./leased.ts";
import type { LeaseLockOptions, ResultOf } from "./options.ts";
import type { MakeClient } from "./settings.ts";
import type { Lock } from "./signal.ts";

const makeClient: MakeClient = (options) => new LeaseClient(options);

/**
 * Puts a lock around a Lambda handler, as a middleware for middy 6 and 7. ADD IT LAST: then it is taken right before the
 * handler and let go right after it.
 *
 * The handler gets `context.lock`: the lease, and one signal that aborts shortly before the function's timeout, when
 * the lease is lost or revoked, and when the environment shuts down. Without options but a key, an invocation makes 2
 * requests: its lease lasts for its remaining time and a second, so that it covers the whole run and needs no renewal.
 *
 * What becomes of an invocation:
 * - The lock is held: `whenHeld` decides. By default a schedule is skipped, and so is an event beside `once`; a request of an
 *   HTTP API is answered with 423 and Retry-After; every other invocation rejects, so that its trigger sends the event
 *   again. Skipped invocations succeed with `skipResult`.
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
  return middlewareOf(new Guard<TEvent>(options, makeClient));
}

/**
 * Puts a lock around a Lambda handler, without middy or as the handler of a middy chain.
 *
 * It does what `leaseLock` does, with the same options, and knows the handler's end for certain: it never lets go
 * before it, and no order of middlewares matters to it.
 *
 * Throws InvalidOptionsError; see `leaseLock` for what an invocation rejects with.
 *
 * ```ts
 * export const handler = leased({ tableName: "leases", key: "import" }, async (_event, _context, lock) => {
 *   await importAll({ signal: lock.signal });
 * });
 * ```
 */
export function leased<TEvent = unknown, TResult = unknown>(
  options: LeaseLockOptions<TEvent, ResultOf<TResult>>,
  handler: (event: TEvent, context: Context, lock: Lock) => Promise<TResult> | TResult,
): LeasedHandler<TEvent, TResult> {
  return wrapped(new Guard<TEvent>(options, makeClient), handler);
}
