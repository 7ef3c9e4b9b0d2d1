import { dimensionNames, inMilliseconds, type MetricName, metricsNamespace } from "@leasehold/client/metrics";
import { Metric, type MetricOptions, Stats } from "aws-cdk-lib/aws-cloudwatch";

/**
 * Returns one of the metrics that clients, functions and jobs write, as a sum over 5 minutes; a duration as its 95th
 * percentile.
 *
 * With a job, only the metrics of that job's runs; otherwise those of all uses of the table.
 */
export function leaseMetric(
  name: MetricName,
  subject: { readonly tableName: string; readonly job?: string },
  props: MetricOptions = {},
): Metric {
  return new Metric({
    namespace: metricsNamespace,
    metricName: name,
    dimensionsMap: {
      [dimensionNames.table]: subject.tableName,
      ...(subject.job === undefined ? {} : { [dimensionNames.job]: subject.job }),
    },
    statistic: inMilliseconds.includes(name) ? Stats.percentile(95) : Stats.SUM,
    ...props,
  });
}
