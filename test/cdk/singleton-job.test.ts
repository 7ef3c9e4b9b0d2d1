import {
  LeaseTable,
  LeaseWakeup,
  SingletonJob,
  type SingletonJobProps,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { Duration, Lazy, type Stack, TimeZone } from "aws-cdk-lib";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import type { IAlarmAction } from "aws-cdk-lib/aws-cloudwatch";
import { ScheduleExpression, TimeWindow } from "aws-cdk-lib/aws-scheduler";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { describe, expect, test } from "vitest";
import { everyFiveMinutes, functionIn, newStack, only, statementsIn } from "../support/constructs.ts";
import { definitionsIn } from "../support/definitions.ts";
import { machineIn } from "../support/jobs.ts";

const alarmType = "AWS::CloudWatch::Alarm";
const scheduleType = "AWS::Scheduler::Schedule";
const daily = ScheduleExpression.cron({ minute: "0", hour: "3" });
const minutes = Duration.minutes;

interface World {
  readonly stack: Stack;
  readonly table: LeaseTable;
}

function newWorld(table: { readonly stream?: boolean } = {}): World {
  const stack = newStack();
  return { stack, table: new LeaseTable(stack, "Leases", table) };
}

const newWorkflow = (stack: Stack) => ({ stateMachine: machineIn(stack, "Workflow") });

type JobOptions = Partial<SingletonJobProps> & { readonly timeout?: Duration };

function addJob({ stack, table }: World, { timeout = minutes(2), ...props }: JobOptions = {}): SingletonJob {
  return new SingletonJob(stack, "Job", {
    table,
    schedule: everyFiveMinutes,
    target: props.target ?? SingletonJobTarget.lambda(functionIn(stack, "Work", { timeout })),
    jobName: "close-unpaid-orders",
    ...props,
  });
}

/** The template of a stack with one job. */
function templateOf(options?: JobOptions, world: World = newWorld()): Template {
  addJob(world, options);
  return Template.fromStack(world.stack);
}

const environmentOf = (template: Template): unknown =>
  only(template.findResources("AWS::Lambda::Function")).Properties.Environment.Variables;

const alarmsOf = (template: Template): Record<string, Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(template.findResources(alarmType)).map(([id, { Properties }]) => [
      id.replace(/^JobAlarms(.*).{8}$/, "$1"),
      Properties,
    ]),
  );

const deadLetters = { "Fn::GetAtt": [expect.stringMatching(/^JobDeadLetters/), "Arn"] };

