import type { LambdaEvent, LambdaLogLine } from "../lambda/types.ts";
import type { ScheduleEvent } from "../schedules/scheduler.ts";
import type { BusEvent } from "../services/event-bus.ts";
import type { StateMachineEvent } from "../state-machines/events.ts";
import type { FailedBatch } from "../streams/delivery.ts";
import type { Metric } from "./embedded-metrics.ts";

/** What happens in a local app, for a display or a log. */
export type LocalAppEvent =
  /** A line that a function printed; one of embedded metrics comes as `metric` instead. */
  | { readonly type: "log"; readonly log: LambdaLogLine }
  | { readonly type: "metric"; readonly functionName: string; readonly metric: Metric }
  /** Something happened to a function's process. */
  | { readonly type: "environment"; readonly environment: LambdaEvent }
  | { readonly type: "execution"; readonly execution: StateMachineEvent }
  | { readonly type: "schedule"; readonly schedule: ScheduleEvent }
  /** A function took records of a table's stream, or failed to. */
  | {
      readonly type: "stream";
      readonly tableName: string;
      readonly functionName: string;
      readonly records: number;
      readonly failed: boolean;
    }
  /** Records were given up. */
  | {
      readonly type: "streamFailure";
      readonly tableName: string;
      readonly functionName: string;
      readonly batch: FailedBatch;
    }
  | { readonly type: "event"; readonly event: BusEvent }
  /** Something between the parts went wrong; the app goes on. */
  | { readonly type: "error"; readonly where: string; readonly error: unknown };

/** Takes the events of an app. */
export type LocalAppListener = (event: LocalAppEvent) => void;
