/** A handler that takes its lock by the client, without the SDK. */
import { LeaseClient, lightStore } from "@leasehold/client/light";

const client = new LeaseClient({ store: lightStore({ tableName: "leases" }) });

export async function handler({ key }: { readonly key: string }): Promise<number> {
  return await client.withLease(key, {}, (lease) => lease.fencingToken);
}
