import type { Alarm } from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import { checkProps, having, type Kinds } from "../prop-kinds.ts";
import { isStacksOwn } from "../workflow/lease-heartbeat.ts";
import type { LeasedWorkflow } from "../workflow/leased-workflow.ts";
import { failuresOf } from "../workflow/state-machine.ts";
import { alarmOnEvent } from "./alarm-kinds.ts";
import { alarmsOnHeartbeat, type LeaseHeartbeatAlarms } from "./lease-heartbeat-alarms.ts";
import { alarmOnRedriveGuard } from "./redrive-guard-alarm.ts";
import { type AlarmSettings, alarmSettingKinds, alarmText } from "./runbook.ts";

/** Properties of {@link LeasedWorkflowAlarms}. */
export interface LeasedWorkflowAlarmsProps extends AlarmSettings {
  readonly workflow: LeasedWorkflow;
}

const kinds: Kinds<LeasedWorkflowAlarmsProps> = {
  ...alarmSettingKinds,
  workflow: having("a LeasedWorkflow", "stateMachine", "heartbeat", "redriveGuard", "node"),
};

/**
 * The alarms of a leased workflow without a {@link SingletonJob}, of the stack's keepers if it uses them, and of the
 * guard that stops it after a redrive.
 *
 * With `fail`, an execution that finds the lock held fails and raises an alarm: choose `skip` if you do not want that.
 *
 * ```ts
 * new LeasedWorkflowAlarms(this, "ImportAlarms", { workflow: importing, actions: [new SnsAction(oncall)] });
 * ```
 */
export class LeasedWorkflowAlarms extends Construct {
  /** An execution failed, timed out or was aborted. */
  readonly failed: Alarm;
  /**
   * The alarms of the stack's heartbeat, which all workflows of its table share. Undefined if the workflow has
   * its own heartbeat: give that heartbeat {@link LeaseHeartbeatAlarms}.
   */
  readonly keeper: LeaseHeartbeatAlarms | undefined;

  constructor(scope: Construct, id: string, props: LeasedWorkflowAlarmsProps) {
    super(scope, id);
    const given = checkProps(props, kinds, "workflow");
    const { workflow, ...settings } = given;
    const { stateMachine, heartbeat, node } = workflow;
    this.failed = alarmOnEvent(this, "Failed", {
      ...alarmText("failed", `An execution of the workflow ${node.path} failed.`, settings),
      metrics: failuresOf(stateMachine),
    });
    alarmOnRedriveGuard(workflow.redriveGuard, settings);
    this.keeper = isStacksOwn(heartbeat) ? alarmsOnHeartbeat(heartbeat, settings) : undefined;
  }
}
