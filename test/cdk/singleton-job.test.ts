import { SingletonJobTarget, SingletonJobTrigger } from "@leasehold/cdk";
import { Duration, Lazy, TimeZone } from "aws-cdk-lib";
import { Annotations, Match } from "aws-cdk-lib/assertions";
import { Key } from "aws-cdk-lib/aws-kms";
import { ScheduleExpression, TimeWindow } from "aws-cdk-lib/aws-scheduler";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { describe, expect, test } from "vitest";
import { functionIn, only, statementsIn } from "../support/constructs.ts";
import { definitionsIn } from "../support/definitions.ts";
import { type JobProps, JobWorld } from "../support/jobs.ts";

const { minutes, seconds } = Duration;
const { lambda, workflow } = SingletonJobTarget;
const attributeOf = (name: string, attribute = "Arn") => ({
  "Fn::GetAtt": [Match.stringLikeRegexp(`^${name}`), attribute],
});
const daily = ScheduleExpression.cron({ minute: "0", hour: "3" });
const [start, end] = [new Date("2027-01-01T00:00:00Z"), new Date("2027-07-01T00:00:00Z")];

/** The properties of a resource of each type, or how many there are. */
type Resources = Readonly<Record<string, object | number>>;
const [queues, schedules, configs, machines] = [
  "AWS::SQS::Queue",
  "AWS::Scheduler::Schedule",
  "AWS::Lambda::EventInvokeConfig",
  "AWS::StepFunctions::StateMachine",
];
const scheduled = (properties: object): Resources => ({ [schedules]: properties });
const invoked = (properties: object): Resources => ({ [configs]: properties });
const consumed = (properties: object): Resources => ({ "AWS::Lambda::EventSourceMapping": properties });
const environment = (Variables: object): Resources => ({
  "AWS::Lambda::Function": { Environment: { Variables } },
});
const byDefault = {
  LEASEHOLD_TABLE_NAME: { Ref: Match.stringLikeRegexp("^Leases") },
  LEASEHOLD_KEY: "close-unpaid-orders",
  LEASEHOLD_JOB: "close-unpaid-orders",
  LEASEHOLD_WHEN_HELD: "skip",
  LEASEHOLD_ONCE: "true",
};
const lockTimes = { lockAtMostFor: minutes(3), lockAtLeastFor: seconds(30) };
const later = Duration.millis(Lazy.number({ produce: () => 60_000 }));

