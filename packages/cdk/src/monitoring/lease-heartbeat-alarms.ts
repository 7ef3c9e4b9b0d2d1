import type { Alarm } from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import { checkProps, having, type Kinds } from "../prop-kinds.ts";
import type { ILeaseHeartbeat } from "../workflow/lease-heartbeat.ts";
import { failuresOf } from "../workflow/state-machine.ts";
import { alarmOnEvent, alarmOnLasting } from "./alarm-kinds.ts";
import { type AlarmSettings, alarmSettingKinds, alarmText } from "./runbook.ts";
import { tellAlso } from "./shared-alarm.ts";

/** Properties of {@link LeaseHeartbeatAlarms}. */
export interface LeaseHeartbeatAlarmsProps extends AlarmSettings {
  readonly heartbeat: ILeaseHeartbeat;
}

const kinds: Kinds<LeaseHeartbeatAlarmsProps> = {
  ...alarmSettingKinds,
  heartbeat: having("a LeaseHeartbeat", "stateMachine", "ended", "node"),
};

/**
 * The alarms of a heartbeat that many workflows share, created at the first call. They have the actions of all callers.
 */
export function alarmsOnHeartbeat(heartbeat: ILeaseHeartbeat, settings: AlarmSettings): LeaseHeartbeatAlarms {
  const { actions, ...text } = settings;
  const existing = heartbeat.node.tryFindChild("Alarms");
  const alarms =
    existing instanceof LeaseHeartbeatAlarms
      ? existing
      : new LeaseHeartbeatAlarms(heartbeat, "Alarms", { heartbeat, ...text });
  for (const alarm of [alarms.failed, alarms.throttled]) tellAlso(alarm, actions);
  return alarms;
}

/**
 * The alarms of keepers: a keeper, or the machine that releases the leases of ended executions, ended abnormally, or
 * Step Functions throttles them.
 *
 * A keeper that loses its lease stops the work, and fails with LeaseLostError. One alarm reports both cases, and the
 * runbook says how to distinguish them.
 *
 * ```ts
 * new LeaseHeartbeatAlarms(this, "HeartbeatAlarms", { heartbeat, actions: [new SnsAction(oncall)] });
 * ```
 */
export class LeaseHeartbeatAlarms extends Construct {
  /** A keeper, or the machine that releases the leases of ended executions, failed, timed out or was aborted. */
  readonly failed: Alarm;
  /** State transitions of keepers are throttled again and again: heartbeats are late. */
  readonly throttled: Alarm;

  constructor(scope: Construct, id: string, props: LeaseHeartbeatAlarmsProps) {
    super(scope, id);
    const given = checkProps(props, kinds, "heartbeat");
    const { stateMachine, ended, node } = given.heartbeat;
    const { failed, timedOut, aborted } = failuresOf(ended);
    this.failed = alarmOnEvent(this, "Failed", {
      ...alarmText("keeperFailed", `A keeper of ${node.path} ended in another way than planned.`, given),
      metrics: {
        ...failuresOf(stateMachine),
        endedFailed: failed,
        endedTimedOut: timedOut,
        endedAborted: aborted,
      },
    });
    const slow = `Step Functions throttles the keepers of ${node.path}, so that they renew late.`;
    this.throttled = alarmOnLasting(this, "Throttled", {
      ...alarmText("keeperThrottled", slow, given),
      metric: stateMachine.metricThrottled(),
      threshold: 1,
    });
  }
}
