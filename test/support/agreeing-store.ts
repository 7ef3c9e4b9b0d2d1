import type { Lease, LeaseClient, UpdateRequest, UpdateResult } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";

/** Says yes to every renewal without keeping anything, so that the holder's own work is what takes time. */
export class AgreeingStore extends MemoryLeaseStore {
  /** How many writes each batch had. */
  readonly batches: number[] = [];

  override async updateMany(requests: readonly UpdateRequest[]): Promise<readonly UpdateResult[]> {
    this.batches.push(requests.length);
    const shape = this.peek({ pk: "shape", sk: "lease" });
    return requests.map(({ values }) => {
      const written: Record<string, string | number> = { ...shape };
      for (const name of ["version", "expiresAt"]) written[name] = values[`:${name}`] ?? "";
      written.token = values[":ifToken"] ?? "";
      return { applied: true, item: written, retried: false };
    });
  }
}

/** Takes on so many leases, each with a heartbeat, without a request for any of them. */
export async function adoptMany(
  client: LeaseClient,
  count: number,
  { leaseDurationMs, heartbeat }: { readonly leaseDurationMs: number; readonly heartbeat: number },
): Promise<Lease[]> {
  const handle = (await client.acquire("shape", { leaseDurationMs })).toJSON();
  return Array.from({ length: count }, (_, index) =>
    client.adopt({ ...handle, key: `k${index}`, token: `t${index}` }, { heartbeat }),
  );
}