test.each<[string, JobProps | ((world: JobWorld) => JobProps), Resources]>([
  ["skips, and runs once for each scheduled time", {}, environment(Match.objectEquals(byDefault))],
  [
    "has its settings in its function's environment",
    { key: "orders", overlap: "replace", once: false, ...lockTimes },
    environment({
      ...byDefault,
      LEASEHOLD_KEY: "orders",
      LEASEHOLD_WHEN_HELD: "replace",
      LEASEHOLD_ONCE: "false",
      LEASEHOLD_LOCK_AT_MOST_FOR_MS: "180000",
      LEASEHOLD_LOCK_AT_LEAST_FOR_MS: "30000",
    }),
  ],
  [
    "has settings there that are known at deployment only",
    { lockAtMostFor: later, lockAtLeastFor: later, heartbeat: later },
    environment({
      LEASEHOLD_LOCK_AT_MOST_FOR_MS: "60000",
      LEASEHOLD_LOCK_AT_LEAST_FOR_MS: "60000",
      LEASEHOLD_HEARTBEAT_MS: "60000",
    }),
  ],
  [
    "that queues throws while somebody outside the queue holds its lock, and has its cooldown in the queue",
    (world) => ({ overlap: "queue", wakeup: world.wakeup(), lockAtLeastFor: seconds(20) }),
    environment({ LEASEHOLD_WHEN_HELD: "throw", LEASEHOLD_LOCK_AT_LEAST_FOR_MS: Match.absent() }),
  ],
  [
    "is not started when the next run is due, and its failures end in an encrypted queue",
    {},
    {
      ...scheduled({
        FlexibleTimeWindow: { Mode: "OFF" },
        State: "ENABLED",
        Target: {
          RetryPolicy: { MaximumEventAgeInSeconds: 300, MaximumRetryAttempts: 185 },
          DeadLetterConfig: { Arn: attributeOf("JobDeadLetters") },
        },
      }),
      ...invoked({
        MaximumRetryAttempts: 2,
        MaximumEventAgeInSeconds: 300,
        DestinationConfig: { OnFailure: { Destination: attributeOf("JobDeadLetters") } },
      }),
      [queues]: { SqsManagedSseEnabled: true, MessageRetentionPeriod: 1_209_600 },
      "AWS::SQS::QueuePolicy": {
        PolicyDocument: {
          Statement: [
            Match.objectLike({
              Effect: "Deny",
              Condition: { Bool: { "aws:SecureTransport": "false" } },
            }),
          ],
        },
      },
    },
  ],
  [
    "of every minute leaves Lambda the time for its retries, the first of which comes after a minute",
    { schedule: ScheduleExpression.rate(minutes(1)) },
    {
      ...scheduled({ Target: { RetryPolicy: { MaximumEventAgeInSeconds: 60 } } }),
      ...invoked({ MaximumEventAgeInSeconds: 300 }),
    },
  ],
  [
    "takes the user's retries, also none, and the user's queue, time window, name, start and end",
    ({ stack, fn }) => ({
      deadLetterQueue: new Queue(stack, "Mine"),
      target: lambda(fn, { retryAttempts: 0 }),
      timeWindow: TimeWindow.flexible(minutes(1)),
      retryAttempts: 0,
      maxEventAge: minutes(2),
      enabled: false,
      scheduleName: "close.unpaid_orders-1",
      start,
      end,
    }),
    {
      ...scheduled({
        FlexibleTimeWindow: { Mode: "FLEXIBLE", MaximumWindowInMinutes: 1 },
        State: "DISABLED",
        Target: {
          RetryPolicy: { MaximumEventAgeInSeconds: 120, MaximumRetryAttempts: 0 },
          DeadLetterConfig: { Arn: attributeOf("Mine") },
        },
        Name: "close.unpaid_orders-1",
        StartDate: "2027-01-01T00:00:00.000Z",
        EndDate: "2027-07-01T00:00:00.000Z",
      }),
      ...invoked({
        MaximumRetryAttempts: 0,
        DestinationConfig: { OnFailure: { Destination: attributeOf("Mine") } },
      }),
      [queues]: 1,
    },
  ],
  [
    "keeps what its function's own definition says about asynchronous invocations",
    ({ fn }) => {
      fn.configureAsyncInvoke({ retryAttempts: 1 });
      return {};
    },
    invoked({ MaximumRetryAttempts: 1, DestinationConfig: Match.absent() }),
  ],
  [
    "of a queue gets one message a run, at the smallest concurrency that there is",
    (world) => ({ trigger: world.queue() }),
    {
      ...consumed({
        EventSourceArn: attributeOf("Orders"),
        FunctionName: { Ref: Match.stringLikeRegexp("^Work") },
        BatchSize: 1,
        ScalingConfig: { MaximumConcurrency: 2 },
        Enabled: true,
        FunctionResponseTypes: Match.absent(),
      }),
      [schedules]: 0,
      [configs]: 0,
      [machines]: 0,
      // It has its own, with dead letters.
      [queues]: 2,
    },
  ],
  [
    "of a queue fails a run that finds the lock held, skips no earlier message, and has its cooldown",
    (world) => ({ trigger: world.queue(), lockAtLeastFor: seconds(5), enabled: false }),
    {
      ...consumed({ Enabled: false }),
      ...environment({
        LEASEHOLD_WHEN_HELD: "throw",
        LEASEHOLD_ONCE: "false",
        LEASEHOLD_LOCK_AT_LEAST_FOR_MS: "5000",
      }),
    },
  ],
  [
    "of a queue skips where that is said",
    (world) => ({ trigger: world.queue(), overlap: "skip" }),
    environment({ LEASEHOLD_WHEN_HELD: "skip" }),
  ],
  [
    "of a rule retries its function, and keeps what it gives up",
    (world) => ({ trigger: world.rule(), overlap: "skip", retryAttempts: 3 }),
    {
      "AWS::Events::Rule": {
        Targets: [
          Match.objectLike({
            Arn: attributeOf("Work"),
            DeadLetterConfig: { Arn: attributeOf("JobDeadLetters") },
            RetryPolicy: { MaximumEventAgeInSeconds: 86_400, MaximumRetryAttempts: 3 },
          }),
        ],
      },
      [configs]: 1,
      [schedules]: 0,
      ...environment({ LEASEHOLD_ONCE: "false", LEASEHOLD_WHEN_HELD: "skip" }),
    },
  ],
  [
    "of a workflow starts that",
    (world) => ({ target: workflow(world.workflow()) }),
    scheduled({ Target: { Arn: { Ref: Match.stringLikeRegexp("^ImportStateMachine") } } }),
  ],
])("a job %s", (_, given, resources) => {
  const world = new JobWorld();
  const template = world.templateOf(typeof given === "function" ? given(world) : given);
  for (const [type, expected] of Object.entries(resources)) {
    if (typeof expected === "number") template.resourceCountIs(type, expected);
    else template.hasResourceProperties(type, expected);
  }
});

