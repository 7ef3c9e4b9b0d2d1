import { withStandIns } from "./cloudformation.ts";

type Properties = Readonly<Record<string, unknown>>;

/** Names a metric by its namespace, name and dimensions; references of a template stand for themselves. */
export function metricId(
  namespace: string,
  name: string,
  dimensions: Readonly<Record<string, string>>,
): string {
  const sorted = Object.entries(dimensions).sort(([one], [other]) => (one < other ? -1 : 1));
  return [namespace, name, ...sorted.map((pair) => pair.join("="))].join(" ");
}

/** The metrics that an alarm of a template looks at, as {@link metricId} names them. */
export function metricsOf(alarm: Properties): string[] {
  return measured(alarm).map(({ Namespace, MetricName, Dimensions = [] }) => {
    const dimensions = withStandIns(Dimensions, (...names) => names.join(".")) as readonly {
      readonly Name: string;
      readonly Value: string;
    }[];
    const values = Object.fromEntries(dimensions.map(({ Name, Value }) => [Name, Value]));
    return metricId(String(Namespace), String(MetricName), values);
  });
}

const comparisons: Readonly<Record<string, string>> = {
  GreaterThanOrEqualToThreshold: ">=",
  LessThanThreshold: "<",
};

/** What an alarm of a template decides by, as a sentence: its formula, threshold, periods, and what a gap means. */
export function decisionOf(alarm: Properties): string {
  const metrics = measured(alarm);
  const formula = (alarm.Metrics as readonly Properties[] | undefined)?.find((one) => one.Expression);
  const named = metrics.map(({ id, statistic, MetricName }) => `${id ?? "it"} = ${statistic} ${MetricName}`);
  const { EvaluationPeriods, DatapointsToAlarm = EvaluationPeriods, ComparisonOperator, Threshold } = alarm;
  const periods = new Set(metrics.map(({ seconds }) => Number(seconds) / 60));
  const { WarmUpPeriodDurationInMinutes: warmUp } = (alarm.WarmUpConfiguration ?? {}) as Properties;
  return [
    `${formula?.Expression ?? "it"} ${comparisons[String(ComparisonOperator)]} ${Threshold}`,
    `in ${DatapointsToAlarm} of ${EvaluationPeriods} periods of ${[...periods].join(" or ")} min,`,
    `a gap is ${alarm.TreatMissingData}${warmUp === undefined ? "" : `, from ${warmUp} min on`};`,
    named.join(", "),
  ].join(" ");
}

/** Each metric of an alarm, with its statistic and period. */
function measured(alarm: Properties): Properties[] {
  const metrics = alarm.Metrics as readonly Properties[] | undefined;
  if (metrics === undefined) return [{ ...alarm, statistic: alarm.Statistic, seconds: alarm.Period }];
  return metrics
    .filter(({ MetricStat }) => MetricStat !== undefined)
    .map(({ Id, MetricStat }) => {
      const { Metric, Stat, Period } = MetricStat as Properties;
      return { ...(Metric as Properties), id: Id, statistic: Stat, seconds: Period };
    });
}