describe("a job that is a function", () => {
  test("is sent its name, its scheduled time and the user's input", () => {
    const { Properties } = only(templateOf({ input: { dryRun: true } }).findResources(scheduleType));
    expect(JSON.parse(Properties.Target.Input)).toEqual({
      job: "close-unpaid-orders",
      scheduledTime: "<aws.scheduler.scheduled-time>",
      executionId: "<aws.scheduler.execution-id>",
      input: { dryRun: true },
    });
  });

  test("has its settings in its environment; by default it skips, and runs once for each scheduled time", () => {
    const byDefault = {
      LEASEHOLD_TABLE_NAME: { Ref: expect.stringMatching(/^Leases/) },
      LEASEHOLD_KEY: "close-unpaid-orders",
      LEASEHOLD_JOB: "close-unpaid-orders",
      LEASEHOLD_WHEN_HELD: "skip",
      LEASEHOLD_ONCE: "true",
    };
    expect(environmentOf(templateOf())).toEqual(byDefault);
    const times = { lockAtMostFor: minutes(3), lockAtLeastFor: Duration.seconds(30) };
    expect(environmentOf(templateOf({ key: "orders", overlap: "replace", once: false, ...times }))).toEqual({
      ...byDefault,
      LEASEHOLD_KEY: "orders",
      LEASEHOLD_WHEN_HELD: "replace",
      LEASEHOLD_ONCE: "false",
      LEASEHOLD_LOCK_AT_MOST_FOR_MS: "180000",
      LEASEHOLD_LOCK_AT_LEAST_FOR_MS: "30000",
    });
  });

  test("may use its own lock on this table, and its scheduler invoke it, and both write dead letters, and no more", () => {
    const template = templateOf({ key: "orders" });
    expect(statementsIn(template, /^WorkServiceRole/)).toEqual([
      {
        Effect: "Allow",
        Action: [
          "dynamodb:UpdateItem",
          "dynamodb:GetItem",
          "dynamodb:ConditionCheckItem",
          "dynamodb:PartiQLUpdate",
        ],
        Resource: { "Fn::GetAtt": [expect.stringMatching(/^Leases/), "Arn"] },
        Condition: {
          "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["orders"] },
          Null: { "dynamodb:LeadingKeys": "false" },
        },
      },
      {
        Effect: "Allow",
        Action: ["sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"],
        Resource: deadLetters,
      },
    ]);
    const work = { "Fn::GetAtt": [expect.stringMatching(/^Work/), "Arn"] };
    expect(statementsIn(template, /^SchedulerRole/)).toEqual([
      { Effect: "Allow", Action: "lambda:InvokeFunction", Resource: work },
      { Effect: "Allow", Action: "sqs:SendMessage", Resource: deadLetters },
    ]);
  });

  test("every minute leaves Lambda the time for its retries, the first of which comes after a minute", () => {
    const template = templateOf({ schedule: ScheduleExpression.rate(minutes(1)) });
    template.hasResourceProperties("AWS::Lambda::EventInvokeConfig", { MaximumEventAgeInSeconds: 300 });
    template.hasResourceProperties(scheduleType, {
      Target: { RetryPolicy: { MaximumEventAgeInSeconds: 60 } },
    });
  });

  test("is not started when the next run is due, and its failures end in an encrypted queue", () => {
    const template = templateOf();
    const queue = { "Fn::GetAtt": [Match.stringLikeRegexp("^JobDeadLetters"), "Arn"] };
    template.hasResourceProperties(scheduleType, {
      FlexibleTimeWindow: { Mode: "OFF" },
      State: "ENABLED",
      Target: {
        RetryPolicy: { MaximumEventAgeInSeconds: 300, MaximumRetryAttempts: 185 },
        DeadLetterConfig: { Arn: queue },
      },
    });
    template.hasResourceProperties("AWS::Lambda::EventInvokeConfig", {
      MaximumRetryAttempts: 2,
      MaximumEventAgeInSeconds: 300,
      DestinationConfig: { OnFailure: { Destination: queue } },
    });
    template.hasResourceProperties("AWS::SQS::Queue", {
      SqsManagedSseEnabled: true,
      MessageRetentionPeriod: 1_209_600,
    });
    const Condition = { Bool: { "aws:SecureTransport": "false" } };
    template.hasResourceProperties("AWS::SQS::QueuePolicy", {
      PolicyDocument: { Statement: [Match.objectLike({ Effect: "Deny", Condition })] },
    });
  });

  test("takes the user's retries, also none, and the user's queue and time window", () => {
    const world = newWorld();
    const deadLetterQueue = new Queue(world.stack, "Mine");
    const target = SingletonJobTarget.lambda(functionIn(world.stack), { retryAttempts: 0 });
    const timeWindow = TimeWindow.flexible(minutes(1));
    const given = { deadLetterQueue, target, timeWindow, retryAttempts: 0, maxEventAge: minutes(2) };
    const template = templateOf({ ...given, enabled: false }, world);
    template.resourceCountIs("AWS::SQS::Queue", 1);
    template.hasResourceProperties(scheduleType, {
      FlexibleTimeWindow: { Mode: "FLEXIBLE", MaximumWindowInMinutes: 1 },
      State: "DISABLED",
      Target: { RetryPolicy: { MaximumEventAgeInSeconds: 120, MaximumRetryAttempts: 0 } },
    });
    template.hasResourceProperties("AWS::Lambda::EventInvokeConfig", { MaximumRetryAttempts: 0 });
  });

  test("keeps what its own definition says about asynchronous invocations", () => {
    const world = newWorld();
    const fn = functionIn(world.stack);
    fn.configureAsyncInvoke({ retryAttempts: 1 });
    templateOf({ target: SingletonJobTarget.lambda(fn) }, world).hasResourceProperties(
      "AWS::Lambda::EventInvokeConfig",
      { MaximumRetryAttempts: 1, DestinationConfig: Match.absent() },
    );
  });

  test("has a name of its own unless it is given one, which is its key as well", () => {
    const { stack, table } = newWorld();
    const names = ["Close", "Open"].map((id) => {
      const target = SingletonJobTarget.lambda(functionIn(stack, `${id}Work`));
      const job = new SingletonJob(stack, id, { table, target, schedule: everyFiveMinutes });
      expect(job.key).toBe(job.jobName);
      return job.jobName;
    });
    expect(new Set(names).size).toBe(2);
  });
});

