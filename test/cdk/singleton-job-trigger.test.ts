import {
  type JobTarget,
  LeasedWorkflow,
  LeaseTable,
  LeaseWakeup,
  SingletonJob,
  type SingletonJobProps,
  SingletonJobTarget,
  SingletonJobTrigger,
} from "@leasehold/cdk";
import { Duration } from "aws-cdk-lib";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { Rule } from "aws-cdk-lib/aws-events";
import { AccountRootPrincipal, Role } from "aws-cdk-lib/aws-iam";
import { ScheduleExpression, TimeWindow } from "aws-cdk-lib/aws-scheduler";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import { eventRules } from "../../tools/local/src/services/event-bus.ts";
import { functionIn, newStack, only, permitted } from "../support/constructs.ts";

class World {
  readonly stack = newStack();
  readonly table = new LeaseTable(this.stack, "Leases", { stream: true });
  readonly fn = functionIn(this.stack);

  workflow(): LeasedWorkflow {
    const work = new Pass(this.stack, "Nothing");
    return new LeasedWorkflow(this.stack, "Import", { table: this.table, key: "import", work });
  }

  queue(): SingletonJobTrigger {
    const deadLetterQueue = { queue: new Queue(this.stack, "Failed"), maxReceiveCount: 5 };
    const visibilityTimeout = Duration.minutes(6);
    return SingletonJobTrigger.queue(new Queue(this.stack, "Orders", { visibilityTimeout, deadLetterQueue }));
  }

  rule(): SingletonJobTrigger {
    const eventPattern = { source: ["shop"], detailType: ["Uploaded"] };
    return SingletonJobTrigger.rule(new Rule(this.stack, "Uploaded", { eventPattern }));
  }

  job(
    props: Partial<SingletonJobProps>,
    target: JobTarget = SingletonJobTarget.lambda(this.fn),
  ): SingletonJob {
    return new SingletonJob(this.stack, "Job", { table: this.table, jobName: "import", target, ...props });
  }

  template(): Template {
    return Template.fromStack(this.stack);
  }
}

const everyHour = ScheduleExpression.rate(Duration.hours(1));

function environmentIn(template: Template): Record<string, string> {
  const functions = Object.entries(template.findResources("AWS::Lambda::Function"));
  const [, work] = functions.find(([id]) => id.startsWith("Work")) ?? [];
  return work?.Properties.Environment.Variables;
}

describe("a job that a queue triggers", () => {
  function consuming(props: Partial<SingletonJobProps> = {}): { world: World; job: SingletonJob } {
    const world = new World();
    return { world, job: world.job({ trigger: world.queue(), ...props }) };
  }

  test("gets one message a run, at the smallest concurrency that there is", () => {
    const template = consuming().world.template();
    template.hasResourceProperties("AWS::Lambda::EventSourceMapping", {
      EventSourceArn: { "Fn::GetAtt": [Match.stringLikeRegexp("^Orders"), "Arn"] },
      FunctionName: { Ref: Match.stringLikeRegexp("^Work") },
      BatchSize: 1,
      ScalingConfig: { MaximumConcurrency: 2 },
      Enabled: true,
      FunctionResponseTypes: Match.absent(),
    });
  });

  test("has no schedule, no settings of asynchronous calls, and no queue of its own, and may be disabled", () => {
    const { world, job } = consuming({ enabled: false });
    const template = world.template();
    expect(job.schedule).toBeUndefined();
    template.resourceCountIs("AWS::Scheduler::Schedule", 0);
    template.resourceCountIs("AWS::Lambda::EventInvokeConfig", 0);
    template.resourceCountIs("AWS::SQS::Queue", 2);
    template.resourceCountIs("AWS::StepFunctions::StateMachine", 0);
    template.hasResourceProperties("AWS::Lambda::EventSourceMapping", { Enabled: false });
    expect(job.deadLetterQueue.node.path).toBe("Test/Failed");
  });

  test("fails a run that finds the lock held, skips no earlier message, and has its cooldown", () => {
    const { world } = consuming({ lockAtLeastFor: Duration.seconds(5) });
    expect(environmentIn(world.template())).toMatchObject({
      LEASEHOLD_WHEN_HELD: "throw",
      LEASEHOLD_ONCE: "false",
      LEASEHOLD_LOCK_AT_LEAST_FOR_MS: "5000",
    });
  });

  test("alarms on failures and dead letters, not on runs that found the lock held, and asks for no interval", () => {
    const { world, job } = consuming();
    const { didNotRun, skippedInARow, deadLetterLost } = job.alarms ?? {};
    expect([didNotRun, skippedInARow, deadLetterLost]).toEqual([undefined, undefined, undefined]);
    const template = world.template();
    expect(job.runs.failed.failed?.toMetricConfig().metricStat).toMatchObject({
      namespace: "Leasehold",
      metricName: "JobFailed",
    });
    template.hasResourceProperties("AWS::CloudWatch::Alarm", {
      Dimensions: [
        { Name: "QueueName", Value: { "Fn::GetAtt": [Match.stringLikeRegexp("^Failed"), "QueueName"] } },
      ],
    });
    Annotations.fromStack(world.stack).hasNoInfo("*", Match.anyValue());
  });

  test("skips where that is said, and counts Lambda's own errors: a run that finds the lock held is none", () => {
    const { world, job } = consuming({ overlap: "skip" });
    expect(environmentIn(world.template())).toMatchObject({ LEASEHOLD_WHEN_HELD: "skip" });
    expect(job.runs.failed.failed?.toMetricConfig().metricStat).toMatchObject({ namespace: "AWS/Lambda" });
  });
});

