import { brandClass, LeaseError } from "@leasehold/client/internal";

/** EventBridge Scheduler does not accept this expression, time zone or time. */
export class InvalidScheduleError extends LeaseError {
  static {
    brandClass(InvalidScheduleError, "InvalidScheduleError");
  }
  /** The expression, as it was given. */
  declare readonly expression: string;
  /** What is wrong with it, and what is allowed. */
  declare readonly problem: string;

  constructor(expression: string, problem: string) {
    super("INVALID_SCHEDULE", `${JSON.stringify(expression)} is not a schedule: ${problem}`, {
      expression,
      problem,
    });
  }
}
