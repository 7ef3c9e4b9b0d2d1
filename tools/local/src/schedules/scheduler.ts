// EventBridge Scheduler on the injected clock: when a schedule fires, and what its target gets.

import { type Clock, systemClock } from "@leasehold/client";
import { parseScheduleExpression, type ScheduleTimes } from "@leasehold/jobs";
import type { ScheduleSpec } from "../assembly/types.ts";

/** One delivery of a schedule, with its context attributes. */
interface DeliveryContext {
  readonly scheduledTime: Date;
  readonly executionId: string;
}

/** A time as the scheduler writes it: whole seconds, in UTC. */
function scheduledTimeText(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, "Z");
}

/** The target's input with the context attributes filled in; the scheduler's own event where none is given. */
function targetInput(spec: ScheduleSpec, context: DeliveryContext): string {
  if (spec.input === undefined) return JSON.stringify(defaultEvent(spec, context));
  const attributes: Readonly<Record<string, string>> = {
    "scheduled-time": scheduledTimeText(context.scheduledTime),
    "execution-id": context.executionId,
    "attempt-number": "1",
    "schedule-arn": spec.arn,
  };
  return spec.input.replace(
    /<aws\.scheduler\.([a-z-]+)>/g,
    (match, name: string) => attributes[name] ?? match,
  );
}

function defaultEvent(spec: ScheduleSpec, { scheduledTime, executionId }: DeliveryContext): object {
  const [, , , region, account] = spec.arn.split(":");
  return {
    version: "0",
    id: executionId,
    "detail-type": "Scheduled Event",
    source: "aws.scheduler",
    account,
    time: scheduledTimeText(scheduledTime),
    region,
    resources: [spec.arn],
    detail: "{}",
  };
}

/** What became of a schedule's time. */
export interface ScheduleEvent {
  /** `fired`: the target took it. `refused`: it did not, and is not asked again. */
  readonly type: "fired" | "refused";
  readonly schedule: ScheduleSpec;
  readonly scheduledTime: Date;
  readonly executionId: string;
  /** By how much it was later than scheduled, in milliseconds; 0 for one that was fired at will. */
  readonly lateMs: number;
  readonly error?: unknown;
}

/** One firing, as it was sent to the target. */
export interface Fired {
  readonly scheduledTime: Date;
  readonly executionId: string;
  /** The text that the target got. */
  readonly input: string;
}

/** What a scheduler works with. */
interface SchedulerOptions {
  /** Hands the input to a target; rejects when the target does not take it. */
  readonly send: (targetArn: string, input: string) => Promise<void>;
  readonly onEvent?: (event: ScheduleEvent) => void;
  /** @default - the machine's own */
  readonly clock?: Clock;
}

interface Entry {
  readonly spec: ScheduleSpec;
  readonly times: ScheduleTimes;
  cancel: () => void;
}

/** The wall clock may be set, and a timer does not notice: it looks again at least this often. */
const longestSleepMs = 60_000;

/**
 * Fires schedules at their times, as EventBridge Scheduler does.
 *
 * A time that was missed, because the machine slept, is fired once, late, with its own scheduled time; of several
 * that were missed it is the first, and the schedule goes on from now. A rate without a start date fires at once.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #clock: Clock;
  readonly #entries: Entry[] = [];
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Adds a schedule, before start().
   *
   * Throws InvalidScheduleError for an expression or a time zone that AWS would refuse.
   */
  add(spec: ScheduleSpec): void {
    const now = Math.floor(this.#clock.now() / 1000) * 1000;
    const times = parseScheduleExpression(spec.expression, {
      timeZone: spec.timeZone,
      start: new Date(now),
    });
    this.#entries.push({ spec, times, cancel: () => {} });
  }

  /** Begins to fire. */
  start(): void {
    const after = Math.floor(this.#clock.now() / 1000) * 1000 - 1;
    for (const entry of this.#entries) this.#arm(entry, after);
  }

  /**
   * Fires a schedule now, whatever its state. Resolves when the target has taken it.
   *
   * Rejects with the target's error.
   */
  async fire(spec: ScheduleSpec, options: { readonly scheduledTime?: Date } = {}): Promise<Fired> {
    const scheduledTime = options.scheduledTime ?? new Date(Math.floor(this.#clock.now() / 1000) * 1000);
    return this.#track(this.#deliver(spec, scheduledTime, options.scheduledTime !== undefined));
  }

  /** Ends it: nothing fires any more. Resolves when nothing is under way. */
  async stop(): Promise<void> {
    for (const entry of this.#entries) entry.cancel();
    // Ignored: each that fails was reported as an event.
    await Promise.allSettled(this.#underWay);
  }

  #arm(entry: Entry, afterMs: number): void {
    const next = entry.spec.enabled ? entry.times.next(new Date(afterMs)) : undefined;
    if (next !== undefined) this.#wait(entry, next);
  }

  #wait(entry: Entry, due: Date): void {
    const delayMs = Math.min(Math.max(0, due.getTime() - this.#clock.now()), longestSleepMs);
    entry.cancel = this.#clock.schedule(
      () => {
        if (this.#clock.now() < due.getTime()) {
          this.#wait(entry, due);
          return;
        }
        // Ignored: it was reported as an event.
        this.#track(this.#deliver(entry.spec, due, false)).catch(() => {});
        this.#arm(entry, this.#clock.now());
      },
      delayMs,
      { background: true },
    );
  }

  async #deliver(spec: ScheduleSpec, scheduledTime: Date, atWill: boolean): Promise<Fired> {
    const executionId = crypto.randomUUID();
    const input = targetInput(spec, { scheduledTime, executionId });
    const lateMs = atWill ? 0 : Math.max(0, this.#clock.now() - scheduledTime.getTime());
    const event = { schedule: spec, scheduledTime, executionId, lateMs };
    try {
      await this.#options.send(spec.targetArn, input);
      this.#options.onEvent?.({ type: "fired", ...event });
      return { scheduledTime, executionId, input };
    } catch (error) {
      this.#options.onEvent?.({ type: "refused", ...event, error });
      throw error;
    }
  }

  #track<Result>(work: Promise<Result>): Promise<Result> {
    this.#underWay.add(work);
    const forget = (): void => {
      this.#underWay.delete(work);
    };
    // Ignored: what fails is for its own caller.
    work.then(forget, forget);
    return work;
  }
}
