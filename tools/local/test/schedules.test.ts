import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import type { ScheduleSpec } from "../src/assembly/types.ts";
import { type ScheduleEvent, Scheduler } from "../src/schedules/scheduler.ts";

const minute = 60_000;
const start = Date.UTC(2026, 10, 21, 10, 0, 0);

const spec: ScheduleSpec = {
  stack: "S",
  logicalId: "Job",
  path: "S/Job",
  name: "S-Job",
  arn: "arn:aws:scheduler:us-east-1:123456789012:schedule/default/S-Job",
  expression: "cron(0/5 * * * ? *)",
  timeZone: "UTC",
  enabled: true,
  targetArn: "arn:aws:lambda:us-east-1:123456789012:function:job",
  input:
    '{"at":"<aws.scheduler.scheduled-time>","id":"<aws.scheduler.execution-id>","n":<aws.scheduler.attempt-number>,"arn":"<aws.scheduler.schedule-arn>"}',
};

interface Sent {
  readonly at: string;
  readonly id: string;
  readonly n: number;
}

let clock: ManualClock;
let sent: Sent[];
let events: ScheduleEvent[];
let refusals: number;

beforeEach(() => {
  clock = new ManualClock(start + 30_000);
  sent = [];
  events = [];
  refusals = 0;
});

function scheduler(...specs: Partial<ScheduleSpec>[]): Scheduler {
  const made = new Scheduler({
    clock,
    onEvent: (event) => events.push(event),
    async send(_arn, input) {
      if (refusals > 0) {
        refusals -= 1;
        throw new Error("throttled");
      }
      sent.push(JSON.parse(input) as Sent);
    },
  });
  for (const [index, changes] of specs.entries())
    made.add({ ...spec, arn: `${spec.arn}${index}`, ...changes });
  return made;
}

const times = (): string[] => sent.map(({ at }) => at.slice(11, 16));

describe("a schedule", () => {
  test("fires at its times, each with its own time and id", async () => {
    scheduler({}).start();
    await clock.advance(11 * minute);
    expect(sent.map(({ at }) => at)).toEqual(["2026-11-21T10:05:00Z", "2026-11-21T10:10:00Z"]);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(2);
    expect(sent.map(({ n }) => n)).toEqual([1, 1]);
    expect(events.map(({ type, lateMs }) => [type, lateMs])).toEqual([
      ["fired", 0],
      ["fired", 0],
    ]);
  });

  test("a rate without a start date fires at once, and then at its distance", async () => {
    scheduler({ expression: "rate(5 minutes)" }).start();
    await clock.advance(11 * minute);
    expect(sent.map(({ at }) => at)).toEqual([
      "2026-11-21T10:00:30Z",
      "2026-11-21T10:05:30Z",
      "2026-11-21T10:10:30Z",
    ]);
  });

  test("one for a single time fires once", async () => {
    scheduler({ expression: "at(2026-11-21T10:20:00)" }).start();
    await clock.advance(120 * minute);
    expect(times()).toEqual(["10:20"]);
    expect(clock.pending).toBe(0);
  });

  test("a disabled one never fires by itself", async () => {
    const made = scheduler({ enabled: false });
    made.start();
    await clock.advance(60 * minute);
    expect(sent).toEqual([]);
  });

  test("a time that the machine slept through is fired once, late, with its own time", async () => {
    scheduler({}).start();
    await settled();
    clock.freeze(4 * 60 * minute);
    await clock.advance(0);
    expect(times()).toEqual(["10:05"]);
    expect(events[0]?.lateMs).toBeGreaterThan(3 * 60 * minute);
    await clock.advance(5 * minute);
    expect(times()).toEqual(["10:05", "14:05"]);
  });

  test("a wall clock that is set back does not make it fire early", async () => {
    scheduler({}).start();
    await settled();
    clock.jump(-10 * minute);
    await clock.advance(6 * minute);
    expect(sent).toEqual([]);
    await clock.advance(9 * minute);
    expect(times()).toEqual(["10:05"]);
  });

  test("a wall clock that is set forward is noticed within a minute", async () => {
    scheduler({ expression: "cron(0 12 * * ? *)" }).start();
    await settled();
    clock.jump(2 * 60 * minute);
    await clock.advance(minute);
    expect(times()).toEqual(["12:00"]);
  });
});

describe("a schedule that is fired at will", () => {
  test("fires now, whatever its state, with the time that it is given", async () => {
    const made = scheduler({ enabled: false });
    const scheduledTime = new Date("2026-01-01T00:00:00Z");
    const fired = await made.fire(spec, { scheduledTime });
    expect(sent).toEqual([{ at: "2026-01-01T00:00:00Z", id: fired.executionId, n: 1, arn: spec.arn }]);
    expect(events[0]?.lateMs).toBe(0);
  });

  test("without a time it has the present one, in whole seconds", async () => {
    clock.jump(123);
    const fired = await scheduler({}).fire(spec);
    expect(fired.scheduledTime).toEqual(new Date(start + 30_000));
  });
});

test("a target that refuses is not asked again, and the refusal is told", async () => {
  refusals = 1;
  scheduler({}).start();
  await clock.advance(9 * minute);
  expect(sent).toEqual([]);
  expect(events).toMatchObject([{ type: "refused", error: new Error("throttled") }]);
});

test("without an input the target gets the scheduler's own event", async () => {
  const made = scheduler();
  const fired = await made.fire({ ...spec, input: undefined });
  expect(JSON.parse(fired.input)).toMatchObject({
    source: "aws.scheduler",
    "detail-type": "Scheduled Event",
    time: "2026-11-21T10:00:30Z",
    resources: [spec.arn],
  });
});

test("a schedule that AWS would refuse is refused when it is added", () => {
  expect(() => scheduler({ expression: "cron(0 10 * * * *)" })).toThrow(
    /exactly one of day-of-month and day-of-week/,
  );
});
