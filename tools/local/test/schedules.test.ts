import { expect, test } from "vitest";
import type { ScheduleSpec } from "../src/assembly/types.ts";
import { firingOf } from "../src/services/schedules.ts";

const spec: ScheduleSpec = {
  stack: "S",
  logicalId: "Job",
  path: "S/Job",
  name: "S-Job",
  arn: "arn:aws:scheduler:us-east-1:123456789012:schedule/default/S-Job",
  targetArn: "arn:aws:lambda:us-east-1:123456789012:function:job",
  input:
    '{"at":"<aws.scheduler.scheduled-time>","id":"<aws.scheduler.execution-id>","n":<aws.scheduler.attempt-number>,"arn":"<aws.scheduler.schedule-arn>"}',
};
const scheduledTime = new Date("2026-11-21T10:05:00.123Z");

test("a schedule fills the attributes of a firing into its target's input, the time in whole seconds", () => {
  const fired = firingOf(spec, scheduledTime);
  const { executionId: id } = fired;
  expect(JSON.parse(fired.input)).toEqual({ at: "2026-11-21T10:05:00Z", id, n: 1, arn: spec.arn });
  expect(firingOf(spec, scheduledTime).executionId).not.toBe(id);
});

test("without an input the target gets the scheduler's own event", () => {
  const fired = firingOf({ ...spec, input: undefined }, scheduledTime);
  expect(JSON.parse(fired.input)).toMatchObject({
    source: "aws.scheduler",
    "detail-type": "Scheduled Event",
    time: "2026-11-21T10:05:00Z",
    resources: [spec.arn],
  });
});
