import { Duration } from "aws-cdk-lib";

/** A span of time cut into periods that CloudWatch can evaluate. */
export interface AlarmWindow {
  readonly period: Duration;
  readonly evaluationPeriods: number;
}

/**
 * The longest span that an alarm can look back on: 7 days. (A period below an hour allows a day only; these windows
 * have several periods just when they are longer than a day, and then none below 12 hours.)
 */
export const longestAlarmWindow: Duration = Duration.days(7);

const minute = 60;
const day = 24 * 60 * minute;

/** Cuts a span into as few periods of at most a day as will do, each a whole number of minutes. */
export function alarmWindow(span: Duration): AlarmWindow {
  const seconds = span.toSeconds({ integral: false });
  const evaluationPeriods = Math.max(1, Math.ceil(seconds / day));
  const period = Math.max(1, Math.ceil(seconds / evaluationPeriods / minute)) * minute;
  return { period: Duration.seconds(period), evaluationPeriods };
}