describe("a job that is a workflow", () => {
  test("is started with the same input, by a role that may do just that, and is watched by its executions", () => {
    const world = newWorld();
    const template = templateOf({ target: SingletonJobTarget.workflow(newWorkflow(world.stack)) }, world);
    const { Properties } = only(template.findResources(scheduleType));
    expect(JSON.parse(Properties.Target.Input)).toMatchObject({
      job: "close-unpaid-orders",
      scheduledTime: "<aws.scheduler.scheduled-time>",
    });
    expect(statementsIn(template, /^SchedulerRole/)).toContainEqual({
      Effect: "Allow",
      Action: "states:StartExecution",
      Resource: { Ref: expect.stringMatching(/^Workflow/) },
    });
    expect(Object.keys(alarmsOf(template)).sort()).toEqual(["DeadLetters", "DidNotRun", "Failed"]);
  });

  test.each([
    { key: "orders" },
    { overlap: "skip" },
    { once: true },
    { lockAtMostFor: minutes(1) },
    { lockAtLeastFor: minutes(1) },
    { heartbeat: minutes(1) },
  ] as const)("has its own settings, so the job refuses %o", (props) => {
    const world = newWorld();
    const target = SingletonJobTarget.workflow(newWorkflow(world.stack));
    expect(() => addJob(world, { target, ...props })).toThrow(
      `${Object.keys(props)[0]} is set for a workflow, which has its own: set it on the LeasedWorkflow instead`,
    );
  });
});

describe("a job that queues", () => {
  function queued(options: JobOptions = {}): Template {
    const world = newWorld({ stream: true });
    const { stack, table } = world;
    const wakeup = new LeaseWakeup(stack, "Wakeup", { table, handler: functionIn(stack, "Wake") });
    return templateOf({ overlap: "queue", wakeup, ...options }, world);
  }

  test("starts a workflow that waits, and that alone may invoke the function", () => {
    const template = queued();
    template.hasResourceProperties(scheduleType, {
      Target: { Arn: { Ref: Match.stringLikeRegexp("^JobQueue") } },
    });
    const invokes = ({ Action }: { readonly Action: unknown }): boolean => Action === "lambda:InvokeFunction";
    expect(statementsIn(template, /^JobQueue/).filter(invokes)).toHaveLength(1);
    expect(statementsIn(template).filter(invokes)).toHaveLength(1);
  });

  test("keeps its place under another key than the function's, or the two would wait for each other", () => {
    const text = JSON.stringify(queued({ key: "orders" }).toJSON());
    expect(text).toContain('"dynamodb:LeadingKeys":["orders/queue"]');
    expect(text).toContain('"dynamodb:LeadingKeys":["orders"]');
  });

  test("has a function that throws while somebody outside the queue holds its lock", () => {
    queued({ lockAtLeastFor: Duration.seconds(20) }).hasResourceProperties("AWS::Lambda::Function", {
      Environment: {
        Variables: Match.objectLike({
          LEASEHOLD_WHEN_HELD: "throw",
          LEASEHOLD_LOCK_AT_LEAST_FOR_MS: Match.absent(),
        }),
      },
    });
  });

  test("has its runs wait for as long as a run may be started late", () => {
    const definitions = JSON.stringify(definitionsIn(queued({ maxEventAge: minutes(7) })));
    expect(definitions).toMatch(/"\w*waitUntil":"{% \$millis\(\) \+ 420000 %}"/);
  });

  test("is refused where nothing would wake the waiting runs, and so is a wakeup where none waits", () => {
    expect(() => addJob(newWorld(), { overlap: "queue" })).toThrow(
      'overlap is "queue", but the table Test/Leases has no stream to wake waiting runs by: ' +
        'make the LeaseTable with stream: true, or choose "skip" or "replace"',
    );
    const world = newWorld({ stream: true });
    expect(() => addJob(world, { overlap: "queue" })).toThrow(
      'overlap is "queue", but nothing would wake the waiting runs: give a LeaseWakeup of the table as wakeup',
    );
    const wakeup = new LeaseWakeup(world.stack, "Wakeup", { table: world.table });
    const target = SingletonJobTarget.lambda(functionIn(world.stack, "Idle"));
    const job = { table: world.table, schedule: everyFiveMinutes, target, wakeup };
    expect(() => new SingletonJob(world.stack, "Other", job)).toThrow(
      'wakeup is set, but no run waits: leave it out, or set overlap: "queue"',
    );
  });
});

