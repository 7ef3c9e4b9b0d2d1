import type { Engine } from "@leasehold/engine";
import type { LambdaEvent, LambdaLogLine } from "../lambda/types.ts";
import type { StateMachineEvent } from "../state-machines/events.ts";

/** What startApp takes. */
export interface LocalAppOptions {
  /** The directory of the cloud assembly, such as `cdk.out`. */
  readonly assemblyDir: string;
  /** Where the tables are created. The app neither starts nor stops it. */
  readonly engine: Engine;
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
  /** Every dimension of every set. */
  readonly dimensions: Readonly<Record<string, string>>;
}

/** What happens in a local app, for a display or a log. */
export type LocalAppEvent =
  /** A line that a function printed; one of embedded metrics comes as `metric` instead. */
  | { readonly type: "log"; readonly log: LambdaLogLine }
  | { readonly type: "metric"; readonly functionName: string; readonly metric: Metric }
  /** Something happened to a function's process. */
  | { readonly type: "environment"; readonly environment: LambdaEvent }
  | { readonly type: "execution"; readonly execution: StateMachineEvent }
  /** Something between the parts went wrong; the app goes on. */
  | { readonly type: "error"; readonly where: string; readonly error: unknown };

/** Takes the events of an app. */
export type LocalAppListener = (event: LocalAppEvent) => void;
