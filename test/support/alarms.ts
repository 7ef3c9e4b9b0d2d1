import { textOf } from "./constructs.ts";

type Properties = Readonly<Record<string, unknown>>;

const comparisons: Readonly<Record<string, string>> = {
  GreaterThanOrEqualToThreshold: ">=",
  LessThanThreshold: "<",
};

/**
 * What an alarm of a template decides by, as a sentence: its formula, threshold and periods, what a gap means, and of
 * what its metrics are. Logical ids have no hash.
 */
export function decisionOf(alarm: Properties): string {
  const metrics = measured(alarm);
  const formula = (alarm.Metrics as readonly Properties[] | undefined)?.find((one) => one.Expression);
  const { EvaluationPeriods, DatapointsToAlarm = EvaluationPeriods, ComparisonOperator, Threshold } = alarm;
  const periods = new Set(metrics.map(({ seconds }) => Number(seconds) / 60));
  const { WarmUpPeriodDurationInMinutes: warmUp } = (alarm.WarmUpConfiguration ?? {}) as Properties;
  return [
    `${formula?.Expression ?? "it"} ${comparisons[String(ComparisonOperator)]} ${Threshold}`,
    `in ${DatapointsToAlarm} of ${EvaluationPeriods} periods of ${[...periods].join(" or ")} min,`,
    `a gap is ${alarm.TreatMissingData}${warmUp === undefined ? "" : `, from ${warmUp} min on`};`,
    metrics
      .map((metric) => `${metric.id} = ${metric.statistic} ${metric.MetricName}${subjectOf(metric)}`)
      .join(", "),
  ].join(" ");
}

function subjectOf({ Dimensions = [] }: Properties): string {
  const values = (Dimensions as readonly { readonly Value: unknown }[]).map(({ Value }) =>
    textOf(Value).replace(/^<(.*?)([0-9A-F]{8})?(\.\w+)?>$/, "$1"),
  );
  return values.length === 0 ? "" : ` of ${values.join(" in ")}`;
}

/** Each metric of an alarm, with its statistic and period. */
function measured(alarm: Properties): Properties[] {
  const metrics = alarm.Metrics as readonly Properties[] | undefined;
  if (metrics === undefined)
    return [{ ...alarm, id: "it", statistic: alarm.Statistic, seconds: alarm.Period }];
  return metrics
    .filter(({ MetricStat }) => MetricStat !== undefined)
    .map(({ Id, MetricStat }) => {
      const { Metric, Stat, Period } = MetricStat as Properties;
      return { ...(Metric as Properties), id: Id, statistic: Stat, seconds: Period };
    });
}
