/** A handler in the plain wrapper, without middy and without the SDK. */
import { leased } from "@leasehold/middy/light";

export const handler = leased(
  { tableName: "leases", key: "job" },
  (_event, _context, lock) => lock.lease.fencingToken,
);
