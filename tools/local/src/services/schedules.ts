// EventBridge Scheduler, as far as a schedule is fired at will: what its target gets.

import type { ScheduleSpec } from "../assembly/types.ts";

/** One firing, as it is sent to the target. */
export interface Fired {
  readonly scheduledTime: Date;
  readonly executionId: string;
  /** The text that the target gets. */
  readonly input: string;
}

/** What a schedule sends at a time: the target's input with the context attributes filled in, or the scheduler's own event. */
export function firingOf(spec: ScheduleSpec, scheduledTime: Date): Fired {
  const executionId = crypto.randomUUID();
  const time = scheduledTime.toISOString().replace(/\.\d+Z$/, "Z");
  const attributes: Readonly<Record<string, string>> = {
    "scheduled-time": time,
    "execution-id": executionId,
    "attempt-number": "1",
    "schedule-arn": spec.arn,
  };
  const [, , , region, account] = spec.arn.split(":");
  const ownEvent = {
    version: "0",
    id: executionId,
    "detail-type": "Scheduled Event",
    source: "aws.scheduler",
    account,
    time,
    region,
    resources: [spec.arn],
    detail: "{}",
  };
  const input = spec.input?.replace(
    /<aws\.scheduler\.([a-z-]+)>/g,
    (match, name: string) => attributes[name] ?? match,
  );
  return { scheduledTime, executionId, input: input ?? JSON.stringify(ownEvent) };
}
