import { LeaseClient } from "@leasehold/client/light";
import type { Context } from "aws-lambda";
import { batchHandler, type LeasedBatchOptions, type LeasedBatchResponse } from "../batch.ts";
import { Guard } from "../guard.ts";
import {
  type Declared,
  type LeaseLockMiddleware,
  middlewareOf,
  type UndeclaredEvent,
} from "../lease-lock.ts";
import { type LeasedHandler, type LeasedMethodDecorator, leasedBy } from "../leased.ts";
import type { LeaseLockOptions, ResultOf } from "../options.ts";
import type { MakeClient } from "../settings.ts";
import type { Lock } from "../signal.ts";

const makeClient: MakeClient = (options) => new LeaseClient(options);

/**
 * The `leaseLock` of `@leasehold/middy`, without the AWS SDK in the bundle: for a `tableName` it makes the client of
 * `@leasehold/client/light`. The same options, the same behaviour.
 *
 * ```ts
 * import { leaseLock } from "@leasehold/middy/light";
 *
 * export const handler = middy<{ file: string }>()
 *   .use(leaseLock({ tableName: "leases", key: (event) => `import/${event.file}`, whenHeld: "throw" }))
 *   .handler((event, context) => importFile(event.file, { signal: context.lock.signal }));
 * ```
 */
export function leaseLock<TEvent = UndeclaredEvent, TResult = unknown>(
  options: LeaseLockOptions<TEvent, TResult> = {},
): LeaseLockMiddleware<Declared<TEvent>> {
  return middlewareOf(new Guard<TEvent>(options, makeClient));
}

/** The decorator `leased` of `@leasehold/middy`, without the AWS SDK in the bundle. */
export function leased<TEvent = unknown>(options: LeaseLockOptions<TEvent>): LeasedMethodDecorator<TEvent>;
/**
 * The `leased` of `@leasehold/middy`, without the AWS SDK in the bundle: for a `tableName` it makes the client of
 * `@leasehold/client/light`. The same options, the same behaviour.
 *
 * ```ts
 * import { leased } from "@leasehold/middy/light";
 *
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
 * The `leasedBatch` of `@leasehold/middy`, without the AWS SDK in the bundle: for a `tableName` it makes the client of
 * `@leasehold/client/light`. The same options, the same behaviour.
 *
 * ```ts
 * import { leasedBatch } from "@leasehold/middy/light";
 *
 * export const handler = leasedBatch({ tableName: "leases", key: "sync" }, async (_record, _context, lock) => {
 *   await importAll({ signal: lock.signal });
 * });
 * ```
 */
export function leasedBatch<TRecord = unknown>(
  options: LeasedBatchOptions<TRecord>,
  work: (record: TRecord, context: Context, lock: Lock) => unknown,
): LeasedHandler<unknown, LeasedBatchResponse<TRecord>> {
  return batchHandler(options, work, makeClient);
}
