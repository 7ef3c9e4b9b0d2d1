// What a job does not take, each refused at synth with a text that says what to do.
import { LeaseTable, SingletonJob, SingletonJobTarget, SingletonJobTrigger } from "@leasehold/cdk";
import { Duration, Lazy } from "aws-cdk-lib";
import { type IVersion, Function as LambdaFunction, Version } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression, TimeWindow } from "aws-cdk-lib/aws-scheduler";
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { LogLevel } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import { everyFiveMinutes } from "../support/constructs.ts";
import { aliasIn, type JobProps, JobWorld, otherFunctions } from "../support/jobs.ts";

const { minutes, seconds, hours, days } = Duration;
const { lambda, lockedLambda, workflow } = SingletonJobTarget;
const daily = ScheduleExpression.cron({ minute: "0", hour: "3" });
const singleRun = ScheduleExpression.at(new Date(0));
const locked = ({ fn }: JobWorld) => ({ target: lockedLambda(fn) });
const sixty = Lazy.number({ produce: () => 60 });
const [later, laterMs] = [Duration.seconds(sixty), Duration.millis(sixty)];

type Refusals = readonly (readonly [message: string, props: JobProps | ((world: JobWorld) => JobProps)])[];

const ofLocks: Refusals = [
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
  [
    "permits is set, and no workflow holds the lock of such a target's runs: use SingletonJobTarget.lockedLambda",
    { permits: 2, once: false },
  ],
];

const ofLockedFunctions: Refusals = [
  [
    "heartbeat is set for work that is locked from outside: leave it out, for a keeper renews the lease every third of lockAtMostFor",
    { heartbeat: seconds(10), lockAtMostFor: minutes(1) },
  ],
  ["lockAtMostFor is 2 seconds: choose from 3 seconds", { lockAtMostFor: seconds(2) }],
  ["permits is set, and a semaphore has no slots, by which a trigger that is delivered", { permits: 2 }],
  [
    'permits is set with overlap: "replace", and nothing tells runs of a permit that is free again: choose "skip"',
    { permits: 2, once: false, overlap: "replace" },
  ],
  ["permits is 501: set a whole number from 1 to 500", { permits: 501, once: false }],
  ["lockAtMostFor is known at deployment only, and a state machine's", { lockAtMostFor: later }],
  ["lockAtLeastFor is known at deployment only, and a state machine's", { lockAtLeastFor: laterMs }],
];

const ofWaiting: Refusals = [
  [
    'overlap is "queue", but the table Test/Other has no stream to wake waiting runs by: ' +
      'make the LeaseTable with stream: true, or choose "skip" or "replace"',
    ({ stack }) => ({ overlap: "queue", table: new LeaseTable(stack, "Other") }),
  ],
  [
    'overlap is "queue", but nothing would wake the waiting runs: give a LeaseWakeup of the table as wakeup',
    { overlap: "queue" },
  ],
  [
    'wakeup is set, but no run waits: leave it out, or set overlap: "queue"',
    (world) => ({ wakeup: world.wakeup() }),
  ],
  [
    "logLevel is set, but the job makes no state machine: set it on the function or the workflow that it runs",
    { logLevel: LogLevel.ERROR },
  ],
  ["tracing is set, but the job makes no state machine", { tracing: false }],
];

const ofSchedules: Refusals = [
  [
    "schedule is undefined: give a ScheduleExpression, or a queue or an event rule as trigger",
    { schedule: undefined },
  ],
  ["maxInterval is 1 minute, but the job runs every 5 minutes", { maxInterval: minutes(1) }],
  [
    "maxInterval is 7 days, but an alarm can watch for 6 days without a run at most",
    { schedule: daily, maxInterval: days(7) },
  ],
  [
    "maxInterval is 1 hour, but the job runs a single time: leave it out",
    { schedule: singleRun, maxInterval: hours(1) },
  ],
  ["skipsInARow is 0: set a whole number above 0", { skipsInARow: 0 }],
  ["maxEventAge is 30 seconds: set it from 1 minute to 1 day", { maxEventAge: seconds(30) }],
  ["maxEventAge is 2 days: set it from 1 minute to 1 day", { maxEventAge: days(2) }],
  ["retryAttempts is 186: set a whole number from 0 to 185", { retryAttempts: 186 }],
  ['scheduleName is "each night": set 1 to 64 letters', { scheduleName: "each night" }],
  ["start is an object of another kind: give a valid Date", { start: new Date("soon") }],
  ['end is "2027-01-01": give a valid Date', { end: "2027-01-01" as never }],
  [
    "start is 2027-01-01T00:00:00.000Z, not before end (2027-01-01T00:00:00.000Z): no run would begin",
    { start: new Date("2027-01-01"), end: new Date("2027-01-01") },
  ],
  [
    "deadLetterQueue is the FIFO queue Test/Failed, which EventBridge and Lambda do not send to: give a standard queue",
    ({ stack }) => ({ deadLetterQueue: new Queue(stack, "Failed", { fifo: true }) }),
  ],
  ["end is set, but the job runs a single time", { schedule: singleRun, end: new Date("2027-01-01") }],
];