test("a job may use its own lock on this table, and its scheduler invoke it, and both write dead letters, and no more", () => {
  const template = new JobWorld().templateOf({ key: "orders" });
  const arnOf = (name: string) => ({ "Fn::GetAtt": [expect.stringMatching(`^${name}`), "Arn"] });
  expect(statementsIn(template, /^WorkServiceRole/)).toEqual([
    {
      Effect: "Allow",
      Action: [
        "dynamodb:UpdateItem",
        "dynamodb:GetItem",
        "dynamodb:ConditionCheckItem",
        "dynamodb:PartiQLUpdate",
      ],
      Resource: arnOf("Leases"),
      Condition: {
        "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["orders"] },
        Null: { "dynamodb:LeadingKeys": "false" },
      },
    },
    {
      Effect: "Allow",
      Action: ["sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"],
      Resource: arnOf("JobDeadLetters"),
    },
  ]);
  expect(statementsIn(template, /^SchedulerRole/)).toEqual([
    { Effect: "Allow", Action: "lambda:InvokeFunction", Resource: arnOf("Work") },
    { Effect: "Allow", Action: "sqs:SendMessage", Resource: arnOf("JobDeadLetters") },
  ]);
});

test("what sends to a dead-letter queue with a key of KMS may use the key: a schedule's role, a function, a rule", () => {
  const [world, ofRule] = [new JobWorld(), new JobWorld()];
  const given = ({ stack }: JobWorld) => ({
    deadLetterQueue: new Queue(stack, "Encrypted", { encryptionMasterKey: new Key(stack, "Key") }),
  });
  const template = world.templateOf(given(world));
  for (const sender of [/^SchedulerRole/, /^WorkServiceRole/]) {
    expect(statementsIn(template, sender)).toContainEqual({
      Effect: "Allow",
      Action: expect.arrayContaining(["kms:Decrypt", expect.stringMatching(/^kms:GenerateDataKey/)]),
      Resource: { "Fn::GetAtt": [expect.stringMatching(/^Key/), "Arn"] },
    });
  }
  ofRule
    .templateOf({ ...given(ofRule), trigger: ofRule.rule(), overlap: "skip" })
    .hasResourceProperties("AWS::KMS::Key", {
      KeyPolicy: {
        Statement: Match.arrayWith([
          Match.objectLike({
            Action: ["kms:Decrypt", "kms:GenerateDataKey"],
            Principal: { Service: "events.amazonaws.com" },
          }),
        ]),
      },
    });
});

test("a job has a name of its own unless it is given one, which is its key as well", () => {
  const world = new JobWorld();
  const names = ["Close", "Open"].map((id) => {
    const target = lambda(functionIn(world.stack, `${id}Work`));
    const { key, jobName } = world.job({ target, jobName: undefined }, id);
    expect(key).toBe(jobName);
    return jobName;
  });
  expect(new Set(names).size).toBe(2);
});

