import { LeaseClient, type LeaseStore } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { type LeaseLockOptions, type Lock, leased, leaseLock } from "@leasehold/middy";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import middy6 from "middy6";

/** Lambda's context, as handlers of a middy chain with a lock declare theirs. */
export type LambdaContext = Context & { lock: Lock };

export type Work = (lock: Lock, event: unknown) => unknown;
export type App = (event: unknown, context: LambdaContext) => Promise<unknown>;

/** The versions of middy that the middleware is for. Types are those of the newer one. */
export const middies = {
  "middy 7": middy,
  "middy 6": middy6 as unknown as typeof middy,
} as const;

const inMiddy =
  (version: typeof middy) =>
  (options: LeaseLockOptions, work: Work): App => {
    const app = version(
      async (event: unknown, context: LambdaContext) => await work(context.lock, event),
    ).use(leaseLock(options));
    return async (event, context) => await app(event, context);
  };

/** The ways to put a lock around the same work. */
export const ways: Readonly<Record<string, (options: LeaseLockOptions, work: Work) => App>> = {
  leaseLock: inMiddy(middies["middy 7"]),
  "leaseLock in middy 6": inMiddy(middies["middy 6"]),
  leased: (options, work) => leased(options, (event, _context, lock) => work(lock, event)),
};

/** A lease store that notes every request that is made to it. */
export class CountingStore extends MemoryLeaseStore {
  readonly requests: string[] = [];
  /** Set to make updates wait, or fail. */
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
  /** A lock of our client's, with the test's time. */
  readonly options: { readonly client: LeaseClient; readonly clock: ManualClock; readonly key: string };
  /** What Lambda hands to an invocation that may run for so long from now. */
  context(timeoutMs?: number, awsRequestId?: string): LambdaContext;
  /** Who holds the lock. */
  holder(key?: string): Promise<string | undefined>;
}

export function bench(): Bench {
  // Behind every trigger's time: one that lies ahead is refused.
  const clock = new ManualClock(Date.UTC(2026, 11, 1));
  const store = new CountingStore();
  let count = 0;
  const client = new LeaseClient({ store, clock, owner: "this client" });
  const other = new LeaseClient({ store, clock, owner: "somebody else" });
  return {
    ...{ clock, store, client, other },
    options: { client, clock, key: "job" },
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
