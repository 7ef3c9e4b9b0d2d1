import { readFileSync } from "node:fs";
import {
  LeaseTable,
  LeaseWakeup,
  runbookAnchors,
  SingletonJob,
  type SingletonJobProps,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { App, Aws, CfnParameter, Duration, Lazy, Stack, TimeZone } from "aws-cdk-lib";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import type { IAlarmAction } from "aws-cdk-lib/aws-cloudwatch";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression, TimeWindow } from "aws-cdk-lib/aws-scheduler";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { DefinitionBody, Pass, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import { definitionsIn } from "../support/definitions.ts";

const alarmType = "AWS::CloudWatch::Alarm";
const everyFiveMinutes = ScheduleExpression.rate(Duration.minutes(5));
const daily = ScheduleExpression.cron({ minute: "0", hour: "3" });

interface World {
  readonly stack: Stack;
  readonly table: LeaseTable;
}

function newWorld(table: { readonly stream?: boolean } = {}): World {
  const stack = new Stack(new App(), "Test", { env: { account: "111122223333", region: "eu-west-1" } });
  return { stack, table: new LeaseTable(stack, "Leases", table) };
}

function newFunction(stack: Stack, timeout: Duration, id = "Work"): LambdaFunction {
  return new LambdaFunction(stack, id, {
    runtime: Runtime.NODEJS_24_X,
    handler: "index.handler",
    code: Code.fromInline("exports.handler = async () => {};"),
    timeout,
  });
}

function newWorkflow(stack: Stack): { stateMachine: StateMachine } {
  const definitionBody = DefinitionBody.fromChainable(new Pass(stack, "Pass"));
  return { stateMachine: new StateMachine(stack, "Workflow", { definitionBody }) };
}

type JobOptions = Partial<SingletonJobProps> & { readonly timeout?: Duration };

function addJob(
  { stack, table }: World,
  { timeout = Duration.minutes(2), ...props }: JobOptions = {},
): SingletonJob {
  return new SingletonJob(stack, "Job", {
    table,
    schedule: everyFiveMinutes,
    target: props.target ?? SingletonJobTarget.lambda(newFunction(stack, timeout)),
    jobName: "close-unpaid-orders",
    ...props,
  });
}

/** The template of a stack with one job. */
function templateOf(options?: JobOptions, world: World = newWorld()): Template {
  addJob(world, options);
  return Template.fromStack(world.stack);
}

function only<T>(found: Record<string, T>): T {
  const [one, ...more] = Object.values(found);
  if (one === undefined || more.length > 0) throw new Error(`${more.length} more, or none`);
  return one;
}

const alarmsOf = (template: Template): Record<string, Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(template.findResources(alarmType)).map(([id, { Properties }]) => [
      id.replace(/^JobAlarms(.*).{8}$/, "$1"),
      Properties,
    ]),
  );

