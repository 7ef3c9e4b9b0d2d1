/** Leasehold: with the AWS SDK, with the light store, and with waiters in line. */
import { type AcquireOptions, LeaseClient } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { LeaseClient as LightClient, type LightStoreOptions, lightStore } from "@leasehold/client/light";
import { together } from "@leasehold/client/together";
import type { Contender, HeldLock, Holding, LockClient, Place } from "../contender.ts";

/** Nobody gives up before the measurement ends. */
const waitMs = 600_000;

class Leases implements LockClient {
  readonly #client: LeaseClient;
  readonly #options: AcquireOptions;
  readonly #end = new AbortController();

  constructor(client: LeaseClient, options: AcquireOptions) {
    this.#client = client;
    this.#options = { waitMs, ...options };
  }

  async acquire(key: string): Promise<HeldLock> {
    const { signal } = this.#end;
    return await this.#client.acquire(key, { ...this.#options, signal });
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#client.close();
  }
}

function bySdk({ dynamodb, leaseTable }: Place, holding: Holding, options: AcquireOptions = {}): Leases {
  const { leaseDurationMs, heartbeatMs: heartbeat = false } = holding;
  const client = new LeaseClient({ tableName: leaseTable, dynamodb, leaseDurationMs, renewals: together() });
  return new Leases(client, { heartbeat, ...options });
}

export const leasehold: Contender = {
  id: "leasehold",
  name: "Leasehold",
  cannot: {},
  open: (place, holding) => bySdk(place, holding),
};

export const leaseholdLight: Contender = {
  id: "leasehold-light",
  name: "Leasehold, light",
  cannot: { handOver: "the same requests as with the AWS SDK" },
  open: ({ clientConfig, leaseTable }, { leaseDurationMs, heartbeatMs: heartbeat = false }) => {
    const settings = clientConfig as Pick<LightStoreOptions, "endpoint" | "region" | "credentials">;
    const store = lightStore({ ...settings, tableName: leaseTable });
    return new Leases(new LightClient({ store, leaseDurationMs, renewals: together() }), { heartbeat });
  },
};

/** For hand-overs, which are all that it changes. */
export const leaseholdFair: Contender = {
  id: "leasehold-fair",
  name: "Leasehold, fair()",
  cannot: {},
  open: (place, holding) => bySdk(place, holding, { order: fair() }),
};