describe("a job that a rule triggers", () => {
  const event = {
    id: "11112222-aaaa",
    source: "shop",
    detailType: "Uploaded",
    detail: { file: 'a "quoted" name.csv' },
    resources: ["arn:aws:s3:::orders"],
    time: "2026-11-25T08:00:00.000Z",
    eventBusName: "default",
  };
  const runEvent = {
    job: "import",
    time: "2026-11-25T08:00:00Z",
    executionId: event.id,
    input: { id: event.id, source: "shop", "detail-type": "Uploaded", detail: event.detail },
  };

  /** What the template's rule sends for an event. */
  function sentBy(template: Template): unknown {
    const [rule] = Object.values(
      template.findResources("AWS::Events::Rule", {
        Properties: { EventPattern: { source: ["shop"] } },
      }),
    );
    if (rule === undefined) throw new Error("no rule");
    const [{ InputTransformer }] = rule.Properties.Targets;
    const sent: string[] = [];
    const spec = {
      name: "r",
      logicalId: "r",
      arn: "arn:aws:events:eu-west-1:111122223333:rule/r",
      pattern: rule.Properties.EventPattern,
      targets: [
        { arn: "t", template: InputTransformer.InputTemplate, paths: InputTransformer.InputPathsMap },
      ],
    };
    eventRules([spec as never], { send: (_, input) => sent.push(input), onError: () => {} })(event as never);
    return JSON.parse(String(sent[0]));
  }

  test("calls a function that locks itself with the event, retries it, and keeps what it gives up", () => {
    const world = new World();
    const job = world.job({ trigger: world.rule(), overlap: "skip", retryAttempts: 3 });
    const template = world.template();
    expect(job.schedule).toBeUndefined();
    expect(sentBy(template)).toMatchObject(runEvent);
    template.hasResourceProperties("AWS::Events::Rule", {
      Targets: [
        Match.objectLike({
          Arn: { "Fn::GetAtt": [Match.stringLikeRegexp("^Work"), "Arn"] },
          DeadLetterConfig: { Arn: { "Fn::GetAtt": [Match.stringLikeRegexp("^JobDeadLetters"), "Arn"] } },
          RetryPolicy: { MaximumEventAgeInSeconds: 86_400, MaximumRetryAttempts: 3 },
        }),
      ],
    });
    template.resourceCountIs("AWS::Scheduler::Schedule", 0);
    template.resourceCountIs("AWS::Lambda::EventInvokeConfig", 1);
    expect(environmentIn(template)).toMatchObject({ LEASEHOLD_ONCE: "false", LEASEHOLD_WHEN_HELD: "skip" });
  });

  test("starts a leased workflow, and may start no other", () => {
    const world = new World();
    world.job({ trigger: world.rule() }, SingletonJobTarget.workflow(world.workflow()));
    const template = world.template();
    expect(sentBy(template)).toMatchObject(runEvent);
    expect(permitted(template, /^ImportStateMachineEventsRole/)).toEqual([
      expect.stringMatching(/^states:StartExecution <ImportStateMachine\w+>$/),
    ]);
  });

  test("asks for a wakeup, because an event does not come again", () => {
    const world = new World();
    const target = SingletonJobTarget.lockedLambda(world.fn);
    expect(() => world.job({ trigger: world.rule() }, target)).toThrow(
      'overlap is "queue", but nothing would wake the waiting runs: give a LeaseWakeup of the table as wakeup',
    );
  });
});