describe("a schedule", () => {
  function scheduled(schedule: ScheduleExpression): unknown[] {
    const { Properties } = only(templateOf({ schedule }).findResources(scheduleType));
    return [Properties.ScheduleExpression, Properties.ScheduleExpressionTimezone];
  }

  test.each([
    "cron(0 3 ? * MON-FRI *)",
    "cron(0 3 15W * ? *)",
    "cron(0 3 ? * 6#3 *)",
    "cron(0/15 8-17,20 1,15 JAN,FEB ? 2026-2030)",
    "rate(1 minute)",
    "at(2026-12-24T18:00:00)",
  ])("of %s reaches the scheduler as it is", (text) => {
    expect(scheduled(ScheduleExpression.expression(text))).toEqual([text, "Etc/UTC"]);
  });

  test("has its time zone, can be for a single run, and can be known at deployment only", () => {
    const timeZone = TimeZone.EUROPE_BERLIN;
    const weekday = ScheduleExpression.cron({ minute: "0", hour: "3", day: "LW", timeZone });
    expect(scheduled(weekday)).toEqual(["cron(0 3 LW * ? *)", "Europe/Berlin"]);
    const at = ScheduleExpression.at(new Date("2026-12-24T18:00:00Z"), TimeZone.EUROPE_LONDON);
    expect(scheduled(at)).toEqual(["at(2026-12-24T18:00:00)", "Europe/London"]);
    const text = Lazy.string({ produce: () => "rate(5 minutes)" });
    expect(scheduled(ScheduleExpression.expression(text))[0]).toBe("rate(5 minutes)");
  });

  test("has a name, a start and an end, where the user gives them", () => {
    const [start, end] = [new Date("2027-01-01T00:00:00Z"), new Date("2027-07-01T00:00:00Z")];
    templateOf({ scheduleName: "close.unpaid_orders-1", start, end }).hasResourceProperties(scheduleType, {
      Name: "close.unpaid_orders-1",
      StartDate: "2027-01-01T00:00:00.000Z",
      EndDate: "2027-07-01T00:00:00.000Z",
    });
  });

  const sixFields =
    "cron has six fields: minutes, hours, day of month, month, day of week, year; it has no seconds";
  const oneDay = "set the day of the month or the day of the week, and write ? for the other";
  const wholeRate = "a rate is a whole number above 0 and minutes, hours or days";
  test.each([
    ["every 5 minutes", "use ScheduleExpression.rate, .cron or .at"],
    ["*/20 * * * * *", `use ScheduleExpression.rate, .cron or .at; ${sixFields}`],
    ["cron(*/20 * * * * *)", `${oneDay}; ${sixFields}`],
    ["rate(0 minutes)", wholeRate],
    ["rate(90 seconds)", wholeRate],
    ["cron(0 3 * * ?)", sixFields],
    ["cron(0 3 1 * MON *)", oneDay],
    ["cron(0 3 ? * ? *)", oneDay],
  ])("of %s is refused before it is deployed", (text, advice) => {
    expect(() => addJob(newWorld(), { schedule: ScheduleExpression.expression(text) })).toThrow(
      `schedule is "${text}": ${advice}`,
    );
  });
});

