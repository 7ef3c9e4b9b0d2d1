import { brandClass } from "../base/brand.ts";
import type { LeaseClientOptions } from "../base/options.ts";
import { LeaseClient as StoreClient } from "../core/client.ts";
import { DynamoDBLeaseStore } from "../stores/sdk/store.ts";

/**
 * Acquires and looks after leases in one table.
 *
 * Promised: at most one unexpired holder for each key, whatever wall clocks show; fencing tokens that strictly grow; a
 * stale holder's renewal and release change nothing once another holder has acquired the lock. Not promised: that work
 * stops when its lease is lost. A resource is safe if it checks the fencing token, or if its own transaction
 * contains the lease's condition check. Without either, it gets efficiency from a lease, not safety.
 *
 * Every method rejects with {@link InvalidOptionsError} before it sends anything, with LeaseTableError,
 * LeaseConfigurationError and LeaseServiceError.
 *
 * ```ts
 * const client = new LeaseClient({ tableName: "leases" });
 * const total = await client.withLease("nightly-report", { heartbeat: true }, async (lease) => {
 *   return await buildReport({ signal: lease.signal });
 * });
 * ```
 */
export class LeaseClient extends StoreClient {
  static {
    brandClass(LeaseClient, "LeaseClient");
  }

  /** Throws {@link InvalidOptionsError}. Sends nothing. */
  constructor(options: LeaseClientOptions) {
    super(options, (tableName, { clock, dynamodb }) => {
      return new DynamoDBLeaseStore(tableName, dynamodb, clock);
    });
  }
}
