/** The alarms of lease tables, wakeups, keepers and leased workflows. */
import { Duration } from "aws-cdk-lib";
import { Alarm, type IAlarmAction, Stats } from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import { aRedriveGuard, aTable, checkKind, checkProps, having, type Kinds } from "../prop-kinds.ts";
import type { ILeaseTable } from "../table/lease-table-base.ts";
import { type ILeaseHeartbeat, isStacksOwn } from "../workflow/lease-heartbeat.ts";
import type { LeaseWakeup } from "../workflow/lease-wakeup.ts";
import type { LeasedWorkflow } from "../workflow/leased-workflow.ts";
import type { RedriveGuard } from "../workflow/redrive-guard.ts";
import { failuresOf } from "../workflow/state-machine.ts";
import { alarmOnBacklog, alarmOnEvent, alarmOnLasting } from "./alarm-kinds.ts";
import { type AlarmSettings, alarmSettingKinds, alarmText } from "./runbook.ts";

/** Properties of {@link LeaseTableAlarms}. */
export interface LeaseTableAlarmsProps extends AlarmSettings {
  readonly table: ILeaseTable;
}

const tableKinds: Kinds<LeaseTableAlarmsProps> = { ...alarmSettingKinds, table: aTable };

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
    const given = checkProps(props, tableKinds, "table");
    const { table } = given;
    const what = `A holder of a lock in ${table.tableName} died, and nobody has taken the lock since.`;
    this.leaseExpired = alarmOnEvent(this, "LeaseExpired", {
      ...alarmText("leaseExpired", what, given),
      metrics: { expired: table.metricExpired() },
    });
  }
}

/** Properties of {@link LeaseWakeupAlarms}. */
export interface LeaseWakeupAlarmsProps extends AlarmSettings {
  readonly wakeup: LeaseWakeup;
}

/** If a wake-up is lost, the waiter looks again by its own timer, at the earliest when a lease has ended. */
const late = Duration.minutes(1);

const wakeupKinds: Kinds<LeaseWakeupAlarmsProps> = {
  ...alarmSettingKinds,
  wakeup: having("a LeaseWakeup", "handler", "deadLetterQueue", "node"),
};

/**
 * The alarms of wake-ups: some were given up, or they come late.
 *
 * Neither endangers a lock: a waiter looks again by itself, but late.
 *
 * ```ts
 * new LeaseWakeupAlarms(this, "WakeupAlarms", { wakeup, actions: [new SnsAction(oncall)] });
 * ```
 */
export class LeaseWakeupAlarms extends Construct {
  /** The releases of a lock were given up and lie in the dead-letter queue. */
  readonly deadLetters: Alarm;
  /** Releases were given up, and not even the dead-letter queue has them. */
  readonly deadLetterLost: Alarm;
  /** The wakeup sees releases more than a minute late, again and again. */
  readonly late: Alarm;

  constructor(scope: Construct, id: string, props: LeaseWakeupAlarmsProps) {
    super(scope, id);
    const given = checkProps(props, wakeupKinds, "wakeup");
    const { handler, deadLetterQueue, node } = given.wakeup;
    const lost = `Wake-ups of ${node.path} were given up`;
    this.deadLetters = alarmOnBacklog(this, "DeadLetters", {
      ...alarmText("wakeupsLost", `${lost} and lie in the dead-letter queue.`, given),
      queue: deadLetterQueue,
    });
    this.deadLetterLost = alarmOnEvent(this, "DeadLetterLost", {
      ...alarmText("wakeupsLost", `${lost}, and could not be put into the dead-letter queue.`, given),
      metrics: { undelivered: handler.metric("DestinationDeliveryFailures", { statistic: Stats.SUM }) },
    });
    this.late = alarmOnLasting(this, "Late", {
      ...alarmText("wakeupsLate", `Wake-ups of ${node.path} are ${late.toHumanString()} late.`, given),
      metric: handler.metric("IteratorAge", { statistic: Stats.MAXIMUM }),
      threshold: late.toMilliseconds(),
    });
  }
}

/** Properties of {@link LeaseHeartbeatAlarms}. */
export interface LeaseHeartbeatAlarmsProps extends AlarmSettings {
  readonly heartbeat: ILeaseHeartbeat;
}

const heartbeatKinds: Kinds<LeaseHeartbeatAlarmsProps> = {
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
    const given = checkProps(props, heartbeatKinds, "heartbeat");
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

/** Properties of {@link LeasedWorkflowAlarms}. */
export interface LeasedWorkflowAlarmsProps extends AlarmSettings {
  readonly workflow: LeasedWorkflow;
}

const workflowKinds: Kinds<LeasedWorkflowAlarmsProps> = {
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
    const given = checkProps(props, workflowKinds, "workflow");
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

/**
 * The alarm of a stack's redrive guard: the guard could not stop a redriven workflow, which may work without a lease.
 * One for each stack; it has the actions of all callers.
 *
 * ```ts
 * alarmOnRedriveGuard(importing.redriveGuard, { actions: [new SnsAction(oncall)] });
 * ```
 */
export function alarmOnRedriveGuard(guard: RedriveGuard, settings: AlarmSettings = {}): Alarm {
  checkKind("guard", guard, aRedriveGuard);
  const given = checkProps(settings, alarmSettingKinds);
  const { actions, ...text } = given;
  const what =
    "A leased workflow was redriven, and could not be stopped: it may be at work without its lease.";
  const existing = guard.node.tryFindChild("Failed");
  const alarm =
    existing instanceof Alarm
      ? existing
      : alarmOnEvent(guard, "Failed", {
          ...alarmText("redriveGuardFailed", what, text),
          metrics: failuresOf(guard.stateMachine),
        });
  tellAlso(alarm, actions);
  return alarm;
}

/** The actions that were added to each shared alarm already. */
const known = new WeakMap<Alarm, Set<IAlarmAction>>();

/** Adds actions to an alarm that several callers share. Callers may have the same actions. */
function tellAlso(alarm: Alarm, actions: readonly IAlarmAction[] = []): void {
  const told = known.get(alarm) ?? new Set();
  const more = actions.filter((action) => !told.has(action));
  if (more.length > 0) alarm.addAlarmAction(...more);
  known.set(alarm, new Set([...told, ...more]));
}