describe("a trigger", () => {
  const refused: readonly [string, (world: World) => Partial<SingletonJobProps>, RegExp][] = [
    [
      "beside a schedule",
      (world) => ({ schedule: everyHour, trigger: world.queue() }),
      /^schedule and trigger are both set/,
    ],
    ["left out beside no schedule", () => ({}), /^schedule is undefined: .* as trigger$/],
    [
      "with once, because messages need not come in order",
      (world) => ({ trigger: world.queue(), once: true }),
      /^once is true, but a slot that is done excludes all earlier ones/,
    ],
    [
      "that is a queue, with runs that replace each other",
      (world) => ({ trigger: world.queue(), overlap: "replace" }),
      /^overlap is "replace", but the message of a run that is replaced would be deleted/,
    ],
    [
      "that is a queue, with a wakeup",
      (world) => ({
        trigger: world.queue(),
        wakeup: new LeaseWakeup(world.stack, "Wakeup", { table: world.table }),
      }),
      /^wakeup is set, but no run waits/,
    ],
    [
      "that is a queue without a dead-letter queue",
      ({ stack }) => ({ trigger: SingletonJobTrigger.queue(new Queue(stack, "Endless")) }),
      /^the queue Test\/Endless shows no dead-letter queue/,
    ],
    [
      "that is a queue, with the age of events",
      (world) => ({ trigger: world.queue(), maxEventAge: Duration.hours(1) }),
      /^maxEventAge is set for a queue/,
    ],
    [
      "that is a rule, with enabled",
      (world) => ({ trigger: world.rule(), enabled: false }),
      /^enabled is set for a rule/,
    ],
    ["with an input", (world) => ({ trigger: world.rule(), input: 1 }), /^input is set for a rule/],
    [
      "with a time window",
      (world) => ({ trigger: world.rule(), timeWindow: TimeWindow.flexible(Duration.minutes(5)) }),
      /^timeWindow is set without a schedule/,
    ],
  ];
  test("refuses props of a job alone, each by its name", () => {
    const refusable: readonly (keyof SingletonJobProps)[] = [
      ...(["enabled", "end", "input", "maxEventAge", "retryAttempts"] as const),
      ...(["scheduleGroup", "scheduleName", "start", "timeWindow"] as const),
    ];
    const world = new World();
    const names = [world.queue(), world.rule()].flatMap(({ refusedProps }) => Object.keys(refusedProps));
    expect([...new Set(names)].sort()).toEqual([...refusable].sort());
  });

  test.each(refused)("is refused %s", (_, props, message) => {
    const world = new World();
    expect(() => world.job(props(world))).toThrow(message);
  });

  test("that is a queue is refused for what a workflow runs, which would lose its messages", () => {
    for (const targetIn of [
      (world: World) => SingletonJobTarget.lockedLambda(world.fn),
      (world: World) => SingletonJobTarget.workflow(world.workflow()),
    ]) {
      const world = new World();
      expect(() => world.job({ trigger: world.queue() }, targetIn(world))).toThrow(
        /^trigger is a queue, which cannot start this target: a message is deleted when the run has been started/,
      );
    }
  });

  test("that is an imported queue names its dead-letter queue", () => {
    const world = new World();
    const arn = (name: string): string => `arn:aws:sqs:eu-west-1:111122223333:${name}`;
    const orders = Queue.fromQueueArn(world.stack, "Orders", arn("orders"));
    const deadLetterQueue = Queue.fromQueueArn(world.stack, "Failed", arn("failed"));
    const job = world.job({ trigger: SingletonJobTrigger.queue(orders), deadLetterQueue });
    expect(job.deadLetterQueue).toBe(deadLetterQueue);
  });
});

describe("a run by hand", () => {
  const slot = "2026-11-25T08:00:00Z";
  test.each<[string, (world: World) => JobTarget, RegExp]>([
    ["a function", (world) => SingletonJobTarget.lambda(world.fn), /^lambda:InvokeFunction .*Work/],
    [
      "a locked function",
      (world) => SingletonJobTarget.lockedLambda(world.fn),
      /^states:StartExecution <JobWorkflow/,
    ],
    [
      "a workflow",
      (world) => SingletonJobTarget.workflow(world.workflow()),
      /^states:StartExecution <Import/,
    ],
  ])("of %s has the event of that slot, and its caller a permission", (_, targetIn, permission) => {
    const world = new World();
    const job = world.job({ schedule: everyHour, input: { dryRun: true } }, targetIn(world));
    job.grantRun(new Role(world.stack, "Operator", { assumedBy: new AccountRootPrincipal() }));
    const template = world.template();
    const { Target } = only(template.findResources("AWS::Scheduler::Schedule")).Properties;
    const sent = JSON.parse(Target.Input);
    const byHand = { ...sent, scheduledTime: slot, executionId: "by hand" };
    expect(JSON.parse(world.stack.resolve(job.runEvent(slot)))).toEqual(byHand);
    expect(world.stack.resolve(job.targetArn)).toEqual(Target.Arn);
    expect(permitted(template, /^Operator/)).toEqual([expect.stringMatching(permission)]);
  });

  test("is refused without a time, and for a job with a trigger", () => {
    const job = new World().job({ schedule: everyHour });
    for (const time of ["now", "2026-11-25", "2026-11-25T08:00:00"]) {
      expect(() => job.runEvent(time)).toThrow(/^scheduledTime is ".*": give an ISO time/);
    }
    const other = new World();
    const triggered = other.job({ trigger: other.queue() });
    expect(() => triggered.runEvent(slot)).toThrow(/^the job import has a trigger/);
  });
});
