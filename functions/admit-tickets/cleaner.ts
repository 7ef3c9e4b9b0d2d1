import type { LeaseClient } from "@leasehold/client";
import { type Answering, answering } from "../support/answers.ts";
import { dynamodb } from "../support/dynamodb.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { departmentKeyPrefix } from "./schema.ts";

/** What the cleaner did. */
export interface CleaningReport {
  /** Departments with a ticket in service. */
  readonly departments: number;
  /** Tickets whose service was ended, for nothing had been heard of them. */
  readonly removed: number;
}

const leaseDurationMs = 10_000;

/**
 * Frees the desks whose tickets have stopped while nobody waits; where somebody does, the next in line takes over.
 *
 * Whoever takes a lock over in its turn passes over dead waiters as well: so taking it and letting it go is all there is
 * to clean. A desk at which somebody alive waits refuses the cleaner.
 */
export async function cleanDesks(leases: LeaseClient, now: () => number = Date.now): Promise<CleaningReport> {
  let departments = 0;
  let removed = 0;
  for await (const { key, expiresAt } of leases.list({ prefix: departmentKeyPrefix })) {
    departments += 1;
    if (expiresAt > now()) continue;
    const lease = await leases.tryAcquire(key, { fair: true, leaseDurationMs });
    if (lease === undefined) continue;
    removed += 1;
    await lease.release();
  }
  return { departments, removed };
}

const leases = once(() => leaseClient(dynamodb()));

/** Frees abandoned desks. Cleaning twice does no harm, and one that dies in between is cleaned after in its turn. */
export const handler: Answering<CleaningReport> = answering(() => cleanDesks(leases()));
