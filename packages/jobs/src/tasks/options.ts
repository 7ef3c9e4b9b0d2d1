/**
 * What callers of `TaskSet` and of `Task` may pass.
 * A value that is not allowed is refused by name, before a request is sent.
 */
import {
  type BackoffOptions,
  type ClientInternals,
  check,
  checkData,
  checkDuration,
  checkHeartbeat,
  checkKnown,
  checkText,
  limits,
  utf8Bytes,
} from "@leasehold/client/internal";
import { isRequeueable, type TaskRecord, type TaskState, taskStates } from "./record.ts";
import { taskLimits } from "./schema.ts";

/** Options of a {@link TaskSet}. */
export interface TaskSetOptions {
  /**
   * How many claims a task may have before it fails or is parked. A task can have its own number. Written with each
   * task when it is added: a set that is opened with another number does not change the tasks that are there. From 1
   * to 1000.
   * @default 3
   */
  readonly maxAttempts?: number;
  /**
   * How long a task waits after a failed attempt, unless its worker gives `retryAfterMs`. By default 5 to 10 s after
   * the first attempt, 10 to 20 s after the second, and so on up to 15 minutes; the exact time is random. So a task
   * with 3 attempts survives an outage of 15 s. @default { delayMs: 10000, maxDelayMs: 900000 }
   */
  readonly backoff?: BackoffOptions;
  /**
   * How long a claim lasts unless it is renewed. The tasks of a dead worker return after this time. In milliseconds,
   * up to 366 days, and no shorter than the client's `clockSkewMs` when that was given. @default - the client's
   */
  readonly leaseDurationMs?: number;
  /**
   * Renews claims in the background: `true` for every third of their duration, or an interval in milliseconds that is
   * shorter than half of the duration. @default true
   */
  readonly heartbeat?: boolean | number;
  /**
   * A task that runs for longer than this is not renewed any more. Its signal aborts, and it can be claimed again
   * when its claim has expired. In milliseconds, up to 366 days. @default - no limit
   */
  readonly maxRunMs?: number;
  /**
   * How long DynamoDB's ttl keeps a task after its last change, open or ended. A task that is not claimed in that time is
   * removed. After that time, the id of an ended task can be added again. In milliseconds, at least an hour.
   * @default 2592000000 (30 days)
   */
  readonly keepForMs?: number;
  /** Readable label of the worker. @default - the client's owner */
  readonly owner?: string;
}

/** A task to be added. */
export interface TaskInput {
  /** The task's name within its set: at most 512 bytes. */
  readonly id: string;
  /** Plain JSON values, at most 16 KiB as text. Every claim and renewal is billed for their size. */
  readonly payload?: unknown;
  /** How many claims it may have before it fails or is parked: from 1 to 1000. @default - the set's */
  readonly maxAttempts?: number;
  /** How long it waits before its first attempt, in milliseconds, up to 366 days. @default 0 */
  readonly delayMs?: number;
}

/** Options of {@link TaskSet.requeue}. */
export interface RequeueOptions {
  /** How many claims it may have this time: from 1 to 1000. @default - as many as before */
  readonly maxAttempts?: number;
  /** How long it waits before its first attempt, in milliseconds, up to 366 days. @default 0 */
  readonly delayMs?: number;
}

/** Options of {@link TaskSet.requeueAll}: which tasks are requeued, and how. */
export interface RequeueAllOptions extends RequeueOptions {
  /** Only tasks in this state. @default - tasks that have failed and tasks that are parked */
  readonly state?: "failed" | "parked" | "cancelled";
  /** Selects tasks. @default - all */
  readonly filter?: (task: TaskRecord) => boolean;
  /** At most this many. @default - all */
  readonly limit?: number;
}

/** Options of {@link TaskSet.work}. */
export interface WorkOptions {
  /** At most this many tasks at a time: from 1 to 1000. @default 1 */
  readonly concurrency?: number;
  /** The shortest time from one claim to the next, in milliseconds. @default 0 */
  readonly pauseMs?: number;
  /**
   * How often the worker looks for tasks when none can be claimed, in milliseconds. It looks again after about this
   * time, then after about twice this time, up to ten times this time; earlier when a task becomes due that it has
   * seen. With many open tasks it looks less often: about this time for every 32 of them, up to sixty times this
   * time. @default 1000
   */
  readonly pollMs?: number;
  /**
   * When the worker ends by itself. @default "drained"
   *
   * - `drained`: when no task is waiting or running. So the tasks of workers that die are still done.
   * - `idle`: when no task can be claimed now.
   * - `never`: for a set that tasks are added to.
   */
  readonly until?: "drained" | "idle" | "never";
  /** Ends the worker: it claims no more tasks. Its tasks are not changed. @default - none */
  readonly signal?: AbortSignal;
}

