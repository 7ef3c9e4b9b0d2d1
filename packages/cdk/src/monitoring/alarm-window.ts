import { Duration } from "aws-cdk-lib";

/** A span of time cut into periods that CloudWatch can evaluate. */
export interface AlarmWindow {
  readonly period: Duration;
  readonly evaluationPeriods: number;
}

/**
 * How late a measurement may be. Those of log lines come with the log, when CloudWatch has read it.
 *
 * An alarm that has not waited for this long cannot tell "nothing happened" from "nothing has arrived yet".
 */
export const metricDelay: Duration = Duration.minutes(5);

/** The longest span that an alarm can look back on. One with periods below an hour looks back on a day at most. */
export const longestAlarmWindow: Duration = Duration.days(7);

/**
 * The longest silence that an alarm can watch for: the longest window, less the time for late metrics and whole
 * periods.
 */
export const longestSilence: Duration = Duration.days(6);

const minute = 60;
const day = 24 * 60 * minute;

/** Cuts a span into as few periods of at most a day as will do, each a whole number of minutes. */
export function alarmWindow(span: Duration): AlarmWindow {
  const seconds = span.toSeconds({ integral: false });
  const evaluationPeriods = Math.max(1, Math.ceil(seconds / day));
  return { period: wholeMinutes(seconds / evaluationPeriods), evaluationPeriods };
}

/**
 * Cuts a span into about ten periods, and one more: whether periods end now or at full hours, those before the last
 * cover the span.
 */
export function fineWindow(span: Duration): AlarmWindow {
  const seconds = span.toSeconds({ integral: false });
  const period = wholeMinutes(seconds / 10);
  return { period, evaluationPeriods: Math.ceil(seconds / period.toSeconds()) + 1 };
}

function wholeMinutes(seconds: number): Duration {
  return Duration.seconds(Math.max(1, Math.ceil(seconds / minute)) * minute);
}
