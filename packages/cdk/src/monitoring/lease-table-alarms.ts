import { Duration } from "aws-cdk-lib";
import {
  Alarm,
  ComparisonOperator,
  type IAlarmAction,
  Stats,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import type { LeaseTable } from "../table/lease-table.ts";
import { alarmDescription, defaultRunbookUrl } from "./runbook.ts";

/** Properties of {@link LeaseTableAlarms}. */
export interface LeaseTableAlarmsProps {
  /** @default - nobody is told */
  readonly actions?: readonly IAlarmAction[];
  /** Address of the runbook; an anchor is appended. @default "docs/RUNBOOK.md" */
  readonly runbookUrl?: string;
  readonly table: LeaseTable;
}

/**
 * The alarm of a whole table: a lease expired that nobody had released.
 *
 * It needs the function that reads the table's stream and writes the metric.
 */
export class LeaseTableAlarms extends Construct {
  /** A holder died, and nobody took its lock over before ttl removed it. */
  readonly leaseExpired: Alarm;

  constructor(scope: Construct, id: string, props: LeaseTableAlarmsProps) {
    super(scope, id);
    const { table, actions = [], runbookUrl = defaultRunbookUrl } = props;
    const what = `A holder of a lock in ${table.tableName} died, and nobody has taken the lock since.`;
    this.leaseExpired = new Alarm(this, "LeaseExpired", {
      alarmDescription: alarmDescription(what, "leaseExpired", runbookUrl),
      metric: table.metricExpired({ period: Duration.minutes(5), statistic: Stats.SUM }),
      evaluationPeriods: 1,
      threshold: 1,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });
    this.leaseExpired.addAlarmAction(...actions);
  }
}