/** Options of {@link TaskSet.process}. */
export interface ProcessOptions extends WorkOptions {
  /** How long a task waits after its work has failed, in milliseconds. @default - the set's `backoff` */
  readonly retryAfterMs?: number;
}

/** Options of {@link Task.fail}. */
export interface FailOptions {
  /**
   * How long the task waits for its next attempt, in milliseconds. Not together with `final`. @default - the set's
   * `backoff`
   */
  readonly retryAfterMs?: number;
  /** Whether no further attempt can succeed. Then the task is parked, whatever attempts are left. @default false */
  readonly final?: boolean;
}

/** The options of a set, validated and complete. */
export interface TaskSetTerms {
  readonly maxAttempts: number;
  readonly backoff: Required<BackoffOptions>;
  readonly leaseDurationMs: number;
  readonly heartbeatMs: number | undefined;
  readonly maxRunMs: number | undefined;
  readonly keepForMs: number;
  readonly owner: string;
}

/** Work options, validated and complete. */
export type WorkTerms = Required<Omit<WorkOptions, "signal">> & { readonly signal: AbortSignal | undefined };

const defaultBackoffMs = 10_000;
const defaultMaxBackoffMs = 15 * 60 * 1000;
const defaultKeepForMs = 30 * 24 * 60 * 60 * 1000;
/** With less, a claim that is delayed for as long could start the fencing tokens again. */
const shortestKeepForMs = 60 * 60 * 1000;

/** Validates a set's options. */
export function checkTaskSetOptions(
  options: TaskSetOptions,
  defaults: Pick<ClientInternals, "owner" | "times">,
): TaskSetTerms {
  const known = ["maxAttempts", "backoff", "leaseDurationMs", "heartbeat", "maxRunMs", "keepForMs", "owner"];
  checkKnown(options, known, "options");
  const { maxAttempts = 3, heartbeat = true, maxRunMs, keepForMs = defaultKeepForMs } = options;
  const leaseDurationMs = options.leaseDurationMs ?? defaults.times.leaseDurationMs;
  checkDuration("leaseDurationMs", leaseDurationMs, defaults.times.shortestLeaseMs);
  checkDuration("keepForMs", keepForMs, shortestKeepForMs);
  if (maxRunMs !== undefined) checkDuration("maxRunMs", maxRunMs, 1);
  return {
    maxAttempts: checkAttempts("maxAttempts", maxAttempts),
    backoff: checkBackoff(options.backoff ?? {}),
    leaseDurationMs,
    heartbeatMs: checkHeartbeat(heartbeat, leaseDurationMs),
    maxRunMs,
    keepForMs,
    owner:
      options.owner === undefined ? defaults.owner : checkText("owner", options.owner, limits.ownerBytes),
  };
}

function checkBackoff(backoff: BackoffOptions): Required<BackoffOptions> {
  checkKnown(backoff, ["delayMs", "maxDelayMs"], "backoff");
  const { delayMs = defaultBackoffMs } = backoff;
  checkDuration("backoff.delayMs", delayMs, 0);
  const { maxDelayMs = Math.max(delayMs, defaultMaxBackoffMs) } = backoff;
  return { delayMs, maxDelayMs: checkDuration("backoff.maxDelayMs", maxDelayMs, delayMs) };
}

const workOptionNames = ["concurrency", "pauseMs", "pollMs", "until", "signal"];

/** Validates work options. */
export function checkWorkOptions(options: WorkOptions): WorkTerms {
  checkKnown(options, workOptionNames, "options");
  const { concurrency = 1, pauseMs = 0, pollMs = 1000, until = "drained", signal } = options;
  check(["drained", "idle", "never"].includes(until), "until", until, "drained, idle or never");
  check(signal === undefined || signal instanceof AbortSignal, "signal", signal, "an AbortSignal");
  return {
    concurrency: checkCount("concurrency", concurrency, 1000),
    pauseMs: checkDuration("pauseMs", pauseMs, 0),
    pollMs: checkDuration("pollMs", pollMs, 1),
    until,
    signal,
  };
}

/** Validates the options of `process`. */
export function checkProcessOptions(
  options: ProcessOptions,
): WorkTerms & { readonly retryAfterMs: number | undefined } {
  checkKnown(options, [...workOptionNames, "retryAfterMs"], "options");
  const { retryAfterMs, ...work } = options;
  return { ...checkWorkOptions(work), retryAfterMs: checkRetryAfter(retryAfterMs) };
}

function checkRetryAfter(retryAfterMs: number | undefined): number | undefined {
  return retryAfterMs === undefined ? undefined : checkDuration("retryAfterMs", retryAfterMs, 0);
}

