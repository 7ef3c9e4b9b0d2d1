import { LeaseClient, type LeaseStore } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import type { Lock } from "@leasehold/middy";
import type { Context } from "aws-lambda";

/** Lambda's context, as handlers of a middy chain with a lock declare theirs. */
export type LambdaContext = Context & { lock: Lock };

/** A lease store that notes every request that is made to it. */
export class CountingStore extends MemoryLeaseStore {
  readonly requests: string[] = [];
  /** Set to make updates wait. */
  delay: ((update: number) => Promise<void>) | undefined;
  #updates = 0;

  override async update(...args: Parameters<LeaseStore["update"]>): ReturnType<LeaseStore["update"]> {
    this.requests.push("update");
    this.#updates += 1;
    await this.delay?.(this.#updates);
    return await super.update(...args);
  }

  override async get(...args: Parameters<LeaseStore["get"]>): ReturnType<LeaseStore["get"]> {
    this.requests.push("get");
    return await super.get(...args);
  }
}

/** A table, a clock and two clients, ours and somebody else's. */
export interface Bench {
  readonly clock: ManualClock;
  readonly store: CountingStore;
  readonly client: LeaseClient;
  readonly other: LeaseClient;
  /** What Lambda hands to an invocation that may run for so long from now. */
  context(timeoutMs?: number, awsRequestId?: string): LambdaContext;
  /** Who holds the lock. */
  holder(key?: string): Promise<string | undefined>;
}

export function bench(): Bench {
  const clock = new ManualClock();
  const store = new CountingStore();
  let count = 0;
  const other = new LeaseClient({ store, clock, owner: "somebody else" });
  return {
    clock,
    store,
    client: new LeaseClient({ store, clock, owner: "this client" }),
    other,
    context(timeoutMs = 60_000, awsRequestId = `request-${++count}`) {
      const end = clock.monotonic() + timeoutMs;
      return {
        functionName: "job",
        awsRequestId,
        getRemainingTimeInMillis: () => Math.max(0, Math.floor(end - clock.monotonic())),
      } as LambdaContext;
    },
    holder: async (key = "job") => (await other.inspect(key))?.owner,
  };
}
