import { brandClass } from "../base/brand.ts";
import { check } from "../base/check-values.ts";
import type { LeaseClientOptions } from "../base/options.ts";
import { LeaseClient as StoreClient } from "../core/client.ts";
import { lightStore } from "../stores/light/light-store.ts";

/** Options of the light entry's {@link LeaseClient}. */
export type LightClientOptions = Omit<LeaseClientOptions, "dynamodb">;

/**
 * The LeaseClient of `@leasehold/client`, without the AWS SDK in the bundle. The two differ only in the store that they
 * make for a `tableName`, which is {@link lightStore} here. Each is an `instanceof` the other, and every function that
 * takes one takes both.
 *
 * ```ts
 * import { LeaseClient } from "@leasehold/client/light";
 *
 * const client = new LeaseClient({ tableName: "leases" });
 * ```
 */
export class LeaseClient extends StoreClient {
  static {
    brandClass(LeaseClient, "LeaseClient");
  }

  /** Throws InvalidOptionsError. Sends nothing, and does not read the environment. */
  constructor(options: LightClientOptions) {
    super(options, (tableName, { clock, randomness, dynamodb }) => {
      check(
        dynamodb === undefined,
        "dynamodb",
        dynamodb,
        "nothing: LeaseClient of @leasehold/client takes it",
      );
      return lightStore({ tableName, clock, randomness });
    });
  }
}
