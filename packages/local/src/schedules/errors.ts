/** A schedule's expression, time zone or time is not one that EventBridge Scheduler takes. */
export class InvalidScheduleError extends Error {
  /** The expression, as it was given. */
  readonly expression: string;

  constructor(expression: string, problem: string) {
    super(`${JSON.stringify(expression)} is not a schedule: ${problem}`);
    this.name = "InvalidScheduleError";
    this.expression = expression;
  }
}
