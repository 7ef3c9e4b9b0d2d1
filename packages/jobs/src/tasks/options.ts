/**
 * What callers of `TaskSet` and of `Task` may pass.
 * A value that is not allowed is refused by name, before a request is sent.
 */
import {
  aFunction,
  type BackoffOptions,
  type Core,
  check,
  checkData,
  checkDuration,
  checkHeartbeat,
  checkOptions,
  checkSignal,
  checkText,
  countTo,
  duration,
  label,
  type Rules,
  readable,
  rule,
  text,
  trueOrFalse,
  unchecked,
  utf8Bytes,
} from "@leasehold/client/internal";
import { type TraceOptions, traceRules } from "../trace.ts";
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
  /**
   * How many claims all workers of the set begin in one period at most. Give it to all of them alike. @default - no limit
   */
  readonly rate?: TaskRate;
  /** Readable label of the worker. @default - the client's owner */
  readonly owner?: string;
}

/**
 * At most so many claims in one period. The periods follow each other without a gap, by the service's clock: around
 * the end of one, twice as many claims may begin in a shorter time.
 */
export interface TaskRate {
  /** From 1 to 1,000,000. */
  readonly claims: number;
  /** The length of a period in milliseconds: from 1,000, because the service tells its time in seconds, to 366 days. */
  readonly perMs: number;
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
  /**
   * Tasks of the set with the same serial key, such as `customer-42`, run one at a time: at most 512 bytes. No
   * order is promised; beside fewer than 32 open tasks, the oldest one is next. @default - none
   */
  readonly serialKey?: string;
}

