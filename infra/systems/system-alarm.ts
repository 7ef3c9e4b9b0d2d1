import { metricsNamespace } from "@leasehold/client/metrics";
import { Duration } from "aws-cdk-lib";
import {
  Alarm,
  ComparisonOperator,
  MathExpression,
  type Metric,
  Stats,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
import { FilterPattern, type ILogGroup, MetricFilter } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";

/** The entries that the systems' own alarms have in docs/RUNBOOK.md, besides those of the constructs. */
export const systemRunbookAnchors = {
  importFailed: "import-failed",
  ordersParked: "orders-parked",
} as const;

/** Properties of {@link SystemAlarm}. */
export interface SystemAlarmProps {
  /** What is wrong. */
  readonly what: string;
  readonly entry: keyof typeof systemRunbookAnchors;
  /** The words of the log lines that count. */
  readonly message: string;
  /** The functions that write them, by a name for each. */
  readonly functions: Readonly<Record<string, { readonly logGroup: ILogGroup }>>;
  /** What counts besides, by a name for each. @default - nothing */
  readonly metrics?: Readonly<Record<string, Metric>>;
}

const period = Duration.minutes(5);

/** An alarm of one of the systems: something was logged, or counted, that somebody has to look at. */
export class SystemAlarm extends Construct {
  constructor(scope: Construct, id: string, props: SystemAlarmProps) {
    super(scope, id);
    const { what, entry, message, functions, metrics } = props;
    const counted: Record<string, Metric> = { ...metrics };
    for (const [name, { logGroup }] of Object.entries(functions)) {
      const filter = new MetricFilter(this, name, {
        logGroup,
        filterPattern: FilterPattern.anyTerm(message),
        metricNamespace: metricsNamespace,
        metricName: this.node.path.replaceAll("/", "-") + name,
      });
      counted[name.toLowerCase()] = filter.metric();
    }
    const names = Object.keys(counted);
    new Alarm(this, "Alarm", {
      alarmDescription: `${what}\nRunbook: docs/RUNBOOK.md#${systemRunbookAnchors[entry]}`,
      metric: new MathExpression({
        expression: `SUM([${names.map((name) => `FILL(${name}, 0)`).join(", ")}])`,
        usingMetrics: Object.fromEntries(
          Object.entries(counted).map(([name, metric]) => [
            name,
            metric.with({ statistic: Stats.SUM, period }),
          ]),
        ),
        label: what,
        period,
      }),
      evaluationPeriods: 1,
      threshold: 1,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });
  }
}
