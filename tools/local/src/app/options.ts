import type { Clock } from "@leasehold/client";
import type { Engine } from "@leasehold/engine";
import type { LocalAppListener } from "./events.ts";

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
  /** Whether schedules fire by themselves; `fire` and `resumeSchedules` work either way. @default true */
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