const sixFields =
  "cron has six fields: minutes, hours, day of month, month, day of week, year; it has no seconds";
const oneDay = "set the day of the month or the day of the week, and write ? for the other";
const wholeRate = "a rate is a whole number above 0 and minutes, hours or days";
const ofExpressions: Refusals = [
  ["every 5 minutes", "use ScheduleExpression.rate, .cron or .at"],
  ["*/20 * * * * *", `use ScheduleExpression.rate, .cron or .at; ${sixFields}`],
  ["cron(*/20 * * * * *)", `${oneDay}; ${sixFields}`],
  ["rate(0 minutes)", wholeRate],
  ["rate(90 seconds)", wholeRate],
  ["cron(0 3 * * ?)", sixFields],
  ["cron(0 3 1 * MON *)", oneDay],
  ["cron(0 3 ? * ? *)", oneDay],
].map(([text = "", advice]) => [
  `schedule is "${text}": ${advice}`,
  { schedule: ScheduleExpression.expression(text) },
]);

const unstarted =
  "trigger is a queue, which cannot start this target: a message is deleted when the run has been started";
const ofQueues: Refusals = [
  ["schedule and trigger are both set", { schedule: everyFiveMinutes }],
  ["once is true, but a slot that is done excludes all earlier ones", { once: true }],
  [
    'overlap is "replace", but the message of a run that is replaced would be deleted',
    { overlap: "replace" },
  ],
  ["wakeup is set, but no run waits", (world) => ({ wakeup: world.wakeup() })],
  [
    "the queue Test/Endless shows no dead-letter queue",
    ({ stack }) => ({ trigger: SingletonJobTrigger.queue(new Queue(stack, "Endless")) }),
  ],
  ["maxEventAge is set for a queue", { maxEventAge: hours(1) }],
  [unstarted, locked],
  [unstarted, (world) => ({ target: workflow(world.workflow()) })],
];
const ofRules: Refusals = [
  // An event does not come again.
  ['overlap is "queue", but nothing would wake the waiting runs: give a LeaseWakeup', locked],
  [
    "deadLetterQueue is Test/Failed, encrypted with the key aws/sqs, which EventBridge's rules cannot use",
    ({ stack }) => ({
      overlap: "skip",
      deadLetterQueue: new Queue(stack, "Failed", { encryption: QueueEncryption.KMS_MANAGED }),
    }),
  ],
  ["enabled is set for a rule", { enabled: false }],
  ["input is set for a rule", { input: 1 }],
  ["timeWindow is set without a schedule", { timeWindow: TimeWindow.flexible(minutes(5)) }],
];

const ofWorkflow = {
  key: "orders",
  overlap: "skip",
  once: true,
  lockAtMostFor: minutes(1),
  lockAtLeastFor: minutes(1),
  heartbeat: minutes(1),
  permits: 2,
} as const;
const ofWorkflows: Refusals = Object.entries(ofWorkflow).map(([prop, value]) => [
  `${prop} is set for a workflow, which has its own: set it on the LeasedWorkflow instead`,
  (world) => ({ target: workflow(world.workflow()), [prop]: value }),
]);

const ofFunctions: Refusals = [
  [
    "retryAttempts of the function is 3: set a whole number from 0 to 2",
    ({ fn }) => ({ target: lambda(fn, { retryAttempts: 3 }) }),
  ],
  ...[
    ["retryAttempts of the function is 21: set a whole number from 0 to 20", { retryAttempts: 21 }],
    ["retryAttempts of the function is 0.5", { retryAttempts: 0.5 }],
    ["timeout of the function is 16 minutes: choose from 1 second to 15 minutes", { timeout: minutes(16) }],
    ["timeout of the function is 500 millis", { timeout: Duration.millis(500) }],
  ].map(([message, options]): Refusals[number] => [
    String(message),
    ({ fn }) => ({ target: lockedLambda(fn, Object(options)) }),
  ]),
  [
    "the function Test/There is in us-east-1, and Step Functions calls services of its own region (eu-west-1) only: " +
      "define the job in a stack of us-east-1",
    ({ stack }) => {
      const functionArn = "arn:aws:lambda:us-east-1:111122223333:function:report";
      return { target: lockedLambda(LambdaFunction.fromFunctionArn(stack, "There", functionArn)) };
    },
  ],
  ...Object.values(otherFunctions).map((make): Refusals[number] => [
    "Test/Report is not defined in this app, so the job cannot set its environment: use SingletonJobTarget.lockedLambda, " +
      "which locks any function from outside, or define the function here",
    ({ stack }) => ({ target: lambda(make(stack, "Report")) }),
  ]),
  ...["Seventh", "Live"].map((id): Refusals[number] => [
    `Test/${id} is a version that keeps the environment it was published with, and the job's settings would not ` +
      "reach it: use currentVersion of Test/Work, or SingletonJobTarget.lockedLambda, which sets nothing",
    ({ stack, fn }) => {
      const version = new Version(stack, "Seventh", { lambda: fn }) as IVersion;
      return {
        target: lambda(id === "Seventh" ? version : aliasIn(stack, id, version)),
      };
    },
  ]),
  [
    "the function Test/Work already serves the job Test/First: define a function for each job",
    (world) => {
      world.job({}, "First");
      return { target: lambda(world.fn.currentVersion as IVersion) };
    },
  ],
];