/** Options of {@link TaskSet.requeue}. */
export interface RequeueOptions extends TraceOptions {
  /** Why, for the trace. @default - none */
  readonly reason?: string;
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

/** Options of a worker. */
export interface WorkerOptions {
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
  readonly rate: TaskRate | undefined;
  readonly owner: string;
}

/** Work options, validated and complete. */
export type WorkTerms = Required<Omit<WorkerOptions, "signal">> & {
  readonly signal: AbortSignal | undefined;
};

const defaultBackoffMs = 10_000;
const defaultMaxBackoffMs = 15 * 60 * 1000;
const defaultKeepForMs = 30 * 24 * 60 * 60 * 1000;
/** With a shorter time, a claim that is delayed that long could restart the fencing tokens. */
const shortestKeepForMs = 60 * 60 * 1000;

const attemptCount = countTo(taskLimits.attempts);
const anyTime = duration(0);
const taskBackoffRules: Rules<BackoffOptions> = { delayMs: anyTime, maxDelayMs: unchecked };
const rateRules: Rules<TaskRate> = { claims: countTo(1_000_000), perMs: duration(1_000) };
const setRules: Rules<TaskSetOptions> = {
  maxAttempts: attemptCount,
  backoff: (where, value) => checkOptions(value as BackoffOptions, taskBackoffRules, where),
  leaseDurationMs: unchecked,
  heartbeat: unchecked,
  maxRunMs: duration(1),
  keepForMs: duration(shortestKeepForMs),
  rate: (where, value) => checkOptions(value as TaskRate, rateRules, where, ["claims", "perMs"]),
  owner: label,
};

/** Validates a set's options. */
export function checkTaskSetOptions(
  options: TaskSetOptions,
  defaults: Pick<Core, "owner" | "times">,
): TaskSetTerms {
  const { times } = defaults;
  const given = checkOptions(options, setRules);
  const { maxAttempts = 3, maxRunMs, keepForMs = defaultKeepForMs } = given;
  const { heartbeat = true, leaseDurationMs = times.leaseDurationMs } = given;
  checkDuration("leaseDurationMs", leaseDurationMs, times.shortestLeaseMs);
  const { delayMs = defaultBackoffMs } = given.backoff ?? {};
  const { maxDelayMs = Math.max(delayMs, defaultMaxBackoffMs) } = given.backoff ?? {};
  checkDuration("backoff.maxDelayMs", maxDelayMs, delayMs);
  return {
    maxAttempts,
    backoff: { delayMs, maxDelayMs },
    leaseDurationMs,
    heartbeatMs: checkHeartbeat(heartbeat, leaseDurationMs),
    maxRunMs,
    keepForMs,
    rate: given.rate && { claims: given.rate.claims, perMs: given.rate.perMs },
    // Read for each claim: a clone of this process has another owner.
    get owner() {
      return given.owner ?? defaults.owner;
    },
  };
}

const ends: readonly unknown[] = ["drained", "idle", "never"] satisfies WorkerOptions["until"][];
type GivenWorkOptions = WorkerOptions & { readonly moreUrgent?: unknown };
const workRules: Rules<GivenWorkOptions> = {
  concurrency: countTo(1000),
  pauseMs: anyTime,
  pollMs: duration(1),
  until: rule("drained, idle or never", (value) => ends.includes(value)),
  moreUrgent: unchecked,
  signal: checkSignal,
};
type GivenProcessOptions = GivenWorkOptions & { readonly retryAfterMs?: number };
const processRules: Rules<GivenProcessOptions> = { ...workRules, retryAfterMs: anyTime };

/** Validates work options, but for the other sets. */
export function checkWorkOptions(options: GivenWorkOptions): WorkTerms {
  return withDefaults(checkOptions(options, workRules));
}

/** Validates the options of `process`, but for the other sets. */
export function checkProcessOptions(
  options: GivenProcessOptions,
): WorkTerms & { readonly retryAfterMs: number | undefined } {
  const given = checkOptions(options, processRules);
  return { ...withDefaults(given), retryAfterMs: given.retryAfterMs };
}

function withDefaults({ concurrency = 1, pauseMs = 0, pollMs = 1000, ...given }: WorkerOptions): WorkTerms {
  const { until = "drained", signal } = given;
  return { concurrency, pauseMs, pollMs, until, signal };
}

const failRules: Rules<FailOptions> = { retryAfterMs: anyTime, final: trueOrFalse };

/** Validates the options of `fail`. */
export function checkFailOptions(options: FailOptions): {
  readonly retryAfterMs: number | undefined;
  readonly final: boolean;
} {
  const { retryAfterMs, final = false } = checkOptions(options, failRules);
  const isAlone = !final || retryAfterMs === undefined;
  check(
    isAlone,
    "retryAfterMs",
    retryAfterMs,
    "no value together with final: a parked task has no next attempt",
  );
  return { retryAfterMs, final };
}

/** A task to be added, validated and complete. */
export interface TaskTerms {
  readonly id: string;
  /** JSON text; empty for no payload. */
  readonly payload: string;
  readonly maxAttempts: number;
  readonly delayMs: number;
  readonly serialKey: string | undefined;
}

const taskRules: Rules<TaskInput> = {
  id: text(taskLimits.idBytes),
  payload: unchecked,
  maxAttempts: attemptCount,
  delayMs: anyTime,
  serialKey: text(taskLimits.serialKeyBytes),
};

/** Validates tasks; the set's options are their defaults. */
export function checkTasks(tasks: readonly TaskInput[], defaults: TaskSetTerms): readonly TaskTerms[] {
  const listed = readable("tasks", tasks, () => {
    check(Array.isArray(tasks), "tasks", tasks, "an array of tasks");
    // A copy: a hole in the array counts as a missing task.
    return [...tasks];
  });
  const ids = new Set<string>();
  return listed.map((task, index) => {
    const where = `tasks[${index}]`;
    const given = checkOptions(task, taskRules, where, ["id"]);
    const { id, payload, maxAttempts = defaults.maxAttempts, delayMs = 0, serialKey } = given;
    check(!ids.has(id), `${where}.id`, id, "an id that no other task of this call has");
    ids.add(id);
    return { id, payload: checkPayload(where, payload), maxAttempts, delayMs, serialKey };
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

const requeueRules: Rules<RequeueOptions> = {
  ...traceRules,
  maxAttempts: attemptCount,
  delayMs: anyTime,
  reason: text(taskLimits.remarkBytes),
};
const requeueAllRules: Rules<RequeueAllOptions> = {
  ...requeueRules,
  state: rule("failed, parked or cancelled", (state) => isRequeueable(state as TaskState)),
  filter: aFunction,
  limit: countTo(Number.MAX_SAFE_INTEGER),
};

/** Validates the options of `requeue`. */
export function checkRequeueOptions(options: RequeueOptions): RequeueTerms {
  const { maxAttempts, delayMs = 0, by, reason } = checkOptions(options, requeueRules);
  return { maxAttempts, delayMs, by, reason };
}

/** The options of `requeue`, validated and complete. */
export interface RequeueTerms {
  /** Undefined: as many as before. */
  readonly maxAttempts: number | undefined;
  readonly delayMs: number;
  /** Undefined: no trace. */
  readonly by: string | undefined;
  readonly reason: string | undefined;
}

/** Validates the options of `requeueAll`. */
export function checkRequeueAllOptions(options: RequeueAllOptions): RequeueTerms & {
  readonly isSelected: (task: TaskRecord) => boolean;
  readonly limit: number;
} {
  const given = checkOptions(options, requeueAllRules);
  const { state, filter = () => true, limit = Number.POSITIVE_INFINITY } = given;
  const { maxAttempts, delayMs = 0, by, reason } = given;
  const states: readonly TaskState[] = state === undefined ? ["failed", "parked"] : [state];
  const isSelected = (task: TaskRecord): boolean => states.includes(task.state) && filter(task);
  return { maxAttempts, delayMs, by, reason, isSelected, limit };
}

/** Validates a remark; no remark is an empty text. */
export function checkRemark(remark: unknown): string {
  return remark === undefined || remark === "" ? "" : checkText("remark", remark, taskLimits.remarkBytes);
}

/** Turns a thrown value into a remark, cut to the length of a remark. */
export function remarkOf(thrown: unknown): string {
  try {
    const text = String((thrown instanceof Error && thrown.message) || thrown);
    // A third of the bytes: no character takes more than three for each of its UTF-16 units.
    const cut = utf8Bytes(text) <= taskLimits.remarkBytes ? text : text.slice(0, taskLimits.remarkBytes / 3);
    return cut.toWellFormed();
  } catch {
    // Ignored: any value can be thrown, and one that has no text must not end the worker.
    return "an error that could not be described";
  }
}

const listRules: Rules<{ readonly state?: TaskState }> = {
  state: rule(taskStates.join(", "), (state) => taskStates.includes(state as TaskState)),
};

/** Validates the options of a list, and gives the state of its tasks. */
export function checkListOptions(options: { readonly state?: TaskState }): TaskState | undefined {
  return checkOptions(options, listRules).state;
}