test("a job that queues waits in a workflow, under another key than the function's, which that alone may invoke", () => {
  const world = new JobWorld();
  const queue = { overlap: "queue", wakeup: world.wakeup(), key: "orders", maxEventAge: minutes(7) } as const;
  const template = world.templateOf(queue);
  const { Properties } = only(template.findResources("AWS::Scheduler::Schedule"));
  expect(Properties.Target.Arn).toEqual({ Ref: expect.stringMatching(/^JobQueue/) });
  for (const policies of [/^JobQueue/, /^/]) {
    const statements = statementsIn(template, policies);
    expect(statements.filter(({ Action }) => Action === "lambda:InvokeFunction")).toHaveLength(1);
  }
  const text = JSON.stringify(template.toJSON());
  expect(text).toContain('"dynamodb:LeadingKeys":["orders/queue"]');
  expect(text).toContain('"dynamodb:LeadingKeys":["orders"]');
  // As long as a run may be started late.
  expect(JSON.stringify(definitionsIn(template))).toMatch(/"\w*waitUntil":"{% \$millis\(\) \+ 420000 %}"/);
});

test("a trigger that is a queue has the job's dead letters; an imported queue's has to be named", () => {
  const world = new JobWorld();
  expect(world.job({ trigger: world.queue() }).deadLetterQueue.node.path).toBe("Test/Failed");
  const other = new JobWorld();
  const [orders, deadLetterQueue] = ["orders", "failed"].map((name) =>
    Queue.fromQueueArn(other.stack, name, `arn:aws:sqs:eu-west-1:111122223333:${name}`),
  );
  const trigger = SingletonJobTrigger.queue(orders as Queue);
  expect(other.job({ trigger, deadLetterQueue }).deadLetterQueue).toBe(deadLetterQueue);
});

const { EUROPE_BERLIN, EUROPE_LONDON } = TimeZone;
test.each<[string, (ScheduleExpression | string)?, string?]>([
  ["cron(0 3 ? * MON-FRI *)"],
  ["cron(0 3 15W * ? *)"],
  ["cron(0 3 ? * 6#3 *)"],
  ["cron(0/15 8-17,20 1,15 JAN,FEB ? 2026-2030)"],
  ["rate(1 minute)"],
  ["at(2026-12-24T18:00:00)"],
  ["rate(5 minutes)", Lazy.string({ produce: () => "rate(5 minutes)" })],
  [
    "cron(0 3 LW * ? *)",
    ScheduleExpression.cron({ minute: "0", hour: "3", day: "LW", timeZone: EUROPE_BERLIN }),
    "Europe/Berlin",
  ],
  [
    "at(2026-12-24T18:00:00)",
    ScheduleExpression.at(new Date("2026-12-24T18:00:00Z"), EUROPE_LONDON),
    "Europe/London",
  ],
])(
  "a schedule of %s reaches the scheduler as it is, with its time zone",
  (text, given = text, zone = "Etc/UTC") => {
    const schedule = typeof given === "string" ? ScheduleExpression.expression(given) : given;
    const { Properties } = only(
      new JobWorld().templateOf({ schedule }).findResources("AWS::Scheduler::Schedule"),
    );
    const { ScheduleExpression: expression, ScheduleExpressionTimezone: timeZone } = Properties;
    expect([expression, timeZone]).toEqual([text, zone]);
  },
);

describe("props that work badly", () => {
  function annotations(options: JobProps): Annotations {
    const world = new JobWorld();
    world.job(options);
    return Annotations.fromStack(world.stack);
  }

  test("are warned of: a lock that outlasts its function, or the interval", () => {
    const longest = /lockAtMostFor is 4 minutes, though the function is stopped after 2 minutes/.source;
    annotations({ lockAtMostFor: minutes(4) }).hasWarning("/Test/Job", Match.stringLikeRegexp(longest));
    const rare = "a run that dies keeps the lock for lockAtMostFor \\(10 minutes\\)";
    annotations({ lockAtMostFor: minutes(10) }).hasWarning("/Test/Job", Match.stringLikeRegexp(rare));
    annotations({ lockAtMostFor: minutes(3) }).hasNoWarning("/Test/Job", Match.anyValue());
  });

  test.each<[string, JobProps]>([
    ["the time between runs is not known: set maxInterval", { schedule: daily }],
    ["runs that stay away, because the schedule has a start or an end: set maxInterval", { end }],
  ])("are mentioned: no alarm for missed runs, %s", (info, options) => {
    annotations(options).hasInfo("/Test/Job", Match.stringLikeRegexp(info));
  });
});
