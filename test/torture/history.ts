/**
 * The history of a run: what every process called and was told, and when it knew that it held something.
 *
 * Times are microseconds of the machine's monotonic clock, which all its processes share. A journal has one entry a line, so
 * that a process that is killed leaves everything but the line that it was writing.
 */

/** What is tortured, one name for each workload. */
export const primitives = [
  "lock",
  "shared",
  "operated",
  "fair",
  "semaphore",
  "readWrite",
  "group",
  "leader",
  "runs",
  "tasks",
  "singleFlight",
] as const;
export type Primitive = (typeof primitives)[number];
/** What an operation belongs to: a primitive, or a register that a lock protects. */
export type Subject = Primitive | "register";

/**
 * - `ok`: it took effect.
 * - `refused`: it took no effect, and never will.
 * - `unknown`: it may have taken effect, or may still do so.
 */
export type Outcome = "ok" | "refused" | "unknown";

/** What is known of an operation beside its interval: its arguments, and then its results. */
export type Details = Readonly<Record<string, string | number | boolean>>;

/** In which way something is held: it says what may be held beside it. */
export type HoldKind = "exclusive" | "permit" | "read" | "write";

/** A line of a journal. `id` is the call's, or the hold's; it is unique in its process. */
export type Entry =
  | {
      readonly type: "call";
      readonly at: number;
      readonly id: number;
      readonly subject: Subject;
      readonly action: string;
      readonly key: string;
      readonly details?: Details;
    }
  | {
      readonly type: "answer";
      readonly at: number;
      readonly id: number;
      readonly outcome: Outcome;
      readonly details?: Details;
    }
  | { readonly type: "joined"; readonly at: number; readonly id: number }
  | ({ readonly type: "hold"; readonly at: number; readonly id: number } & HoldTerms)
  /** `held` was true when it was asked after `at`. */
  | { readonly type: "held"; readonly at: number; readonly id: number }
  /** `held` was false before `at`. */
  | { readonly type: "lost"; readonly at: number; readonly id: number }
  /** Something happened to a process, or to all of them. */
  | {
      readonly type: "event";
      readonly at: number;
      readonly event: EventName;
      /** The process that it befell; the supervisor writes of others. */
      readonly process?: string;
      readonly details?: Details;
    };

export type EventName =
  | "start"
  | "kill"
  | "freeze"
  | "thaw"
  /** Some or all of its requests meet faults from now on, until it is "fair" again. */
  | "foul"
  | "fair"
  | "exit"
  | "calm"
  | "finish"
  | "close"
  | "mistake";

/** What a process was granted. */
export interface HoldTerms {
  readonly primitive: Primitive;
  readonly key: string;
  readonly kind: HoldKind;
  readonly fencingToken: number;
  /** When its caller asked for it. */
  readonly since: number;
  /** How many permits it takes; 1 for everything else. */
  readonly permits: number;
  /** The number of the attempt, for a slot or a task; 0 for everything else. */
  readonly attempt: number;
  /** For how long it lasts in milliseconds, where nothing renews it; absent where something may. */
  readonly leaseMs?: number;
  /** Whether its process may have several handles of the lease, under one fencing token; absent for no. */
  readonly isShared?: true;
  /** For how long the lock stays closed after its grant, in milliseconds; absent for not at all. */
  readonly cooldownMs?: number;
}

/** One call of one process. */
export interface Operation {
  readonly process: string;
  readonly id: number;
  readonly subject: Subject;
  readonly action: string;
  readonly key: string;
  readonly from: number;
  /** Undefined where no answer came before the process was gone: then the outcome is unknown. */
  readonly to: number | undefined;
  readonly outcome: Outcome;
  /** When the caller heard that it stands in line; undefined where it never did. */
  readonly joinedAt: number | undefined;
  /** When the caller last heard that it stands in line. */
  readonly inLineUntil: number | undefined;
  readonly details: Details;
}

/**
 * Something that a process held, for certain, from one moment to another.
 *
 * What a process believes is what `held` tells it, and that never becomes true again once it was false. So the lease was
 * held at each moment between its grant and the clock reading before the last time that `held` was true. Whether a process
 * was frozen in between does not matter: it asked after it had read the clock.
 */
export interface Hold extends HoldTerms {
  readonly process: string;
  readonly id: number;
  readonly from: number;
  /** Undefined where `held` was never true. */
  readonly until: number | undefined;
  /** When `held` was first seen to be false; undefined where it never was. */
  readonly lostAt: number | undefined;
}

/** What happened to a process. */
export interface ProcessEvent {
  readonly process: string;
  readonly at: number;
  readonly event: EventName;
  readonly details: Details;
}

/** A whole run, each part in the order of time. */
export interface History {
  readonly operations: readonly Operation[];
  readonly holds: readonly Hold[];
  readonly events: readonly ProcessEvent[];
}

/** The machine's monotonic clock, in microseconds. */
export function microseconds(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

/** Puts the journals of a run together; `journals` has each process's lines by its name. */
export function historyOf(journals: ReadonlyMap<string, string>): History {
  const operations: Operation[] = [];
  const holds: Hold[] = [];
  const events: ProcessEvent[] = [];
  for (const [process, lines] of journals) {
    const calls = new Map<number, Operation>();
    const granted = new Map<number, Hold>();
    for (const entry of entriesIn(lines)) {
      const { at } = entry;
      switch (entry.type) {
        case "call": {
          const { type: _, at: from, details = {}, ...call } = entry;
          const open = {
            to: undefined,
            outcome: "unknown",
            joinedAt: undefined,
            inLineUntil: undefined,
          } as const;
          calls.set(entry.id, { ...call, ...open, process, from, details });
          break;
        }
        case "answer": {
          const { outcome } = entry;
          change(calls, entry.id, ({ details }) => ({
            to: at,
            outcome,
            details: { ...details, ...entry.details },
          }));
          break;
        }
        case "joined":
          change(calls, entry.id, ({ joinedAt = at }) => ({ joinedAt, inLineUntil: at }));
          break;
        case "hold": {
          const { type: _, at: from, ...terms } = entry;
          granted.set(entry.id, { ...terms, process, from, until: undefined, lostAt: undefined });
          break;
        }
        case "held":
          change(granted, entry.id, () => ({ until: at }));
          break;
        case "lost":
          change(granted, entry.id, ({ lostAt = at }) => ({ lostAt }));
          break;
        case "event":
          events.push({
            process: entry.process ?? process,
            at,
            event: entry.event,
            details: entry.details ?? {},
          });
      }
    }
    operations.push(...calls.values());
    holds.push(...granted.values());
  }
  operations.sort((one, other) => one.from - other.from);
  holds.sort((one, other) => one.from - other.from);
  events.sort((one, other) => one.at - other.at);
  return { operations, holds, events };
}

function change<Each>(all: Map<number, Each>, id: number, parts: (before: Each) => Partial<Each>): void {
  const before = all.get(id);
  if (before !== undefined) all.set(id, { ...before, ...parts(before) });
}

/** The entries of a journal. What follows the last line break was cut off by a kill. */
function entriesIn(lines: string): Entry[] {
  return lines
    .slice(0, lines.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Entry);
}
