import { Duration } from "aws-cdk-lib";

/** A span of time cut into periods that CloudWatch can evaluate. */
export interface AlarmWindow {
  readonly period: Duration;
  readonly evaluationPeriods: number;
}

/**
 * How late a measurement may be. Measurements in log lines arrive when CloudWatch has read the log.
 *
 * Before this time an alarm cannot distinguish "nothing happened" from "nothing has arrived yet".
 */
export const metricDelay: Duration = Duration.minutes(5);

/** The longest span that an alarm can look back. With periods below an hour it looks back at most a day. */
export const longestAlarmWindow: Duration = Duration.days(7);

/**
 * The longest silence that an alarm can watch for: the longest window, less the time for late metrics and whole
 * periods.
 */
export const longestSilence: Duration = Duration.days(6);

const minute = 60;
const day = 24 * 60 * minute;

/** Cuts a span into as few periods of at most a day as possible, each a whole number of minutes. */
export function alarmWindow(span: Duration): AlarmWindow {
  const seconds = span.toSeconds({ integral: false });
  const evaluationPeriods = Math.max(1, Math.ceil(seconds / day));
  return { period: wholeMinutes(seconds / evaluationPeriods), evaluationPeriods };
}

/**
 * Cuts a span into about ten periods, plus one more: whether periods end now or at full hours, the periods before the
 * last one cover the span.
 */
export function fineWindow(span: Duration): AlarmWindow {
  const seconds = span.toSeconds({ integral: false });
  const period = wholeMinutes(seconds / 10);
  return { period, evaluationPeriods: Math.ceil(seconds / period.toSeconds()) + 1 };
}

function wholeMinutes(seconds: number): Duration {
  return Duration.seconds(Math.max(1, Math.ceil(seconds / minute)) * minute);
}
