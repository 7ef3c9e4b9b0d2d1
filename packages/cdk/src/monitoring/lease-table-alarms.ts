import type { Alarm } from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import { aTable, checkProps, type Kinds } from "../prop-kinds.ts";
import type { ILeaseTable } from "../table/lease-table-base.ts";
import { alarmOnEvent } from "./alarm-kinds.ts";
import { type AlarmSettings, alarmSettingKinds, alarmText } from "./runbook.ts";

/** Properties of {@link LeaseTableAlarms}. */
export interface LeaseTableAlarmsProps extends AlarmSettings {
  readonly table: ILeaseTable;
}

const kinds: Kinds<LeaseTableAlarmsProps> = { ...alarmSettingKinds, table: aTable };

/**
 * The alarm of a whole table: an unreleased lease has expired.
 *
 * It needs the function that reads the table's stream and writes the metric.
 */
export class LeaseTableAlarms extends Construct {
  /** A holder died, and no caller took its lock over before ttl removed it. */
  readonly leaseExpired: Alarm;

  constructor(scope: Construct, id: string, props: LeaseTableAlarmsProps) {
    super(scope, id);
    const given = checkProps(props, kinds, "table");
    const { table } = given;
    const what = `A holder of a lock in ${table.tableName} died, and nobody has taken the lock since.`;
    this.leaseExpired = alarmOnEvent(this, "LeaseExpired", {
      ...alarmText("leaseExpired", what, given),
      metrics: { expired: table.metricExpired() },
    });
  }
}
