import { Duration } from "aws-cdk-lib";
import {
  Alarm,
  type CfnAlarm,
  ComparisonOperator,
  type IAlarmAction,
  type IMetric,
  MathExpression,
  Metric,
  Stats,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import type { Construct } from "constructs";
import {
  aDuration,
  alarmActions,
  aMetric,
  aNumber,
  aPositiveNumber,
  aQueue,
  aText,
  checkProps,
  type Kind,
  type Kinds,
} from "../prop-kinds.ts";
import { checkKnown } from "../workflow/durations.ts";

/** The text of an alarm, and its actions. */
export interface AlarmText {
  /** The actions of the alarm. @default - none */
  readonly actions?: IAlarmAction[];
  /** What is wrong, and where to read on. */
  readonly description: string;
}

/** Metrics by a name for each, which begins with a small letter; at most 10. */
export type NamedMetrics = Readonly<Record<string, IMetric>>;

const textKinds: Kinds<AlarmText> = { actions: alarmActions, description: aText };

/** The kind of named metrics. */
export const namedMetrics: Kind = {
  name: "an object of metrics by their names",
  accepts: (value) =>
    typeof value === "object" &&
    value !== null &&
    Object.entries(value).every(([name, metric]) => /^[a-z]\w*$/.test(name) && aMetric.accepts(metric)),
};

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

const fiveMinutes = Duration.minutes(5);

/**
 * An alarm on an event that must never happen: one measurement of any metric reaches the threshold.
 *
 * Of several metrics, the sum of a period of 5 minutes counts. A period without data counts as 0. It looks back 15
 * minutes, so that it counts a measurement up to 10 minutes late, and ends some 15 minutes after the last one.
 *
 * ```ts
 * alarmOnEvent(stack, "WorkerFailed", {
 *   description: "The worker failed.",
 *   metrics: { errors: worker.metricErrors() },
 *   actions: [new SnsAction(oncall)],
 * });
 * ```
 */
export function alarmOnEvent(
  scope: Construct,
  id: string,
  terms: AlarmText & {
    readonly metrics: NamedMetrics;
    /** The threshold, in the metrics' unit; above 0. @default 1 */
    readonly threshold?: number;
  },
): Alarm {
  const kinds = { ...textKinds, metrics: namedMetrics, threshold: aPositiveNumber };
  const { metrics, threshold = 1, ...text } = checkProps(terms, kinds, "description", "metrics");
  return define(scope, id, {
    ...text,
    metric: filledTotal(metrics),
    window: { period: fiveMinutes, evaluationPeriods: 3 },
    datapointsToAlarm: 1,
    threshold,
    treatMissingData: TreatMissingData.NOT_BREACHING,
  });
}

/**
 * An alarm on a condition that may occur but must not last: in 3 of the last 5 periods of 5 minutes, the metric has
 * reached the threshold. A period without data counts as 0; an expression has to ensure that itself.
 */
export function alarmOnLasting(
  scope: Construct,
  id: string,
  terms: AlarmText & { readonly metric: IMetric; readonly threshold: number },
): Alarm {
  const kinds = { ...textKinds, metric: aMetric, threshold: aNumber };
  const { metric, threshold, ...text } = checkProps(terms, kinds, "description", "metric", "threshold");
  return define(scope, id, {
    ...text,
    metric: metric instanceof MathExpression ? metric : filledTotal({ metric }),
    window: { period: fiveMinutes, evaluationPeriods: 5 },
    datapointsToAlarm: 3,
    threshold,
    treatMissingData: TreatMissingData.NOT_BREACHING,
  });
}

/** An event that has to happen again and again. */
export interface SilenceTerms extends AlarmText {
  /** The metrics that count it. */
  readonly metrics: NamedMetrics;
  /** Metrics that are subtracted, such as failures. @default - none */
  readonly less?: NamedMetrics;
  /** How long the event may stay away; at most 6 days. */
  readonly longest: Duration;
}

/**
 * An alarm on an event that has to happen again and again: no metric has counted it for too long.
 *
 * It waits 5 minutes, and up to a fifth of the time more, for late measurements. After its creation the alarm waits as
 * long as it looks back, but at most 2 days. A rarer event is reported once, until it has happened for the first time.
 * Throws when `longest` is more than 6 days.
 *
 * ```ts
 * alarmOnSilence(stack, "WorkerStalled", {
 *   description: "The worker has not run without an error for an hour.",
 *   metrics: { invocations: worker.metricInvocations() },
 *   less: { errors: worker.metricErrors() },
 *   longest: Duration.hours(1),
 * });
 * ```
 */
export function alarmOnSilence(scope: Construct, id: string, terms: SilenceTerms): Alarm {
  const kinds = { ...textKinds, metrics: namedMetrics, less: namedMetrics, longest: aDuration };
  const {
    metrics,
    less = {},
    longest,
    ...text
  } = checkProps(terms, kinds, "description", "metrics", "longest");
  checkKnown("longest", longest, "the alarm's periods are worked out from it");
  if (longest.toSeconds() > longestSilence.toSeconds()) {
    throw new Error(
      `longest is ${longest.toHumanString()}, but an alarm can watch for ${longestSilence.toHumanString()} of silence ` +
        "at most: shorten it, or watch what happens so rarely by its failures",
    );
  }
  const window = fineWindow(longest.plus(metricDelay));
  const alarm = define(scope, id, {
    ...text,
    metric: filledTotal(metrics, less),
    window,
    datapointsToAlarm: window.evaluationPeriods,
    threshold: 1,
    comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
    // A function that does not run writes nothing, and a metric may never have been written.
    treatMissingData: TreatMissingData.BREACHING,
  });
  const lookBack = window.period.toMinutes() * window.evaluationPeriods;
  // By its CloudFormation name, because older versions of the library have no member for it.
  (alarm.node.defaultChild as CfnAlarm).addPropertyOverride("WarmUpConfiguration", {
    WarmUpPeriodDurationInMinutes: Math.min(lookBack, Duration.days(2).toMinutes()),
    // Filled periods are data to CloudWatch: otherwise it would not wait.
    OnlyStartEvaluatingAfterWarmUpPeriodEnds: true,
  });
  return alarm;
}

/**
 * An alarm on messages in a queue that should be empty; it lasts until the queue is empty.
 *
 * SQS stops measuring a queue that was not used for some hours. The alarm then stays as it is, so that a message is
 * not forgotten. A queue that was never used has no data.
 */
export function alarmOnBacklog(
  scope: Construct,
  id: string,
  terms: AlarmText & { readonly queue: IQueue },
): Alarm {
  const { queue, ...text } = checkProps(terms, { ...textKinds, queue: aQueue }, "description", "queue");
  return define(scope, id, {
    ...text,
    metric: queue.metricApproximateNumberOfMessagesVisible({ statistic: Stats.MAXIMUM }),
    window: { period: fiveMinutes, evaluationPeriods: 1 },
    datapointsToAlarm: 1,
    threshold: 1,
    treatMissingData: TreatMissingData.IGNORE,
  });
}

/** A span of time cut into periods that CloudWatch can evaluate. */
interface AlarmWindow {
  readonly period: Duration;
  readonly evaluationPeriods: number;
}

/** The terms by which an alarm decides. */
export interface AlarmTerms extends AlarmText {
  readonly metric: IMetric;
  readonly window: AlarmWindow;
  readonly datapointsToAlarm: number;
  readonly threshold: number;
  /** @default - the threshold is reached */
  readonly comparisonOperator?: ComparisonOperator;
  readonly treatMissingData: TreatMissingData;
}

/** Defines an alarm by its terms. */
export function define(scope: Construct, id: string, terms: AlarmTerms): Alarm {
  const { actions = [], description, metric, window, comparisonOperator, ...rest } = terms;
  const alarm = new Alarm(scope, id, {
    ...rest,
    alarmDescription: description,
    metric: every(metric, window.period),
    evaluationPeriods: window.evaluationPeriods,
    comparisonOperator: comparisonOperator ?? ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
  });
  alarm.addAlarmAction(...actions);
  return alarm;
}

/**
 * Adds metrics up; a metric without data counts as 0.
 *
 * Without gaps an alarm decides by its last periods. With gaps it would look further back, and CloudWatch does not say
 * how far.
 */
function filledTotal(metrics: NamedMetrics, less: NamedMetrics = {}): IMetric {
  const names = Object.keys(metrics);
  const terms = [
    ...names.map((name) => `FILL(${name}, 0)`),
    ...Object.keys(less).map((name) => `FILL(${name}, 0) * -1`),
  ];
  return new MathExpression({
    expression: `SUM([${terms.join(", ")}])`,
    usingMetrics: { ...metrics, ...less },
    label: names.join(" or "),
  });
}

function every(metric: IMetric, period: Duration): IMetric {
  return metric instanceof Metric || metric instanceof MathExpression ? metric.with({ period }) : metric;
}

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
function fineWindow(span: Duration): AlarmWindow {
  const seconds = span.toSeconds({ integral: false });
  const period = wholeMinutes(seconds / 10);
  return { period, evaluationPeriods: Math.ceil(seconds / period.toSeconds()) + 1 };
}

function wholeMinutes(seconds: number): Duration {
  return Duration.seconds(Math.max(1, Math.ceil(seconds / minute)) * minute);
}
