import { LeaseClient } from "@leasehold/client";
import type { Context } from "aws-lambda";
import { batchHandler, type LeasedBatchOptions, type LeasedBatchResponse } from "./batch.ts";
import { Guard } from "./guard.ts";
import { type Declared, type LeaseLockMiddleware, middlewareOf, type UndeclaredEvent } from "./lease-lock.ts";
import { type LeasedHandler, type LeasedMethodDecorator, leasedBy } from "./leased.ts";
import type { LeaseLockOptions, ResultOf } from "./options.ts";
import type { MakeClient } from "./settings.ts";
import type { Lock } from "./signal.ts";

const makeClient: MakeClient = (options) => new LeaseClient(options);

/**
 * Puts a lock around a Lambda handler, as a middleware for middy 6 and 7. ADD IT LAST: then it acquires the lock right
 * before the handler and releases it right after.
 *
 * The handler gets `context.lock`: the lease, and one signal that aborts shortly before the function's timeout, when
 * the lease is lost or revoked, and when the environment shuts down. Without options but a key, an invocation makes 2
 * requests: its lease lasts for its remaining time and a second, so that it covers the whole run and needs no renewal.
 *
 * The outcomes of an invocation:
 * - The lock is held: `whenHeld` decides. By default a schedule is skipped, and so is an event with `once`; a request
 *   of an HTTP API gets 423 and Retry-After; every other invocation rejects, so that its trigger sends the event again.
 *   Skipped invocations succeed with `skipResult`.
 * - An attempt at the same event (the same request id) holds the lock: the invocation waits or rejects as `whenHeld`
 *   says, and rejects for `skip`. So Lambda's retry of a killed invocation fails until the dead lease has ended. A
 *   lease of the default length has ended when the first retry comes after a minute. `resume` takes over at once.
 * - The handler succeeded: the lease is released, and with `once` its slot is recorded as done. If the lease was lost
 *   meanwhile, the invocation rejects with LeaseLostError, because the work may have overlapped another holder's. A
 *   revoked lease is no error, but leaves its slot open. If the service does not confirm the record while there is
 *   time, the invocation rejects with CompletionFailedError.
 * - The handler failed: the lease is released, and its slot stays open for the retry. With `whenHeld: "replace"`, a
 *   handler that failed because it was replaced counts as skipped, so that no retry replaces the newer one.
 * - Middy's early timeout: the handler may still run, so the signal aborts and the lease is left to expire. If you gave
 *   middy a `timeoutEarlyResponse`, repeat your `timeoutEarlyInMillis` here.
 * - SIGTERM: the signal aborts. A waiting invocation gives up and leaves its queue. If a handler ends within 250 ms,
 *   its lease is released.
 *
 * A skip ends the chain early. It cleans up after earlier middlewares of Powertools, as Powertools' own
 * `cleanupMiddlewares` does. It deletes an idempotency record that they began, because its work was not done.
 *
 * If it is not the last middleware, it still releases when an inner one answers early. When an inner `onError` throws,
 * it sends the release but does not wait for it.
 *
 * Works with middy's standard and streaming modes; if the response is a stream, the lock is held to the stream's end. A
 * durable execution is refused with InvalidOptionsError: `withDurableLease` of `@leasehold/durable` is for that.
 *
 * Throws InvalidOptionsError. An invocation rejects with it if a key or a slot is missing, or if middy is older than 6
 * and would run the handler although the lock is held. It also rejects with LeaseUnavailableError, LeaseLostError,
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
 * Puts a lock around a method of a class: a decorator, of TypeScript 5 or of `experimentalDecorators`, as Powertools' are.
 *
 * It does what `leased` does around a function, with the same options. The method finds its lock in `context.lock`. All
 * instances of the class share the lock's client. Put it below Powertools' decorators, so that it is next to the method.
 *
 * Throws InvalidOptionsError, also for a member that is no method.
 *
 * ```ts
 * class Importer {
 *   @leased({ tableName: "leases", key: "import" })
 *   async handler(_event: unknown, context: Context & { lock: Lock }) {
 *     await importAll({ signal: context.lock.signal });
 *   }
 * }
 * const importer = new Importer();
 * export const handler = importer.handler.bind(importer);
 * ```
 */
export function leased<TEvent = unknown>(options: LeaseLockOptions<TEvent>): LeasedMethodDecorator<TEvent>;
/**
 * Puts a lock around a Lambda handler, without middy or as the handler of a middy chain.
 *
 * It does what `leaseLock` does, with the same options, and always knows when the handler ends. It never releases
 * before that, and the order of middlewares does not matter.
 *
 * Throws InvalidOptionsError. An invocation rejects as with `leaseLock`.
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
): LeasedHandler<TEvent, TResult>;
export function leased<TEvent, TResult>(
  options: LeaseLockOptions<TEvent, ResultOf<TResult>>,
  ...rest: [((event: TEvent, context: Context, lock: Lock) => Promise<TResult> | TResult)?]
): LeasedHandler<TEvent, TResult> | LeasedMethodDecorator<TEvent> {
  return leasedBy(new Guard<TEvent>(options, makeClient), rest);
}

/**
 * Puts a lock around each record of a batch, by the key of that record, and answers which records have to come again.
 *
 * For SQS (standard and FIFO), Kinesis, DynamoDB streams, Kafka, and pipes from these. **Turn on
 * `ReportBatchItemFailures`** in the event source: without it Lambda ignores the answer, and takes all records as done.
 *
 * - The records of one key run one after the other, in their order, under one lease: 2 requests for each change of the
 *   key. Up to `concurrency` keys run at the same time.
 * - A record fails if its key is held (with `whenHeld: "throw"`), its key cannot be read, its work rejects, or its lease
 *   is lost. A lost lease fails all records that ran under it: they come again, also those whose work was done.
 * - A FIFO queue, a shard or a partition keeps its order: behind a failed record no other of its message group, shard
 *   or partition runs, and all of them come again.
 * - Records that the function's time is too short for are not begun: they come again.
 *
 * The work gets the record, the context and the lock: the lease, and a signal that aborts as that of {@link leased}.
 * With `once` and no key, the lease is that of the record. An environment that freezes wakes with an aborted signal.
 *
 * Throws InvalidOptionsError. An invocation rejects with it for an event of another source, before any request.
 *
 * ```ts
 * export const handler = leasedBatch<SQSRecord>(
 *   { tableName: "leases", key: ({ body }) => `file/${body}` },
 *   async ({ body }, _context, lock) => {
 *     await importFile(body, { signal: lock.signal });
 *   },
 * );
 * ```
 */
export function leasedBatch<TRecord = unknown>(
  options: LeasedBatchOptions<TRecord>,
  work: (record: TRecord, context: Context, lock: Lock) => unknown,
): LeasedHandler<unknown, LeasedBatchResponse<TRecord>> {
  return batchHandler(options, work, makeClient);
}