describe("props that cannot work together", () => {
  const once = ScheduleExpression.at(new Date(0));
  const seconds = Duration.seconds;
  test.each<[string, JobOptions]>([
    ["key has an empty key: a lock's key is a text of 1 to 2048 bytes", { key: "" }],
    ["jobName is empty: leave it out, or name the job", { jobName: "" }],
    [
      "lockAtLeastFor is 4 minutes, longer than lockAtMostFor (3 minutes)",
      { lockAtLeastFor: minutes(4), lockAtMostFor: minutes(3) },
    ],
    [
      "lockAtLeastFor is 5 minutes, but the job runs every 5 minutes, so each run would keep the next one out",
      { lockAtLeastFor: minutes(5), lockAtMostFor: minutes(5) },
    ],
    ["heartbeat is 10 seconds, but there is no lockAtMostFor to renew", { heartbeat: seconds(10) }],
    [
      "heartbeat is 30 seconds, not below half of lockAtMostFor (1 minute)",
      { heartbeat: seconds(30), lockAtMostFor: minutes(1) },
    ],
    [
      "lockAtMostFor is 1 minute, shorter than the function's timeout (2 minutes)",
      { lockAtMostFor: minutes(1) },
    ],
    ["lockAtMostFor is 0: set a time above that, or leave it out", { lockAtMostFor: seconds(0) }],
    ["maxInterval is 1 minute, but the job runs every 5 minutes", { maxInterval: minutes(1) }],
    [
      "maxInterval is 7 days, but an alarm can watch for 6 days without a run at most",
      { schedule: daily, maxInterval: Duration.days(7) },
    ],
    [
      "maxInterval is 1 hour, but the job runs a single time: leave it out",
      { schedule: once, maxInterval: Duration.hours(1) },
    ],
    ["skipsInARow is 0: set a whole number above 0", { skipsInARow: 0 }],
    ["maxEventAge is 30 seconds: set it from 1 minute to 1 day", { maxEventAge: seconds(30) }],
    ["maxEventAge is 2 days: set it from 1 minute to 1 day", { maxEventAge: Duration.days(2) }],
    ["retryAttempts is 186: set a whole number from 0 to 185", { retryAttempts: 186 }],
    ['scheduleName is "each night": set 1 to 64 letters', { scheduleName: "each night" }],
    ["start is an object of another kind: give a valid Date", { start: new Date("soon") }],
    ['end is "2027-01-01": give a valid Date', { end: "2027-01-01" as never }],
    [
      "start is 2027-01-01T00:00:00.000Z, not before end (2027-01-01T00:00:00.000Z): no run would begin",
      { start: new Date("2027-01-01"), end: new Date("2027-01-01") },
    ],
    ["end is set, but the job runs a single time", { schedule: once, end: new Date("2027-01-01") }],
  ])("are refused: %s", (message, options) => {
    expect(() => addJob(newWorld(), options)).toThrow(message);
  });

  const throwing = {
    get: () => {
      throw new TypeError("the settings are not loaded");
    },
  };
  test.each([
    [
      "its getter",
      "lockAtMostFor does not let itself be read: give a plain object of props",
      Object.defineProperty({}, "lockAtMostFor", throwing),
    ],
    [
      "a member of its value",
      "lockAtMostFor is an object of another kind: give a Duration, such as Duration.minutes(3)",
      { lockAtMostFor: Object.defineProperty({}, "toMilliseconds", throwing) },
    ],
  ])("are refused by name with the error that %s has thrown", (_what, message, options) => {
    const { stack, table } = newWorld();
    const target = SingletonJobTarget.lambda(functionIn(stack));
    const props = Object.assign(Object.create(options), { table, target, schedule: everyFiveMinutes });
    const cause = new TypeError("the settings are not loaded");
    expect(() => new SingletonJob(stack, "Job", props)).toThrow(new Error(message, { cause }));
  });

  test("are not refused where the function renews its lease, as one that can be replaced always does", () => {
    const lockAtMostFor = minutes(1);
    expect(() => addJob(newWorld(), { lockAtMostFor, overlap: "replace" })).not.toThrow();
    expect(() => addJob(newWorld(), { lockAtMostFor, heartbeat: seconds(20) })).not.toThrow();
  });

  test("are refused: more repetitions than Lambda knows", () => {
    expect(() => SingletonJobTarget.lambda(functionIn(newStack()), { retryAttempts: 3 })).toThrow(
      "retryAttempts of the function is 3: Lambda repeats a run 0, 1 or 2 times",
    );
  });
});

