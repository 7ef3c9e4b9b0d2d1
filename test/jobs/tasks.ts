/** A set of tasks that is kept in memory. Each test has a new clock and a new table. */
import { type Item, LeaseClient, type LeaseClientOptions, type LeaseEvent } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach } from "vitest";
import { type Task, TaskSet, type TaskSetOptions } from "../../packages/jobs/src/index.ts";
import { ClaimAttempt } from "../../packages/jobs/src/tasks/claim-attempt.ts";
import { endedTaskKey, openTaskKey } from "../../packages/jobs/src/tasks/schema.ts";
import { adminOf } from "../support/admin.ts";
import { claimed as claimedOf } from "../support/claimed.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { taskContext } from "../support/task-context.ts";

export const leaseDurationMs = 30_000;
/** After so long, any worker claims a task whose claim is not renewed. */
export const pastLeaseMs = leaseDurationMs + 1_001;
export let clock: ManualClock;
export let store: ScriptedStore;
export let events: LeaseEvent[];

export function beginAnew(makeClock: () => ManualClock = () => new ManualClock()): void {
  beforeEach(() => {
    clock = makeClock();
    store = new ScriptedStore();
    events = [];
  });
}

export const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient => {
  const onEvent = (event: LeaseEvent): void => {
    events.push(event);
  };
  return new LeaseClient({ store, clock, owner, leaseDurationMs, onEvent, ...options });
};
/** A set whose attempts follow each other at once. */
export const setOf = (owner: string, options: TaskSetOptions = {}): TaskSet =>
  new TaskSet(clientOf(owner), "set", { backoff: { delayMs: 0 }, ...options });
export const claimed = (owner: string, options: TaskSetOptions = {}): Promise<Task> =>
  claimedOf(setOf(owner, options));
export const ids = (count: number) => Array.from({ length: count }, (_, index) => `${index}`);
export const add = (count: number, options: TaskSetOptions = {}) =>
  setOf("adder", options).add(ids(count).map((id) => ({ id })));
export const open = (id = "1") => store.table.peek(openTaskKey("set", id));
export const ended = (id = "1") => store.table.peek(endedTaskKey("set", id));

/** Breaks the claim of a task as an operator does. */
export const breakClaim = (id = "1"): Promise<boolean> => {
  const { sk: sortKey } = openTaskKey("set", id);
  return adminOf(clientOf("operator")).forceRelease("set", { sortKey, token: String(open(id)?.token) });
};
/** Lets repetitions come due. */
export const inTime = async <T>(promise: Promise<T>): Promise<T> => {
  promise.catch(() => undefined);
  await clock.advance(6_000);
  return await promise;
};
/** The requests of a call, by their methods. */
export const requestsOf = async (call: () => Promise<unknown>): Promise<string[]> => {
  const before = store.calls.length;
  await call();
  return store.calls.slice(before).map(({ method }) => method);
};
/** Tries to claim a task that was read so; gives what comes of it, and its requests. */
export const attempt = async (seen: Item, client = clientOf("me")) => {
  const before = store.calls.length;
  const outcome = await new ClaimAttempt(taskContext(client, "set"), seen).run();
  return { outcome, calls: store.calls.slice(before).map(({ method }) => method) };
};