describe("a job that is a function", () => {
  test("is sent its name, its scheduled time and the user's input", () => {
    const template = templateOf({ input: { dryRun: true } });
    const { Properties } = only(template.findResources("AWS::Scheduler::Schedule"));
    expect(JSON.parse(Properties.Target.Input)).toEqual({
      job: "close-unpaid-orders",
      scheduledTime: "<aws.scheduler.scheduled-time>",
      executionId: "<aws.scheduler.execution-id>",
      input: { dryRun: true },
    });
  });

  test("has its settings in its environment", () => {
    const options = {
      key: "orders",
      lockAtMostFor: Duration.minutes(3),
      lockAtLeastFor: Duration.seconds(30),
    };
    templateOf(options).hasResourceProperties("AWS::Lambda::Function", {
      Environment: {
        Variables: {
          LEASEHOLD_TABLE_NAME: { Ref: Match.stringLikeRegexp("^Leases") },
          LEASEHOLD_KEY: "orders",
          LEASEHOLD_JOB: "close-unpaid-orders",
          LEASEHOLD_WHEN_HELD: "skip",
          LEASEHOLD_ONCE: "true",
          LEASEHOLD_LOCK_AT_MOST_FOR_MS: "180000",
          LEASEHOLD_LOCK_AT_LEAST_FOR_MS: "30000",
        },
      },
    });
  });

  test("by default sizes its lease itself, skips, and runs once for each scheduled time", () => {
    const { Properties } = only(templateOf().findResources("AWS::Lambda::Function"));
    expect(Properties.Environment.Variables).toEqual({
      LEASEHOLD_TABLE_NAME: expect.anything(),
      LEASEHOLD_KEY: "close-unpaid-orders",
      LEASEHOLD_JOB: "close-unpaid-orders",
      LEASEHOLD_WHEN_HELD: "skip",
      LEASEHOLD_ONCE: "true",
    });
  });

  test("can replace the run before it, and run more than once for a scheduled time", () => {
    templateOf({ overlap: "replace", once: false }).hasResourceProperties("AWS::Lambda::Function", {
      Environment: {
        Variables: Match.objectLike({ LEASEHOLD_WHEN_HELD: "replace", LEASEHOLD_ONCE: "false" }),
      },
    });
  });

  test("may use its own lock and no other, on this table and no other", () => {
    const { Properties } = only(
      templateOf({ key: "orders" }).findResources("AWS::IAM::Policy", {
        Properties: { PolicyName: Match.stringLikeRegexp("^WorkServiceRole") },
      }),
    );
    expect(Properties.PolicyDocument.Statement).toEqual([
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
        Resource: { "Fn::GetAtt": [expect.stringMatching(/^JobDeadLetters/), "Arn"] },
      },
    ]);
  });

  test("is invoked by a role that may do just that, and write to the dead-letter queue", () => {
    const { Properties } = only(
      templateOf().findResources("AWS::IAM::Policy", {
        Properties: { PolicyName: Match.stringLikeRegexp("^SchedulerRole") },
      }),
    );
    expect(Properties.PolicyDocument.Statement).toEqual([
      {
        Effect: "Allow",
        Action: "lambda:InvokeFunction",
        Resource: { "Fn::GetAtt": [expect.stringMatching(/^Work/), "Arn"] },
      },
      {
        Effect: "Allow",
        Action: "sqs:SendMessage",
        Resource: { "Fn::GetAtt": [expect.stringMatching(/^JobDeadLetters/), "Arn"] },
      },
    ]);
  });

  test("every minute leaves Lambda the time for its retries, the first of which comes after a minute", () => {
    const template = templateOf({ schedule: ScheduleExpression.rate(Duration.minutes(1)) });
    template.hasResourceProperties("AWS::Lambda::EventInvokeConfig", { MaximumEventAgeInSeconds: 300 });
    template.hasResourceProperties("AWS::Scheduler::Schedule", {
      Target: { RetryPolicy: { MaximumEventAgeInSeconds: 60 } },
    });
  });

  test("is not started when the next run is due, and its failures end in an encrypted queue", () => {
    const template = templateOf();
    template.hasResourceProperties("AWS::Scheduler::Schedule", {
      FlexibleTimeWindow: { Mode: "OFF" },
      State: "ENABLED",
      Target: {
        RetryPolicy: { MaximumEventAgeInSeconds: 300, MaximumRetryAttempts: 185 },
        DeadLetterConfig: { Arn: { "Fn::GetAtt": [Match.stringLikeRegexp("^JobDeadLetters"), "Arn"] } },
      },
    });
    template.hasResourceProperties("AWS::Lambda::EventInvokeConfig", {
      MaximumRetryAttempts: 2,
      MaximumEventAgeInSeconds: 300,
      DestinationConfig: {
        OnFailure: { Destination: { "Fn::GetAtt": [Match.stringLikeRegexp("^JobDeadLetters"), "Arn"] } },
      },
    });
    template.hasResourceProperties("AWS::SQS::Queue", {
      SqsManagedSseEnabled: true,
      MessageRetentionPeriod: 1_209_600,
    });
    template.hasResourceProperties("AWS::SQS::QueuePolicy", {
      PolicyDocument: {
        Statement: [
          Match.objectLike({ Effect: "Deny", Condition: { Bool: { "aws:SecureTransport": "false" } } }),
        ],
      },
    });
  });

  test("takes the user's retries, queue and time window", () => {
    const world = newWorld();
    const deadLetterQueue = new Queue(world.stack, "Mine");
    const target = SingletonJobTarget.lambda(newFunction(world.stack, Duration.minutes(2)), {
      retryAttempts: 0,
    });
    const template = templateOf(
      {
        deadLetterQueue,
        target,
        retryAttempts: 3,
        maxEventAge: Duration.minutes(2),
        timeWindow: TimeWindow.flexible(Duration.minutes(1)),
        enabled: false,
      },
      world,
    );
    template.resourceCountIs("AWS::SQS::Queue", 1);
    template.hasResourceProperties("AWS::Scheduler::Schedule", {
      FlexibleTimeWindow: { Mode: "FLEXIBLE", MaximumWindowInMinutes: 1 },
      State: "DISABLED",
      Target: { RetryPolicy: { MaximumEventAgeInSeconds: 120, MaximumRetryAttempts: 3 } },
    });
    template.hasResourceProperties("AWS::Lambda::EventInvokeConfig", { MaximumRetryAttempts: 0 });
  });

  test("may be started once and not again: the user's 0 is no absence of retries", () => {
    templateOf({ retryAttempts: 0 }).hasResourceProperties("AWS::Scheduler::Schedule", {
      Target: { RetryPolicy: { MaximumRetryAttempts: 0 } },
    });
  });

  test("keeps what its own definition says about asynchronous invocations", () => {
    const world = newWorld();
    const fn = newFunction(world.stack, Duration.minutes(2));
    fn.configureAsyncInvoke({ retryAttempts: 1 });
    templateOf({ target: SingletonJobTarget.lambda(fn) }, world).hasResourceProperties(
      "AWS::Lambda::EventInvokeConfig",
      { MaximumRetryAttempts: 1, DestinationConfig: Match.absent() },
    );
  });

  test("has a name of its own unless it is given one, which is its key as well", () => {
    const { stack, table } = newWorld();
    const names = ["Close", "Open"].map((id) => {
      const target = SingletonJobTarget.lambda(newFunction(stack, Duration.seconds(9), `${id}Work`));
      const job = new SingletonJob(stack, id, { table, target, schedule: everyFiveMinutes });
      expect(job.key).toBe(job.jobName);
      return job.jobName;
    });
    expect(new Set(names).size).toBe(2);
  });

  test("can have a key that is known at deployment only", () => {
    templateOf({ key: Aws.STACK_NAME }).hasResourceProperties("AWS::Lambda::Function", {
      Environment: { Variables: Match.objectLike({ LEASEHOLD_KEY: { Ref: "AWS::StackName" } }) },
    });
  });
});

