import { Duration } from "aws-cdk-lib";
import { type Alarm, Stats } from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import { checkProps, having, type Kinds } from "../prop-kinds.ts";
import type { LeaseWakeup } from "../workflow/lease-wakeup.ts";
import { alarmOnBacklog, alarmOnEvent, alarmOnLasting } from "./alarm-kinds.ts";
import { type AlarmSettings, alarmSettingKinds, alarmText } from "./runbook.ts";

/** Properties of {@link LeaseWakeupAlarms}. */
export interface LeaseWakeupAlarmsProps extends AlarmSettings {
  readonly wakeup: LeaseWakeup;
}

/** If a wake-up is lost, the waiter looks again by its own timer, at the earliest when a lease has ended. */
const late = Duration.minutes(1);

const kinds: Kinds<LeaseWakeupAlarmsProps> = {
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
    const given = checkProps(props, kinds, "wakeup");
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
