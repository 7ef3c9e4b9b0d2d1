/** A handler that takes its lock by the client. */
import { LeaseClient } from "@leasehold/client";

const client = new LeaseClient({ tableName: "leases" });

export async function handler({ key }: { readonly key: string }): Promise<number> {
  return await client.withLease(key, {}, (lease) => lease.fencingToken);
}
