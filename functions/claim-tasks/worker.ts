import type { Lease, LeaseClient } from "@leasehold/client";
import { hasTimeLeft } from "../support/working-time.ts";
import { taskLockKey } from "./schema.ts";
import type { Change, ChangeResult, Task, TaskBoard } from "./task-board.ts";

/** What comes of doing a task: a result, or a remark that says why it can never succeed. */
export type Verdict =
  | { readonly succeeded: true; readonly result: unknown }
  | { readonly succeeded: false; readonly remark: string };

/** What a worker works with. */
export interface Worker {
  readonly leases: LeaseClient;
  readonly board: Pick<TaskBoard, "unfinished" | "read" | "change">;
  /** Does a task. May be called again for a task whose worker died or whose last attempt rejected. */
  readonly work: (task: Task, signal: AbortSignal) => Promise<Verdict>;
  /** A task that was begun this often without an end is given up. */
  readonly mostAttempts: number;
  /** How long a dead worker's task stays claimed, in milliseconds; a living one renews. */
  readonly leaseDurationMs: number;
  /** Milliseconds until the worker has to stop. */
  readonly remainingMs: () => number;
  /** A number from 0 to 1, for the order of the tasks. @default Math.random */
  readonly fraction?: () => number;
}

/** What a worker did. */
export interface WorkReport {
  readonly succeeded: number;
  readonly failed: number;
  /** Attempts that ended with an error and will be made again. */
  readonly putBack: number;
  /** Tasks that others have claimed. */
  readonly claimedByOthers: number;
  /** Tasks whose lease was lost on the way, and which are somebody else's now. */
  readonly lost: number;
  /** Whether it stopped for want of time. */
  readonly isUnfinished: boolean;
}

type Outcome = Exclude<keyof WorkReport, "isUnfinished"> | "finishedBefore";

/**
 * Goes once through a set's unfinished tasks, in a random order, and does those that nobody else has claimed.
 *
 * Each task is claimed by a lease of its own, so that of many workers one does it. Its state is written in transactions
 * which that lease has to survive: it is finished once, whatever becomes of the workers. The work itself may be begun
 * more than once, after a worker's death or an error, up to `mostAttempts` times.
 */
export async function workOn(worker: Worker, set: string): Promise<WorkReport> {
  const counts: Record<Outcome, number> = {
    succeeded: 0,
    failed: 0,
    putBack: 0,
    claimedByOthers: 0,
    lost: 0,
    finishedBefore: 0,
  };
  const tasks = await shuffled(worker, set);
  let isUnfinished = false;
  for (const task of tasks) {
    if (!hasTimeLeft(worker.remainingMs())) {
      isUnfinished = true;
      break;
    }
    counts[await claim(worker, set, task)] += 1;
  }
  const { finishedBefore: _nothingDone, ...report } = counts;
  return { ...report, isUnfinished };
}

/** Those that wait come first: most that are running are some living worker's. */
async function shuffled({ board, fraction = Math.random }: Worker, set: string): Promise<string[]> {
  const tasks: { readonly task: string; readonly place: number }[] = [];
  for await (const { task, state } of board.unfinished(set)) {
    tasks.push({ task, place: fraction() + (state === "running" ? 1 : 0) });
  }
  return tasks.sort((a, b) => a.place - b.place).map(({ task }) => task);
}

async function claim(worker: Worker, set: string, name: string): Promise<Outcome> {
  const { leases, leaseDurationMs } = worker;
  const lease = await leases.tryAcquire(taskLockKey(set, name), { leaseDurationMs, heartbeat: true });
  if (lease === undefined) return "claimedByOthers";
  try {
    // Read under the lease: what the list said may be long past.
    const task = await worker.board.read(set, name);
    if (task === undefined || task.state === "succeeded" || task.state === "failed") return "finishedBefore";
    return await attempt(worker, set, task, lease);
  } finally {
    await lease[Symbol.asyncDispose]();
  }
}

async function attempt(worker: Worker, set: string, task: Task, lease: Lease): Promise<Outcome> {
  const change = (step: Change): Promise<ChangeResult> => worker.board.change(set, task.task, step, lease);
  const { mostAttempts } = worker;
  if (task.attempts >= mostAttempts) {
    const last = task.remark ?? `its worker ${task.worker ?? ""} died`;
    const remark = `given up after ${task.attempts} attempts: ${last}`;
    const result = await change({ from: task, to: { state: "failed", attempts: task.attempts, remark } });
    return result === "written" ? "failed" : "lost";
  }

  const running = { state: "running", attempts: task.attempts + 1, worker: lease.owner } as const;
  if ((await change({ from: task, to: running })) !== "written") return "lost";

  const { to, outcome } = await verdict(worker, task, running, lease);
  // Not stopped by the lease's signal: the transaction itself checks the lease.
  return (await change({ from: running, to })) === "written" ? outcome : "lost";
}

async function verdict(
  { work, mostAttempts }: Worker,
  task: Task,
  running: Pick<Task, "attempts"> & { readonly worker: string },
  lease: Lease,
): Promise<{ readonly to: Change["to"]; readonly outcome: Outcome }> {
  try {
    const done = await work(task, lease.signal);
    return done.succeeded
      ? { to: { ...running, state: "succeeded", result: done.result }, outcome: "succeeded" }
      : { to: { ...running, state: "failed", remark: done.remark }, outcome: "failed" };
  } catch (error) {
    const remark = error instanceof Error ? error.message : String(error);
    return running.attempts >= mostAttempts
      ? {
          to: {
            ...running,
            state: "failed",
            remark: `given up after ${running.attempts} attempts: ${remark}`,
          },
          outcome: "failed",
        }
      : { to: { ...running, state: "waiting", remark }, outcome: "putBack" };
  }
}
