import { Duration } from "aws-cdk-lib";

/** How fast the app's jobs go. A demonstration takes seconds for what takes hours on AWS. */
export interface Pace {
  /** How often unpaid orders are closed. */
  readonly tick: Duration;
  /** How long a run of that job holds the lock without renewing it. */
  readonly tickLease: Duration;
  /** How long a workflow holds its lock after its keeper has died. */
  readonly workflowLease: Duration;
  /** How long the import pauses between two chunks, so that it does not overload the source. */
  readonly betweenChunks: Duration;
  /** How long a worker holds a task without renewing its claim. */
  readonly taskClaim: Duration;
  /** The longest wait of a task after its first failed attempt. */
  readonly taskBackoff: Duration;
  /** How often workers are started for sets that have tasks. */
  readonly taskRestart: Duration;
  /** How long a ticket may be silent before it counts as gone. */
  readonly ticketSilence: Duration;
  /** How often desks are cleaned. */
  readonly cleaning: Duration;
}

/** As it is deployed. */
export const deployedPace: Pace = {
  tick: Duration.minutes(1),
  tickLease: Duration.seconds(45),
  workflowLease: Duration.minutes(3),
  betweenChunks: Duration.seconds(10),
  taskClaim: Duration.seconds(30),
  taskBackoff: Duration.seconds(10),
  taskRestart: Duration.minutes(1),
  ticketSilence: Duration.minutes(1),
  cleaning: Duration.minutes(5),
};

/**
 * The pace of `npm start`. A slow machine stretches the times that processes have to keep; workflows count in whole
 * seconds.
 */
export function demonstrationPaceAt(stretch: number): Pace {
  const millis = (planned: number): Duration => Duration.millis(Math.ceil(planned * stretch));
  const seconds = (planned: number): Duration => Duration.seconds(Math.ceil(planned * stretch));
  return {
    ...deployedPace,
    tickLease: millis(2_500),
    workflowLease: seconds(3),
    betweenChunks: seconds(2),
    taskClaim: millis(8_000),
    taskBackoff: millis(200),
    ticketSilence: millis(5_000),
  };
}
