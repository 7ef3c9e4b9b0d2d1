import { alarmOnEvent } from "@leasehold/cdk";
import { metricsNamespace } from "@leasehold/client/metrics";
import { type Metric, Stats } from "aws-cdk-lib/aws-cloudwatch";
import { FilterPattern, type ILogGroup, MetricFilter } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { type SystemRunbookEntry, systemAlarmText } from "../runbook.ts";

/** Properties of {@link SystemAlarm}. */
export interface SystemAlarmProps {
  /** What is wrong. */
  readonly what: string;
  readonly entry: SystemRunbookEntry;
  /** The words of the log lines that count. */
  readonly messages: readonly string[];
  /** The functions that write them, by a name for each. */
  readonly functions: Readonly<Record<string, { readonly logGroup: ILogGroup }>>;
  /** Other metrics to count, by a name for each. @default - none */
  readonly metrics?: Readonly<Record<string, Metric>>;
}

/** An alarm of one of the systems: something was logged or counted that a person has to look at. */
export class SystemAlarm extends Construct {
  constructor(scope: Construct, id: string, props: SystemAlarmProps) {
    super(scope, id);
    const { what, entry, messages, functions, metrics } = props;
    const counted: Record<string, Metric> = { ...metrics };
    for (const [name, { logGroup }] of Object.entries(functions)) {
      const filter = new MetricFilter(this, name, {
        logGroup,
        filterPattern: FilterPattern.anyTerm(...messages),
        metricNamespace: metricsNamespace,
        metricName: this.node.path.replaceAll("/", "-") + name,
      });
      counted[name.toLowerCase()] = filter.metric({ statistic: Stats.SUM });
    }
    alarmOnEvent(this, "Alarm", { ...systemAlarmText(entry, what), metrics: counted });
  }
}