describe("props that work badly", () => {
  function annotations(options: JobOptions): Annotations {
    const world = newWorld();
    addJob(world, options);
    return Annotations.fromStack(world.stack);
  }

  test.each<[string, JobOptions]>([
    [
      "a run that dies keeps the lock for lockAtMostFor \\(10 minutes\\)",
      { lockAtMostFor: minutes(10), timeout: minutes(10) },
    ],
    [
      "lockAtMostFor is 4 minutes, though the function is stopped after 2 minutes",
      { lockAtMostFor: minutes(4) },
    ],
  ])("are warned of: %s", (warning, options) => {
    annotations(options).hasWarning("/Test/Job", Match.stringLikeRegexp(warning));
  });

  test("are not warned of where they fit", () => {
    annotations({ lockAtMostFor: minutes(3) }).hasNoWarning("/Test/Job", Match.anyValue());
  });

  test.each<[string, JobOptions]>([
    ["the time between runs is not known: set maxInterval", { schedule: daily }],
    [
      "runs that stay away, because the schedule has a start or an end: set maxInterval",
      { end: new Date("2027-01-01") },
    ],
  ])("are mentioned: no alarm for missed runs, %s", (info, options) => {
    annotations(options).hasInfo("/Test/Job", Match.stringLikeRegexp(info));
  });
});

describe("alarms", () => {
  const all = ["DeadLetterLost", "DeadLetters", "DidNotRun", "Failed", "LostLease", "SkippedInARow"];

  test.each<[string, JobOptions, readonly string[]]>([
    ["by default", {}, []],
    ["of a single run", { schedule: ScheduleExpression.at(new Date(0)) }, ["DidNotRun", "SkippedInARow"]],
    ["of a schedule that is not in force", { enabled: false }, ["DidNotRun"]],
    ["of a schedule with a start", { start: new Date("2027-01-01") }, ["DidNotRun"]],
    ["of a schedule with an end", { end: new Date("2027-01-01") }, ["DidNotRun"]],
    ["of one with an end, where they are asked for", { end: new Date(1e13), maxInterval: minutes(10) }, []],
    ["of runs so rare", { schedule: daily, maxInterval: Duration.days(6) }, ["SkippedInARow"]],
    ["of runs that replace each other, and lose leases on purpose", { overlap: "replace" }, ["LostLease"]],
    ["that are turned off", { alarms: false }, all],
  ])("%s are all but those that say nothing", (_, options, without) => {
    expect(Object.keys(alarmsOf(templateOf(options))).sort()).toEqual(
      all.filter((name) => !without.includes(name)),
    );
  });

  test("each say of which job they are, and where the runbook is, which can be the user's own", () => {
    const ours = Object.values(alarmsOf(templateOf())).map(({ AlarmDescription }) => AlarmDescription);
    const runbook = /close-unpaid-orders.*\nRunbook: docs\/RUNBOOK\.md#[a-z-]+$/;
    for (const description of ours) expect(description).toMatch(runbook);
    const { Failed } = alarmsOf(templateOf({ runbookUrl: "https://wiki.example/leases" }));
    expect(Failed?.AlarmDescription).toContain("Runbook: https://wiki.example/leases#failed");
  });

  test.each(["lambda", "lockedLambda"] as const)("all tell whom the user names: %s", (kind) => {
    const alarmActionArn = "arn:aws:sns:eu-west-1:111122223333:oncall";
    const action: IAlarmAction = { bind: () => ({ alarmActionArn }) };
    const world = newWorld();
    const target = SingletonJobTarget[kind](functionIn(world.stack, "Named"));
    const alarms = Object.values(alarmsOf(templateOf({ target, alarmActions: [action] }, world)));
    expect(alarms.length).toBeGreaterThan(4);
    for (const { AlarmActions } of alarms) expect(AlarmActions).toEqual([alarmActionArn]);
  });

  test("and metrics look at this job alone", () => {
    const job = addJob(newWorld());
    for (const [metric, metricName] of [
      [job.metricSucceeded(), "JobSucceeded"],
      [job.metricFailed(), "JobFailed"],
      [job.metricSkipped(), "JobSkipped"],
      [job.metricPaused(), "JobPaused"],
      [job.metricLost(), "LeaseLost"],
    ] as const)
      expect(metric).toMatchObject({ metricName, dimensions: { Job: "close-unpaid-orders" } });
  });
});
