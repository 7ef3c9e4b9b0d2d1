/** A job whose runs are kept in memory. Each test has a new clock, an hour after the slot, and a new table. */
import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach } from "vitest";
import { JobRuns, type JobRunsOptions } from "../../packages/jobs/src/index.ts";
import { runItemKey } from "../../packages/jobs/src/runs/schema.ts";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

export const job = "report";
export const slot = "2025-12-31T23:00:00.000Z";
export const hourMs = 3_600_000;
export const leaseDurationMs = 3_000;
/** After so long, any client takes over an attempt that is not renewed. */
export const pastLeaseMs = leaseDurationMs + 1_001;
export let clock: ManualClock;
export let store: ScriptedStore;

export function beginAnew(): void {
  beforeEach(() => {
    clock = new ManualClock(Date.UTC(2026, 0, 1));
    store = new ScriptedStore();
  });
}

export const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
  new LeaseClient({ store, clock, owner, leaseDurationMs, ...options });
export const runsOf = (
  owner: string,
  options: JobRunsOptions = {},
  client: Partial<LeaseClientOptions> = {},
): JobRuns => new JobRuns(clientOf(owner, client), job, options);
export const item = () => store.table.peek(runItemKey(job, slot));

export const never = (): Promise<never> => new Promise(() => undefined);
export const fail = (): Promise<never> => Promise.reject(new Error("broken"));

/** Lets time pass until a promise settles. */
export async function inTime<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const mark = (): void => {
    isSettled = true;
  };
  promise.then(mark, mark);
  for (let turns = 0; !isSettled && turns < 2_000; turns += 1) await clock.advance(100);
  return await promise;
}

/** Begins an attempt whose process dies at its work. */
export async function die(owner = "dead"): Promise<void> {
  void runsOf(owner, { heartbeat: false, maxAttempts: 100 }).run(slot, never);
  await settled();
  await clock.advance(pastLeaseMs);
}

/** Breaks the lease of the slot as an operator does. */
export function breakLease(): Promise<boolean> {
  const { sk: sortKey } = runItemKey(job, slot);
  return adminOf(clientOf("operator")).forceRelease(job, { sortKey, token: String(item()?.token) });
}
