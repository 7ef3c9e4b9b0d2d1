/** A handler in the plain wrapper, which needs no middy. */
import { leased } from "@leasehold/middy";

export const handler = leased(
  { tableName: "leases", key: "job" },
  (_event, _context, lock) => lock.lease.fencingToken,
);
