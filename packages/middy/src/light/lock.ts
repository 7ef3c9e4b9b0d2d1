import { LeaseClient } from "@leasehold/client/light";
import { batchHandler } from "../batch.ts";
import { Guard } from "../guard.ts";
import { middlewareOf } from "../lease-lock.ts";
import { leasedBy } from "../leased.ts";
import type {
  leased as fullLeased,
  leasedBatch as fullLeasedBatch,
  leaseLock as fullLeaseLock,
} from "../lock.ts";
import type { LeaseLockOptions } from "../options.ts";
import type { MakeClient } from "../settings.ts";

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
export const leaseLock: typeof fullLeaseLock = (options = {}) => middlewareOf(new Guard(options, makeClient));

/**
 * The `leased` of `@leasehold/middy`, around a handler or as a decorator, without the AWS SDK in the bundle: see
 * {@link leaseLock}.
 */
export const leased: typeof fullLeased = (options: LeaseLockOptions<never>, ...rest: [unknown?]): never =>
  leasedBy(new Guard(options, makeClient), rest as never) as never;

/** The `leasedBatch` of `@leasehold/middy`, without the AWS SDK in the bundle: see {@link leaseLock}. */
export const leasedBatch: typeof fullLeasedBatch = (options, work) => batchHandler(options, work, makeClient);