/** Validates the options of `fail`. */
export function checkFailOptions(options: FailOptions): {
  readonly retryAfterMs: number | undefined;
  readonly final: boolean;
} {
  checkKnown(options, ["retryAfterMs", "final"], "options");
  const { retryAfterMs, final = false } = options;
  check(typeof final === "boolean", "final", final, "true or false");
  const isAlone = !final || retryAfterMs === undefined;
  check(
    isAlone,
    "retryAfterMs",
    retryAfterMs,
    "no value together with final: a parked task has no next attempt",
  );
  return { retryAfterMs: checkRetryAfter(retryAfterMs), final };
}

/** A task to be added, validated and complete. */
export interface TaskTerms {
  readonly id: string;
  /** JSON text; empty for no payload. */
  readonly payload: string;
  readonly maxAttempts: number;
  readonly delayMs: number;
}

/** Validates tasks; the set's options are their defaults. */
export function checkTasks(tasks: readonly TaskInput[], defaults: TaskSetTerms): readonly TaskTerms[] {
  check(Array.isArray(tasks), "tasks", tasks, "an array of tasks");
  const ids = new Set<string>();
  return tasks.map((task, index) => {
    const where = `tasks[${index}]`;
    checkKnown(task, ["id", "payload", "maxAttempts", "delayMs"], where);
    const { maxAttempts = defaults.maxAttempts, delayMs = 0 } = task;
    const id = checkText(`${where}.id`, task.id, taskLimits.idBytes);
    check(!ids.has(id), `${where}.id`, id, "an id that no other task of this call has");
    ids.add(id);
    return {
      id,
      payload: checkPayload(where, task.payload),
      maxAttempts: checkAttempts(`${where}.maxAttempts`, maxAttempts),
      delayMs: checkDuration(`${where}.delayMs`, delayMs, 0),
    };
  });
}

function checkPayload(where: string, payload: unknown): string {
  const text = checkData(payload) ?? "";
  const { payloadBytes } = taskLimits;
  const bytes = utf8Bytes(text);
  const allowed = `at most ${payloadBytes} bytes of JSON`;
  check(bytes <= payloadBytes, `${where}.payload`, `${bytes} bytes of JSON`, allowed);
  return text;
}

const requeueOptionNames = ["maxAttempts", "delayMs"];

/** Validates the options of `requeue`. */
export function checkRequeueOptions(options: RequeueOptions, more: readonly string[] = []): RequeueTerms {
  checkKnown(options, [...requeueOptionNames, ...more], "options");
  const { maxAttempts, delayMs = 0 } = options;
  return {
    maxAttempts: maxAttempts === undefined ? undefined : checkAttempts("maxAttempts", maxAttempts),
    delayMs: checkDuration("delayMs", delayMs, 0),
  };
}

/** The options of `requeue`, validated and complete. */
export interface RequeueTerms {
  /** Undefined: as many as before. */
  readonly maxAttempts: number | undefined;
  readonly delayMs: number;
}

/** Validates the options of `requeueAll`. */
export function checkRequeueAllOptions(options: RequeueAllOptions): RequeueTerms & {
  readonly isSelected: (task: TaskRecord) => boolean;
  readonly limit: number;
} {
  const terms = checkRequeueOptions(options, ["state", "filter", "limit"]);
  const { state, filter = () => true, limit = Number.POSITIVE_INFINITY } = options;
  const isState = state === undefined || isRequeueable(state);
  check(isState, "state", state, "failed, parked or cancelled");
  check(typeof filter === "function", "filter", filter, "a function of the task");
  if (options.limit !== undefined) checkCount("limit", limit, Number.MAX_SAFE_INTEGER);
  const states: readonly TaskState[] = state === undefined ? ["failed", "parked"] : [state];
  return { ...terms, isSelected: (task) => states.includes(task.state) && filter(task), limit };
}

/** Validates a remark; no remark is an empty text. */
export function checkRemark(remark: unknown): string {
  return remark === undefined || remark === "" ? "" : checkText("remark", remark, taskLimits.remarkBytes);
}

/** Makes a remark of what was thrown, cut to the length of a remark. */
export function remarkOf(thrown: unknown): string {
  const text = (thrown instanceof Error && thrown.message) || String(thrown);
  // A third of the bytes: no character takes more than three for each of its UTF-16 units.
  const cut = utf8Bytes(text) <= taskLimits.remarkBytes ? text : text.slice(0, taskLimits.remarkBytes / 3);
  return cut.toWellFormed();
}

/** Validates the state of a list's tasks. */
export function checkState(state: unknown): TaskState | undefined {
  const isState = state === undefined || taskStates.includes(state as TaskState);
  check(isState, "state", state, taskStates.join(", "));
  return state as TaskState | undefined;
}

function checkAttempts(option: string, value: unknown): number {
  return checkCount(option, value, taskLimits.attempts);
}

function checkCount(option: string, value: unknown, max: number): number {
  const isInRange = Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= max;
  check(isInRange, option, value, `a whole number from 1 to ${max}`);
  return value as number;
}