const ofValuesKnownLater: Refusals = [
  ...["lockAtMostFor", "lockAtLeastFor", "heartbeat"].map((prop): Refusals[number] => [
    `${prop} is known at deployment only, in seconds, and CloudFormation cannot convert it to the milliseconds that the ` +
      "function reads: give it as Duration.millis(...), or as a plain number",
    { heartbeat: minutes(1), lockAtMostFor: minutes(3), [prop]: later },
  ]),
  ["maxEventAge is known at deployment only, and how often to try again", { maxEventAge: later }],
  ["maxInterval is known at deployment only, and the alarms' periods", { maxInterval: later }],
  ["retryAttempts is known at deployment only: set a whole number from 0", { retryAttempts: sixty }],
  ["skipsInARow is known at deployment only: set a whole number above 0", { skipsInARow: sixty }],
];

type Groups = Readonly<Record<string, readonly [Refusals, ((world: JobWorld) => JobProps)?]>>;
const groups: Groups = {
  "of a lock": [ofLocks],
  "of a locked function": [ofLockedFunctions, locked],
  "of waiting runs": [ofWaiting],
  "of a schedule": [ofSchedules],
  "of its expression": [ofExpressions],
  "of a queue": [ofQueues, (world) => ({ trigger: world.queue() })],
  "of a rule": [ofRules, (world) => ({ trigger: world.rule() })],
  "of a workflow": [ofWorkflows],
  "of a function": [ofFunctions],
  "known at deployment only": [ofValuesKnownLater],
};
describe.each(Object.entries(groups))("props %s", (_, [refusals, base]) => {
  test.each(refusals)("are refused: %s", (message, props) => {
    const world = new JobWorld();
    const given = () => ({ ...base?.(world), ...(typeof props === "function" ? props(world) : props) });
    expect(() => world.job(given())).toThrow(message);
  });
});

test("a trigger refuses props of a job alone", () => {
  const refusable: readonly (keyof JobProps)[] = [
    ...(["enabled", "end", "input", "maxEventAge", "retryAttempts"] as const),
    ...(["scheduleGroup", "scheduleName", "start", "timeWindow"] as const),
  ];
  const world = new JobWorld();
  const refused = [world.queue(), world.rule()].flatMap(({ refusedProps }) => Object.keys(refusedProps));
  expect([...new Set(refused)].sort()).toEqual(refusable);
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
])("a prop is refused by name with the error that %s has thrown", (_what, message, options) => {
  const world = new JobWorld();
  const cause = new TypeError("the settings are not loaded");
  const { table, fn } = world;
  const props = Object.assign(Object.create(options), {
    table,
    target: lambda(fn),
    schedule: everyFiveMinutes,
  });
  expect(() => new SingletonJob(world.stack, "Job", props)).toThrow(new Error(message, { cause }));
});

test.each<JobProps>([{ overlap: "replace" }, { heartbeat: seconds(20) }])(
  "a lockAtMostFor below the function's timeout is taken where the lease is renewed: %o",
  (props) => {
    expect(() => new JobWorld().job({ lockAtMostFor: minutes(1), ...props })).not.toThrow();
  },
);

test("a run by hand is refused without a time, and for a job with a trigger", () => {
  const job = new JobWorld().job();
  for (const time of ["now", "2026-11-25", "2026-11-25T08:00:00"]) {
    expect(() => job.runEvent(time)).toThrow(/^scheduledTime is ".*": give an ISO time/);
  }
  const world = new JobWorld();
  expect(() => world.job({ trigger: world.queue() }).runEvent("2026-11-25T08:00:00Z")).toThrow(
    "the job close-unpaid-orders has a trigger",
  );
});
