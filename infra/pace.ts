import { Duration } from "aws-cdk-lib";

/** How fast the app's jobs go. A demonstration lives through in seconds what takes hours in earnest. */
export interface Pace {
  /** How often unpaid orders are closed. */
  readonly tick: Duration;
  /** How long a run of that job keeps the lock without renewing it. */
  readonly tickLease: Duration;
  /** How long a workflow keeps its lock after its keeper has died. */
  readonly workflowLease: Duration;
  /** How long the import pauses between two chunks, out of regard for whoever delivers them. */
  readonly betweenChunks: Duration;
  /** How long a worker keeps a task without renewing its claim. */
  readonly taskClaim: Duration;
  /** How long a task waits at most after its first failed attempt. */
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

/** As `npm start` runs it. A slow machine stretches what has to be kept up with; workflows count in whole seconds. */
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

/** As it runs where nothing has to be stretched. */
export const demonstrationPace: Pace = demonstrationPaceAt(1);