describe("a job that is a workflow", () => {
  test("is started with the same input, by a role that may do just that", () => {
    const world = newWorld();
    const template = templateOf({ target: SingletonJobTarget.workflow(newWorkflow(world.stack)) }, world);
    const { Properties } = only(template.findResources("AWS::Scheduler::Schedule"));
    expect(JSON.parse(Properties.Target.Input)).toMatchObject({
      job: "close-unpaid-orders",
      scheduledTime: "<aws.scheduler.scheduled-time>",
    });
    template.hasResourceProperties("AWS::IAM::Policy", {
      PolicyDocument: {
        Statement: Match.arrayWith([
          {
            Effect: "Allow",
            Action: "states:StartExecution",
            Resource: { Ref: Match.stringLikeRegexp("^Workflow") },
          },
        ]),
      },
    });
  });

  test("is watched by its executions, and not for what these do not tell apart", () => {
    const world = newWorld();
    const alarms = alarmsOf(
      templateOf({ target: SingletonJobTarget.workflow(newWorkflow(world.stack)) }, world),
    );
    expect(Object.keys(alarms).sort()).toEqual(["DeadLetters", "DidNotRun", "Failed"]);
    const text = JSON.stringify(alarms.Failed);
    for (const name of ["ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"])
      expect(text).toContain(name);
  });

  test.each([
    { key: "orders" },
    { overlap: "skip" },
    { once: true },
    { lockAtMostFor: Duration.minutes(1) },
    { lockAtLeastFor: Duration.minutes(1) },
    { heartbeat: Duration.minutes(1) },
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
    const wakeup = new LeaseWakeup(stack, "Wakeup", {
      table,
      handler: newFunction(stack, Duration.minutes(1), "Wake"),
    });
    return templateOf({ overlap: "queue", wakeup, ...options }, world);
  }

  test("starts a workflow that waits, and that alone may invoke the function", () => {
    const template = queued();
    template.hasResourceProperties("AWS::Scheduler::Schedule", {
      Target: { Arn: { Ref: Match.stringLikeRegexp("^JobQueue") } },
    });
    const invoking = Object.values(template.findResources("AWS::IAM::Policy")).filter(({ Properties }) =>
      JSON.stringify(Properties.PolicyDocument.Statement).includes("lambda:InvokeFunction"),
    );
    expect(invoking.map(({ Properties }) => Properties.PolicyName)).toEqual([
      expect.stringMatching(/^JobQueue/),
    ]);
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
    const definitions = JSON.stringify(definitionsIn(queued({ maxEventAge: Duration.minutes(7) })));
    expect(definitions).toMatch(/"\w*waitUntil":"{% \$millis\(\) \+ 420000 %}"/);
  });

  test("is refused without a stream", () => {
    expect(() => addJob(newWorld(), { overlap: "queue" })).toThrow(
      'overlap is "queue", but the table Test/Leases has no stream to wake waiting runs by: ' +
        'make the LeaseTable with stream: true, or choose "skip" or "replace"',
    );
  });

  test("is refused where nothing would wake the waiting runs", () => {
    expect(() => addJob(newWorld({ stream: true }), { overlap: "queue" })).toThrow(
      'overlap is "queue", but nothing would wake the waiting runs: give a LeaseWakeup of the table as wakeup',
    );
  });

  test("is the only one that is given something to wake it", () => {
    const world = newWorld({ stream: true });
    const handler = newFunction(world.stack, Duration.minutes(1), "Wake");
    const wakeup = new LeaseWakeup(world.stack, "Wakeup", { table: world.table, handler });
    expect(() => addJob(world, { wakeup })).toThrow(
      'wakeup is set, but no run waits: leave it out, or set overlap: "queue"',
    );
  });
});

describe("a schedule", () => {
  function scheduled(schedule: ScheduleExpression): unknown[] {
    const { Properties } = only(templateOf({ schedule }).findResources("AWS::Scheduler::Schedule"));
    return [Properties.ScheduleExpression, Properties.ScheduleExpressionTimezone];
  }

  test.each([
    ["cron(0 3 ? * MON-FRI *)"],
    ["cron(0 3 L * ? *)"],
    ["cron(0 3 15W * ? *)"],
    ["cron(0 3 LW * ? *)"],
    ["cron(0 3 ? * 6#3 *)"],
    ["cron(0 3 ? * 6L 2026-2030)"],
    ["cron(0/15 8-17,20 1,15 JAN,FEB ? *)"],
    ["rate(1 minute)"],
    ["rate(7 days)"],
    ["at(2026-12-24T18:00:00)"],
  ])("of %s reaches the scheduler as it is", (text) => {
    expect(scheduled(ScheduleExpression.expression(text))).toEqual([text, "Etc/UTC"]);
  });

  test("has its time zone", () => {
    const timeZone = TimeZone.EUROPE_BERLIN;
    expect(scheduled(ScheduleExpression.cron({ minute: "0", hour: "3", day: "LW", timeZone }))).toEqual([
      "cron(0 3 LW * ? *)",
      "Europe/Berlin",
    ]);
  });

  test("can be for a single run", () => {
    const at = ScheduleExpression.at(new Date("2026-12-24T18:00:00Z"), TimeZone.EUROPE_LONDON);
    expect(scheduled(at)).toEqual(["at(2026-12-24T18:00:00)", "Europe/London"]);
  });

  test("has a name, a start and an end, where the user gives them", () => {
    const [start, end] = [new Date("2027-01-01T00:00:00Z"), new Date("2027-07-01T00:00:00Z")];
    templateOf({ scheduleName: "close.unpaid_orders-1", start, end }).hasResourceProperties(
      "AWS::Scheduler::Schedule",
      {
        Name: "close.unpaid_orders-1",
        StartDate: "2027-01-01T00:00:00.000Z",
        EndDate: "2027-07-01T00:00:00.000Z",
      },
    );
  });

  test("can be known at deployment only", () => {
    const text = Lazy.string({ produce: () => "rate(5 minutes)" });
    expect(scheduled(ScheduleExpression.expression(text))[0]).toBe("rate(5 minutes)");
  });

  test.each([
    ["every 5 minutes", "use ScheduleExpression.rate, .cron or .at"],
    [
      "*/20 * * * * *",
      "use ScheduleExpression.rate, .cron or .at; cron has six fields: minutes, hours, day of month, month, day of week, year; it has no seconds, and day 1 of a week is Sunday",
    ],
    [
      "cron(*/20 * * * * *)",
      "set the day of the month or the day of the week, and write ? for the other; cron has six fields: minutes, hours, day of month, month, day of week, year; it has no seconds, and day 1 of a week is Sunday",
    ],
    ["rate(0 minutes)", "a rate is a whole number above 0 and minutes, hours or days"],
    ["rate(90 seconds)", "a rate is a whole number above 0 and minutes, hours or days"],
    ["cron(0 3 * * ?)", "cron has six fields: minutes, hours, day of month, month, day of week, year"],
    ["cron(0 3 * * * *)", "set the day of the month or the day of the week, and write ? for the other"],
    ["cron(0 3 1 * MON *)", "set the day of the month or the day of the week, and write ? for the other"],
    ["cron(0 3 ? * ? *)", "set the day of the month or the day of the week, and write ? for the other"],
  ])("of %s is refused before it is deployed", (text, advice) => {
    expect(() => addJob(newWorld(), { schedule: ScheduleExpression.expression(text) })).toThrow(
      `schedule is "${text}": ${advice}`,
    );
  });
});

describe("props that cannot work together", () => {
  test.each<[string, JobOptions]>([
    ["key has an empty key: a lock's key is a text of 1 to 2048 bytes", { key: "" }],
    ["key has a key of 2049 bytes", { key: "k".repeat(2049) }],
    ["jobName is empty: leave it out, or name the job", { jobName: "" }],
    [
      "lockAtLeastFor is 4 minutes, longer than lockAtMostFor (3 minutes): shorten it, or lengthen lockAtMostFor",
      { lockAtLeastFor: Duration.minutes(4), lockAtMostFor: Duration.minutes(3) },
    ],
    [
      "lockAtLeastFor is 5 minutes, but the job runs every 5 minutes, so each run would keep the next one out: " +
        "shorten it below the interval",
      { lockAtLeastFor: Duration.minutes(5), lockAtMostFor: Duration.minutes(5) },
    ],
    [
      "heartbeat is 10 seconds, but there is no lockAtMostFor to renew: set it to more than twice that, " +
        "or leave heartbeat out, and the lease covers the whole run",
      { heartbeat: Duration.seconds(10) },
    ],
    [
      "heartbeat is 30 seconds, not below half of lockAtMostFor (1 minute), so one lost renewal would lose the " +
        "lease: beat more often, or lengthen lockAtMostFor",
      { heartbeat: Duration.seconds(30), lockAtMostFor: Duration.minutes(1) },
    ],
    [
      "lockAtMostFor is 1 minute, shorter than the function's timeout (2 minutes), so a second run could start " +
        "while the first one works: lengthen it, shorten the timeout, or set heartbeat",
      { lockAtMostFor: Duration.minutes(1) },
    ],
    ["lockAtMostFor is 0: set a time above that, or leave it out", { lockAtMostFor: Duration.seconds(0) }],
    [
      "maxInterval is 1 minute, but the job runs every 5 minutes: lengthen it beyond that",
      { maxInterval: Duration.minutes(1) },
    ],
    [
      "maxInterval is 7 days, but an alarm can watch for 6 days without a run at most: leave it out, and watch so rare " +
        "a job by its failures",
      { schedule: daily, maxInterval: Duration.days(7) },
    ],
    [
      "maxInterval is 1 hour, but the job runs a single time: leave it out",
      { schedule: ScheduleExpression.at(new Date(0)), maxInterval: Duration.hours(1) },
    ],
    ["skipsInARow is 0: set a whole number above 0", { skipsInARow: 0 }],
    ["maxEventAge is 30 seconds: set it from 1 minute to 1 day", { maxEventAge: Duration.seconds(30) }],
    ["maxEventAge is 2 days: set it from 1 minute to 1 day", { maxEventAge: Duration.days(2) }],
    ["retryAttempts is 186: set a whole number from 0 to 185", { retryAttempts: 186 }],
    [
      'scheduleName is "each night": set 1 to 64 letters, digits, hyphens, underscores or dots',
      { scheduleName: "each night" },
    ],
    ["start is an object of another kind: give a valid Date", { start: new Date("soon") }],
    ['end is "2027-01-01": give a valid Date', { end: "2027-01-01" as never }],
    [
      "start is 2027-01-01T00:00:00.000Z, not before end (2027-01-01T00:00:00.000Z): no run would begin; set a later end",
      { start: new Date("2027-01-01"), end: new Date("2027-01-01") },
    ],
    [
      "end is set, but the job runs a single time, which the schedule names: leave it out",
      { schedule: ScheduleExpression.at(new Date(0)), end: new Date("2027-01-01") },
    ],
  ])("are refused: %s", (message, options) => {
    expect(() => addJob(newWorld(), options)).toThrow(message);
  });

  test("are let through while they are known at deployment only", () => {
    const { stack, table } = newWorld();
    const unknown = Duration.millis(new CfnParameter(stack, "Most", { type: "Number" }).valueAsNumber);
    for (const [index, props] of [
      { lockAtMostFor: unknown, heartbeat: Duration.minutes(1) },
      { lockAtMostFor: Duration.minutes(3), heartbeat: unknown },
      { lockAtMostFor: Duration.minutes(3), lockAtLeastFor: unknown },
    ].entries()) {
      const fn = newFunction(stack, Duration.minutes(2), `Work${index}`);
      const target = SingletonJobTarget.lambda(fn);
      new SingletonJob(stack, `Job${index}`, { table, target, schedule: everyFiveMinutes, ...props });
    }
    Template.fromStack(stack).hasResourceProperties("AWS::Lambda::Function", {
      Environment: { Variables: Match.objectLike({ LEASEHOLD_LOCK_AT_MOST_FOR_MS: { Ref: "Most" } }) },
    });
  });

  test("are not refused where the function renews its lease, as one that can be replaced always does", () => {
    const lockAtMostFor = Duration.minutes(1);
    expect(() => addJob(newWorld(), { lockAtMostFor, overlap: "replace" })).not.toThrow();
    expect(() => addJob(newWorld(), { lockAtMostFor, heartbeat: Duration.seconds(20) })).not.toThrow();
  });

  test("are refused: one function for two jobs", () => {
    const { stack, table } = newWorld();
    const target = SingletonJobTarget.lambda(newFunction(stack, Duration.minutes(1)));
    const props = { table, target, schedule: everyFiveMinutes };
    new SingletonJob(stack, "First", props);
    expect(() => new SingletonJob(stack, "Second", props)).toThrow(
      "the function Test/Work already serves the job Test/First: define a function for each job",
    );
  });

  test("are refused: more repetitions than Lambda knows", () => {
    const fn = newFunction(newWorld().stack, Duration.minutes(1));
    expect(() => SingletonJobTarget.lambda(fn, { retryAttempts: 3 })).toThrow(
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

  test("are warned of: a lock that outlasts the interval", () => {
    annotations({ lockAtMostFor: Duration.minutes(10), timeout: Duration.minutes(10) }).hasWarning(
      "/Test/Job",
      Match.stringLikeRegexp("a run that dies keeps the lock for lockAtMostFor \\(10 minutes\\)"),
    );
  });

  test("are warned of: a lock that outlasts the function", () => {
    annotations({ lockAtMostFor: Duration.minutes(4) }).hasWarning(
      "/Test/Job",
      Match.stringLikeRegexp("lockAtMostFor is 4 minutes, though the function is stopped after 2 minutes"),
    );
  });

  test("are not warned of where they fit", () => {
    annotations({ lockAtMostFor: Duration.minutes(3) }).hasNoWarning("/Test/Job", Match.anyValue());
  });

  test("are mentioned: a cron expression without maxInterval has no alarm for missed runs", () => {
    annotations({ schedule: daily }).hasInfo(
      "/Test/Job",
      Match.stringLikeRegexp("the time between runs is not known: set maxInterval"),
    );
  });

  test("are mentioned: a schedule with an end and without maxInterval has no alarm for missed runs", () => {
    annotations({ end: new Date("2027-01-01") }).hasInfo(
      "/Test/Job",
      Match.stringLikeRegexp(
        "runs that stay away, because the schedule has a start or an end: set maxInterval",
      ),
    );
  });
});

describe("alarms", () => {
  const all = ["DeadLetterLost", "DeadLetters", "DidNotRun", "Failed", "LostLease", "SkippedInARow"];

  test("tell of runs that stay away, fail, lose their lease, are skipped in a row, or are given up", () => {
    expect(Object.keys(alarmsOf(templateOf())).sort()).toEqual(all);
  });

  test("each say what is wrong, and refer to an entry that the runbook has", () => {
    const runbook = readFileSync(new URL("../../docs/RUNBOOK.md", import.meta.url), "utf8");
    const sections = new Map(
      runbook
        .split(/^## /m)
        .slice(1)
        .map((section) => {
          const [title = "", ...body] = section.split("\n");
          return [title.toLowerCase().replaceAll(" ", "-"), body.join("\n")] as const;
        }),
    );
    for (const anchor of Object.values(runbookAnchors)) {
      for (const part of ["Look", "Do"]) expect(sections.get(anchor), anchor).toContain(`**${part}`);
    }
    expect([...sections.keys()]).toEqual(expect.arrayContaining(Object.values(runbookAnchors)));
    for (const { AlarmDescription } of Object.values(alarmsOf(templateOf()))) {
      const [what, where] = String(AlarmDescription).split("\n");
      expect(what).toContain("close-unpaid-orders");
      const [, anchor = ""] = /^Runbook: docs\/RUNBOOK\.md#(.+)$/.exec(where ?? "") ?? [];
      expect(sections.has(anchor), anchor).toBe(true);
    }
  });

  test("refer to the user's own runbook", () => {
    const alarms = alarmsOf(templateOf({ runbookUrl: "https://wiki.example/leases" }));
    expect(alarms.Failed?.AlarmDescription).toContain("Runbook: https://wiki.example/leases#failed");
  });

  test("take silence for a job that did not run, for twice the interval and the time window, and for late metrics", () => {
    const timeWindow = TimeWindow.flexible(Duration.minutes(2));
    const { DidNotRun } = alarmsOf(templateOf({ timeWindow }));
    // 12 minutes and 5 for what is late, in whole periods, and one more.
    expect(DidNotRun).toMatchObject({
      ComparisonOperator: "LessThanThreshold",
      Threshold: 1,
      EvaluationPeriods: 10,
      DatapointsToAlarm: 10,
      TreatMissingData: "breaching",
      WarmUpConfiguration: {
        WarmUpPeriodDurationInMinutes: 20,
        OnlyStartEvaluatingAfterWarmUpPeriodEnds: true,
      },
    });
    const text = JSON.stringify(DidNotRun);
    expect(text).toContain('"Expression":"SUM([FILL(succeeded, 0), FILL(skipped, 0), FILL(paused, 0)])"');
    expect(text).toContain('"Period":120');
    expect(text).toContain('"MetricName":"JobSucceeded"');
    expect(text).toContain('"MetricName":"JobSkipped"');
  });

  test("take silence elsewhere for good news, and in a dead-letter queue for none", () => {
    const { DidNotRun: _, DeadLetters, ...others } = alarmsOf(templateOf());
    expect(DeadLetters?.TreatMissingData).toBe("ignore");
    for (const { TreatMissingData } of Object.values(others)) expect(TreatMissingData).toBe("notBreaching");
  });

  test("count skips without a success over as many intervals, and the last minutes, whose metrics may be late", () => {
    const { SkippedInARow } = alarmsOf(templateOf({ skipsInARow: 3 }));
    expect(SkippedInARow).toMatchObject({ Threshold: 3, EvaluationPeriods: 1 });
    expect(JSON.stringify(SkippedInARow)).toContain('"Period":1200');
  });

  test.each([
    ["a minute", ScheduleExpression.rate(Duration.minutes(1)), undefined],
    ["an hour", ScheduleExpression.rate(Duration.hours(1)), undefined],
    ["seven hours", ScheduleExpression.rate(Duration.hours(7)), undefined],
    ["a day", daily, Duration.hours(25)],
    ["three days", ScheduleExpression.rate(Duration.days(3)), undefined],
    ["six days", daily, Duration.days(6)],
  ])("of a job that runs every %s stay within what CloudWatch evaluates", (_, schedule, maxInterval) => {
    const options = { schedule, ...(maxInterval ? { maxInterval } : {}), timeout: Duration.seconds(30) };
    const alarms = Object.entries(alarmsOf(templateOf(options)));
    expect(alarms.map(([name]) => name)).toContain("DidNotRun");
    for (const [name, alarm] of alarms) {
      const [, period] = /"Period":(\d+)/.exec(JSON.stringify(alarm)) ?? [];
      const seconds = Number(period);
      expect(seconds % 60, name).toBe(0);
      expect(seconds, name).toBeLessThanOrEqual(86_400);
      const longest = seconds < 3600 ? 86_400 : 604_800;
      expect(seconds * Number(alarm.EvaluationPeriods), name).toBeLessThanOrEqual(longest);
    }
  });

  test("of skips are left out where five intervals are more than CloudWatch looks back on", () => {
    const rare = { schedule: daily, maxInterval: Duration.days(6) };
    expect(Object.keys(alarmsOf(templateOf(rare)))).not.toContain("SkippedInARow");
  });

  test("for missed runs are left out of single runs, and of schedules that are not in force", () => {
    const once = templateOf({ schedule: ScheduleExpression.at(new Date("2026-12-24T18:00:00Z")) });
    expect(Object.keys(alarmsOf(once)).sort()).toEqual([
      "DeadLetterLost",
      "DeadLetters",
      "Failed",
      "LostLease",
    ]);
    expect(Object.keys(alarmsOf(templateOf({ enabled: false })))).not.toContain("DidNotRun");
  });

  test.each(["start", "end"])(
    "for missed runs are left out where the schedule has a %s, unless they are asked for",
    (bound) => {
      const bounded = { [bound]: new Date("2027-01-01") };
      expect(Object.keys(alarmsOf(templateOf(bounded))).sort()).toEqual(
        all.filter((each) => each !== "DidNotRun"),
      );
      const asked = templateOf({ ...bounded, maxInterval: Duration.minutes(10) });
      expect(Object.keys(alarmsOf(asked))).toContain("DidNotRun");
    },
  );

  test("count skips in parts of less than a day, where the intervals add up to more", () => {
    const schedule = ScheduleExpression.rate(Duration.hours(7));
    const { SkippedInARow } = alarmsOf(templateOf({ schedule }));
    expect(SkippedInARow).toMatchObject({ Threshold: 2, EvaluationPeriods: 2 });
    expect(JSON.stringify(SkippedInARow)).toContain('"Period":63180');
  });

  test("for lost leases are left out where runs replace each other, and lose them on purpose", () => {
    expect(Object.keys(alarmsOf(templateOf({ overlap: "replace" })))).not.toContain("LostLease");
  });

  test("can be turned off", () => {
    templateOf({ alarms: false }).resourceCountIs(alarmType, 0);
  });

  test.each(["lambda", "lockedLambda"] as const)("all tell whom the user names: %s", (kind) => {
    const action: IAlarmAction = {
      bind: () => ({ alarmActionArn: "arn:aws:sns:eu-west-1:111122223333:oncall" }),
    };
    const world = newWorld();
    const target = SingletonJobTarget[kind](newFunction(world.stack, Duration.minutes(1), "Named"));
    const alarms = Object.entries(alarmsOf(templateOf({ target, alarmActions: [action] }, world)));
    expect(alarms.length).toBeGreaterThan(4);
    for (const [id, { AlarmActions }] of alarms) {
      expect([id, AlarmActions]).toEqual([id, ["arn:aws:sns:eu-west-1:111122223333:oncall"]]);
    }
  });

  test("and metrics look at this job alone", () => {
    const job = addJob(newWorld());
    const metrics = [
      job.metricSucceeded(),
      job.metricFailed(),
      job.metricSkipped(),
      job.metricPaused(),
      job.metricLost(),
    ];
    expect(metrics.map(({ metricName }) => metricName)).toEqual([
      "JobSucceeded",
      "JobFailed",
      "JobSkipped",
      "JobPaused",
      "LeaseLost",
    ]);
    for (const { dimensions } of metrics) expect(dimensions).toMatchObject({ Job: "close-unpaid-orders" });
  });
});
