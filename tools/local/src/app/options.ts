import type { Clock } from "@leasehold/client";
import type { Engine } from "@leasehold/engine";
import type { LambdaEvent, LambdaLogLine } from "../lambda/types.ts";
import type { ScheduleEvent } from "../schedules/scheduler.ts";
import type { BusEvent } from "../services/event-bus.ts";
import type { StateMachineEvent } from "../state-machines/events.ts";
import type { FailedBatch } from "../streams/delivery.ts";

/** What startApp takes. */
export interface LocalAppOptions {
  /** The directory of the cloud assembly, such as `cdk.out`. */
  readonly assemblyDir: string;
  /** Where the tables are created. The app neither starts nor stops it. */
  readonly engine: Engine;
  /**
   * Times the schedules and the state machines. Functions and streams have the machine's own.
   *
   * @default - the machine's own
   */
  readonly clock?: Clock;
  /** Whether schedules fire by themselves; `fire` works either way. @default true */
  readonly schedules?: boolean;
  /** Variables for every function; they win over the template's. @default - none */
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * Added to the name of every table. Tables with a suffix are deleted at the end.
   *
   * @default - a random one on an endpoint from DYNAMODB_ENDPOINT; none on an engine that startEngine() started
   */
  readonly tableSuffix?: string;
  /** The wait before the first retry of a failed stream batch, in milliseconds. @default 1000 */
  readonly streamRetryDelayMs?: number;
  /**
   * The wait before the first retry of a failed asynchronous invocation, in milliseconds; the second waits twice as
   * long. @default 60000, as on Lambda
   */
  readonly asyncRetryDelayMs?: number;
  /** Takes what happens in the app. What it throws is thrown again at the next tick. @default - dropped */
  readonly onEvent?: LocalAppListener;
}

/** A message in a queue. */
export interface QueueMessage {
  readonly body: string;
}

/** A measurement that a function logged in CloudWatch's embedded metric format. */
export interface Metric {
  readonly namespace: string;
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Every dimension of every set. */
  readonly dimensions: Readonly<Record<string, string>>;
  /** Epoch milliseconds. */
  readonly timestamp: number;
}

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
