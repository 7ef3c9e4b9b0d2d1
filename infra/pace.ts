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
  ticketSilence: Duration.minutes(1),
  cleaning: Duration.minutes(5),
};

/** As `npm start` runs it. */
export const demonstrationPace: Pace = {
  ...deployedPace,
  tickLease: Duration.millis(2_500),
  workflowLease: Duration.seconds(3),
  betweenChunks: Duration.seconds(2),
  taskClaim: Duration.seconds(8),
  ticketSilence: Duration.seconds(5),
};
