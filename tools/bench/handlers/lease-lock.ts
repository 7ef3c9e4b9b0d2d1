/** A handler in a middy chain with the middleware. */
import { leaseLock } from "@leasehold/middy";
import middy from "@middy/core";

export const handler = middy()
  .use(leaseLock({ tableName: "leases", key: "job" }))
  .handler(async (_event, context) => context.lock.lease.fencingToken);
