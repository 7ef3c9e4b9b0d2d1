import {
  type DurableContext,
  type DurableLambdaHandler,
  withDurableExecution,
} from "@aws/durable-execution-sdk-js";
import type { Lease, LeaseEvent } from "@leasehold/client";
import { type DurableLease, type DurableLeaseOptions, withDurableLease } from "@leasehold/durable";
import { adminOf } from "../support/admin.ts";
import { DurableWorld } from "../support/durable-leases.ts";
import type { Execution } from "../support/durable-service.ts";

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

/** The lock of all executions. */
export const key = "orders/7";

export type Work<T> = (lease: DurableLease, context: DurableContext, name: string) => Promise<T>;

/** Durable executions that work under one lock, and what has become of them. */
export class LockWorld extends DurableWorld {
  /** What the steps have done, in order. */
  readonly done: string[] = [];
  /** What came out of withDurableLease, by the name of the run. */
  readonly thrown: Map<string, unknown> = new Map();

  /** A durable function whose process makes its client anew in each invocation, as a cold start does. */
  leased<T>(work: Work<T>, options: DurableLeaseOptions = {}): DurableLambdaHandler {
    return withDurableExecution(async ({ name }: { readonly name: string }, context: DurableContext) => {
      try {
        return await withDurableLease(context, this.client(), key, options, (lease, own) =>
          work(lease, own, name),
        );
      } catch (error) {
        this.thrown.set(name, error);
        throw error;
      }
    });
  }

  /** Starts an execution whose work runs under the lease. */
  start<T>(work: Work<T>, options?: DurableLeaseOptions, name = "A"): Execution {
    return this.service.start(this.leased(work, options), { name }, name);
  }

  /** Starts an execution of a function that calls withDurableLease itself. */
  run(handler: (context: DurableContext) => Promise<unknown>): Execution {
    return this.service.start(
      withDurableExecution(async (_: unknown, context: DurableContext) => await handler(context)),
      {},
    );
  }

  /** Two steps, with a time between them. */
  twoSteps(betweenSeconds: number): Work<string> {
    return async (lease, context, name) => {
      const first = await context.step("first", async () => {
        this.done.push(`${name} first`);
        return `first under ${lease.fencingToken}`;
      });
      await context.wait({ seconds: betweenSeconds });
      return await context.step("second", async () => {
        this.done.push(`${name} second`);
        return `${first}, second under ${lease.fencingToken}`;
      });
    };
  }

  /** Somebody else's lease, in a process of its own. */
  async otherHolder(leaseDurationMs: number): Promise<Lease> {
    return await this.client().acquire(key, { leaseDurationMs, owner: "somebody else" });
  }

  /** Ends the lease as an operator does. */
  async breakLease(): Promise<void> {
    const client = this.client();
    const token = (await client.inspect(key))?.token;
    if (token === undefined) throw new Error("nobody holds it");
    await adminOf(client).forceRelease(key, { token });
  }

  eventsOf(type: LeaseEvent["type"]): LeaseEvent[] {
    return this.events.filter((event) => event.type === type);
  }
}

/** Two parts that are too large for a checkpoint together, with five minutes between them: each replay runs the work again. */
export const largeWork: Work<string> = async (_lease, own) => {
  const part = await own.step("part", async () => "x".repeat(200_000));
  await own.wait({ seconds: 300 });
  return part + (await own.step("rest", async () => "y".repeat(200_000)));
};
