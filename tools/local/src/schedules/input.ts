// The input of a schedule's target, with the context attributes of EventBridge Scheduler.

import type { ScheduleSpec } from "../assembly/types.ts";

/** One delivery of a schedule, with its context attributes. */
export interface DeliveryContext {
  readonly scheduledTime: Date;
  readonly executionId: string;
}

/** A time as the scheduler writes it: whole seconds, in UTC. */
function scheduledTimeText(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, "Z");
}

/** The target's input with the context attributes filled in; the scheduler's own event where none is given. */
export function targetInput(spec: ScheduleSpec, context: DeliveryContext): string {
  if (spec.input === undefined) return JSON.stringify(defaultEvent(spec, context));
  const attributes: Readonly<Record<string, string>> = {
    "scheduled-time": scheduledTimeText(context.scheduledTime),
    "execution-id": context.executionId,
    "attempt-number": "1",
    "schedule-arn": spec.arn,
  };
  return spec.input.replace(
    /<aws\.scheduler\.([a-z-]+)>/g,
    (match, name: string) => attributes[name] ?? match,
  );
}

function defaultEvent(spec: ScheduleSpec, { scheduledTime, executionId }: DeliveryContext): object {
  const [, , , region, account] = spec.arn.split(":");
  return {
    version: "0",
    id: executionId,
    "detail-type": "Scheduled Event",
    source: "aws.scheduler",
    account,
    time: scheduledTimeText(scheduledTime),
    region,
    resources: [spec.arn],
    detail: "{}",
  };
}
