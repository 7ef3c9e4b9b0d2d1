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
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { leased } from "@leasehold/middy";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { Rule } from "aws-cdk-lib/aws-events";
import { AccountRootPrincipal, Role } from "aws-cdk-lib/aws-iam";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression, TimeWindow } from "aws-cdk-lib/aws-scheduler";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { afterEach, describe, expect, test, vi } from "vitest";
import { eventRules } from "../../tools/local/src/services/event-rules.ts";
import { type CloudFormationTemplate, templateProblems } from "../support/cloudformation.ts";
import { definitionsIn } from "../support/definitions.ts";
import { machineArn, StepFunctions } from "../support/step-functions.ts";

class World {
  readonly stack = new Stack(new App(), "Test", { env: { account: "111122223333", region: "eu-west-1" } });
  readonly table = new LeaseTable(this.stack, "Leases", { stream: true });

  fn(id = "Work"): LambdaFunction {
    return new LambdaFunction(this.stack, id, {
      runtime: Runtime.NODEJS_24_X,
      handler: "index.handler",
      code: Code.fromInline("exports.handler = async () => {};"),
      timeout: Duration.minutes(1),
    });
  }

  wakeup(): LeaseWakeup {
    return new LeaseWakeup(this.stack, "Wakeup", { table: this.table, handler: this.fn("Wake") });
  }

  workflow(): LeasedWorkflow {
    const work = new Pass(this.stack, "Nothing");
    return new LeasedWorkflow(this.stack, "Import", { table: this.table, key: "import", work });
  }

  queue(): Queue {
    const failed = new Queue(this.stack, "Failed");
    return new Queue(this.stack, "Orders", {
      visibilityTimeout: Duration.minutes(6),
      deadLetterQueue: { queue: failed, maxReceiveCount: 5 },
    });
  }

  rule(): Rule {
    return new Rule(this.stack, "Uploaded", {
      eventPattern: { source: ["shop"], detailType: ["Uploaded"] },
    });
  }

  job(target: JobTarget, props: Partial<SingletonJobProps>): SingletonJob {
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
    const trigger = SingletonJobTrigger.queue(world.queue());
    return { world, job: world.job(SingletonJobTarget.lambda(world.fn()), { trigger, ...props }) };
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
    expect(templateProblems(template.toJSON() as CloudFormationTemplate)).toEqual([]);
  });

  test("has no schedule, no settings of asynchronous calls, and no queue of its own", () => {
    const { world, job } = consuming();
    const template = world.template();
    expect(job.schedule).toBeUndefined();
    template.resourceCountIs("AWS::Scheduler::Schedule", 0);
    template.resourceCountIs("AWS::Lambda::EventInvokeConfig", 0);
    template.resourceCountIs("AWS::SQS::Queue", 2);
    template.resourceCountIs("AWS::StepFunctions::StateMachine", 0);
    expect(job.deadLetterQueue.node.path).toBe("Test/Failed");
  });

  test("is not read where it is not enabled", () => {
    const template = consuming({ enabled: false }).world.template();
    template.hasResourceProperties("AWS::Lambda::EventSourceMapping", { Enabled: false });
  });

  test("fails a run that finds the lock held, skips no earlier message, and has its cooldown", () => {
    const { world } = consuming({ lockAtLeastFor: Duration.seconds(5) });
    expect(environmentIn(world.template())).toMatchObject({
      LEASEHOLD_WHEN_HELD: "throw",
      LEASEHOLD_ONCE: "false",
      LEASEHOLD_LOCK_AT_LEAST_FOR_MS: "5000",
    });
  });

  test("skips only where that is said", () => {
    expect(environmentIn(consuming({ overlap: "skip" }).world.template())).toMatchObject({
      LEASEHOLD_WHEN_HELD: "skip",
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

  test("counts Lambda's own errors where a run that finds the lock held is none", () => {
    const { job } = consuming({ overlap: "skip" });
    expect(job.runs.failed.failed?.toMetricConfig().metricStat).toMatchObject({ namespace: "AWS/Lambda" });
  });

  describe("on its handler", () => {
    const clock = new ManualClock();
    const store = new MemoryLeaseStore("leases");
    const client = new LeaseClient({ store, clock, owner: "test" });
    const context = { functionName: "work", getRemainingTimeInMillis: () => 60_000 };
    const message = (id: string): object => ({ Records: [{ messageId: id, eventSource: "aws:sqs" }] });

    afterEach(() => {
      vi.unstubAllEnvs();
    });

    test("loses no message: one that finds the lock held fails, and runs when it comes again", async () => {
      const { LEASEHOLD_TABLE_NAME: _, ...environment } = environmentIn(consuming().world.template());
      for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
      const done: string[] = [];
      let finish = (): void => {};
      const handler = leased(
        { client, clock, metrics: false },
        async (event: { Records: { messageId: string }[] }) => {
          const [first] = event.Records;
          if (first?.messageId === "z") await new Promise<void>((resolve) => (finish = resolve));
          done.push(String(first?.messageId));
        },
      );
      const run = (id: string): Promise<unknown> =>
        handler(message(id) as never, { ...context, awsRequestId: id } as never) as Promise<unknown>;
      const first = run("z");
      await vi.waitFor(async () => expect(await client.inspect("import")).toBeDefined());
      await expect(run("a")).rejects.toMatchObject({ name: "LeaseUnavailableError" });
      finish();
      await first;
      await run("a");
      expect(done).toEqual(["z", "a"]);
    });
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
    const target = { arn: "t", input: undefined, inputPath: undefined };
    const spec = {
      name: "r",
      logicalId: "r",
      arn: "arn:aws:events:eu-west-1:111122223333:rule/r",
      pattern: rule.Properties.EventPattern,
      busName: "default",
      enabled: true,
      targets: [
        { ...target, template: InputTransformer.InputTemplate, paths: InputTransformer.InputPathsMap },
      ],
    };
    eventRules([spec as never], { send: (_, input) => sent.push(input), onError: () => {} })(event as never);
    return JSON.parse(String(sent[0]));
  }

  test("calls a function that locks itself with the event, retries it, and keeps what it gives up", () => {
    const world = new World();
    const trigger = SingletonJobTrigger.rule(world.rule());
    const job = world.job(SingletonJobTarget.lambda(world.fn()), {
      trigger,
      overlap: "skip",
      retryAttempts: 3,
    });
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
    expect(templateProblems(template.toJSON() as CloudFormationTemplate)).toEqual([]);
  });

  test("starts a leased workflow, and may start no other", () => {
    const world = new World();
    const trigger = SingletonJobTrigger.rule(world.rule());
    world.job(SingletonJobTarget.workflow(world.workflow()), { trigger });
    const template = world.template();
    expect(sentBy(template)).toMatchObject(runEvent);
    template.hasResourceProperties("AWS::IAM::Policy", {
      PolicyName: Match.stringLikeRegexp("^ImportStateMachineEventsRole"),
      PolicyDocument: {
        Statement: [
          {
            Action: "states:StartExecution",
            Effect: "Allow",
            Resource: { Ref: Match.stringLikeRegexp("^ImportStateMachine") },
          },
        ],
      },
    });
  });

  test("asks for a wakeup, because an event does not come again", () => {
    const world = new World();
    const trigger = SingletonJobTrigger.rule(world.rule());
    const target = SingletonJobTarget.lockedLambda(world.fn());
    expect(() => world.job(target, { trigger })).toThrow(
      'overlap is "queue", but nothing would wake the waiting runs: give a LeaseWakeup of the table as wakeup',
    );
  });

  test("runs every event, one at a time, also an event that finds the lock held", async () => {
    const world = new World();
    const trigger = SingletonJobTrigger.rule(world.rule());
    world.job(SingletonJobTarget.lockedLambda(world.fn()), { trigger, wakeup: world.wakeup() });
    const template = world.template();
    const input = sentBy(template) as object;
    const clock = new ManualClock();
    const steps = new StepFunctions(clock);
    const definitions = definitionsIn(template);
    for (const [id, definition] of Object.entries(definitions)) steps.define(id, definition);
    let running = 0;
    const files: unknown[] = [];
    steps.resources.set("lambda:invoke", async ({ Payload }: { Payload: Record<string, unknown> }) => {
      running += 1;
      expect(running).toBe(1);
      await new Promise<void>((resolve) => clock.schedule(resolve, 20_000));
      running -= 1;
      files.push(Payload.executionId);
      return { Payload: {} };
    });
    const workflow = machineArn(String(Object.keys(definitions).find((id) => id.startsWith("JobWorkflow"))));
    const executions = ["b", "a", "c"].map(
      (executionId) =>
        steps.machines.start({ stateMachineArn: workflow, input: { ...input, executionId } }).executionArn,
    );
    for (let minute = 0; minute < 30; minute += 1) await clock.advance(60_000);
    expect(executions.map((arn) => steps.machines.describe(arn).status)).toEqual(
      Array.from({ length: 3 }, () => "SUCCEEDED"),
    );
    expect(files.toSorted()).toEqual(["a", "b", "c"]);
  });
});

describe("a trigger", () => {
  const refused: readonly [string, (world: World) => Partial<SingletonJobProps>, RegExp][] = [
    [
      "beside a schedule",
      (world) => ({ schedule: everyHour, trigger: SingletonJobTrigger.queue(world.queue()) }),
      /^schedule and trigger are both set/,
    ],
    ["left out beside no schedule", () => ({}), /^schedule is undefined: .* as trigger$/],
    [
      "with once, because messages need not come in order",
      (world) => ({ trigger: SingletonJobTrigger.queue(world.queue()), once: true }),
      /^once is true, but a slot that is done excludes all earlier ones/,
    ],
    [
      "that is a queue, with runs that replace each other",
      (world) => ({ trigger: SingletonJobTrigger.queue(world.queue()), overlap: "replace" }),
      /^overlap is "replace", but the message of a run that is replaced would be deleted/,
    ],
    [
      "that is a queue, with a wakeup",
      (world) => ({ trigger: SingletonJobTrigger.queue(world.queue()), wakeup: world.wakeup() }),
      /^wakeup is set, but no run waits/,
    ],
    [
      "that is a queue without a dead-letter queue",
      ({ stack }) => ({ trigger: SingletonJobTrigger.queue(new Queue(stack, "Endless")) }),
      /^the queue Test\/Endless shows no dead-letter queue/,
    ],
    [
      "that is a queue, with the age of events",
      (world) => ({ trigger: SingletonJobTrigger.queue(world.queue()), maxEventAge: Duration.hours(1) }),
      /^maxEventAge is set for a queue/,
    ],
    [
      "that is a rule, with enabled",
      (world) => ({ trigger: SingletonJobTrigger.rule(world.rule()), enabled: false }),
      /^enabled is set for a rule/,
    ],
    [
      "with an input",
      (world) => ({ trigger: SingletonJobTrigger.rule(world.rule()), input: 1 }),
      /^input is set for a rule/,
    ],
    [
      "with a time window",
      (world) => ({
        trigger: SingletonJobTrigger.rule(world.rule()),
        timeWindow: TimeWindow.flexible(Duration.minutes(5)),
      }),
      /^timeWindow is set without a schedule/,
    ],
  ];
  test.each(refused)("is refused %s", (_, props, message) => {
    const world = new World();
    const target = SingletonJobTarget.lambda(world.fn());
    expect(() => world.job(target, props(world))).toThrow(message);
  });

  const machines: readonly [string, (world: World) => JobTarget][] = [
    ["a locked function", (world) => SingletonJobTarget.lockedLambda(world.fn())],
    ["a workflow", (world) => SingletonJobTarget.workflow(world.workflow())],
  ];
  test.each(machines)("that is a queue is refused for %s, which would lose its messages", (_, target) => {
    const world = new World();
    const trigger = SingletonJobTrigger.queue(world.queue());
    expect(() => world.job(target(world), { trigger })).toThrow(
      /^trigger is a queue, which cannot start this target: a message is deleted when the run has been started/,
    );
  });

  test("that is an imported queue names its dead-letter queue", () => {
    const world = new World();
    const [orders, failed] = ["orders", "failed"].map((name) =>
      Queue.fromQueueArn(world.stack, name, `arn:aws:sqs:eu-west-1:111122223333:${name}`),
    );
    if (orders === undefined || failed === undefined) throw new Error("two queues");
    const job = world.job(SingletonJobTarget.lambda(world.fn()), {
      trigger: SingletonJobTrigger.queue(orders),
      deadLetterQueue: failed,
    });
    expect(job.deadLetterQueue).toBe(failed);
  });
});

describe("a run by hand", () => {
  const slot = "2026-11-25T08:00:00Z";
  const targets: readonly [string, (world: World) => JobTarget, string, string][] = [
    ["a function", (world) => SingletonJobTarget.lambda(world.fn()), "Work", "lambda:InvokeFunction"],
    [
      "a locked function",
      (world) => SingletonJobTarget.lockedLambda(world.fn()),
      "JobWorkflow",
      "states:StartExecution",
    ],
    [
      "a workflow",
      (world) => SingletonJobTarget.workflow(world.workflow()),
      "Import",
      "states:StartExecution",
    ],
  ];
  test.each(targets)(
    "of %s has the event of that slot, and its caller a permission",
    (_, target, id, action) => {
      const world = new World();
      const job = world.job(target(world), { schedule: everyHour, input: { dryRun: true } });
      const operator = new Role(world.stack, "Operator", { assumedBy: new AccountRootPrincipal() });
      job.grantRun(operator);
      const template = world.template();
      const [schedule] = Object.values(template.findResources("AWS::Scheduler::Schedule"));
      const sent = JSON.parse(schedule?.Properties.Target.Input);
      expect(JSON.parse(world.stack.resolve(job.runEvent(slot)))).toEqual({
        ...sent,
        scheduledTime: slot,
        executionId: "by hand",
      });
      expect(world.stack.resolve(job.targetArn)).toEqual(schedule?.Properties.Target.Arn);
      expect(JSON.stringify(world.stack.resolve(job.targetArn))).toContain(`"${id}`);
      template.hasResourceProperties("AWS::IAM::Policy", {
        PolicyName: Match.stringLikeRegexp("^Operator"),
        PolicyDocument: { Statement: [Match.objectLike({ Action: action })] },
      });
    },
  );

  test("is refused without a time, and for a job with a trigger", () => {
    const world = new World();
    const job = world.job(SingletonJobTarget.lambda(world.fn()), { schedule: everyHour });
    for (const time of ["now", "2026-11-25", "2026-11-25T08:00:00"]) {
      expect(() => job.runEvent(time)).toThrow(/^scheduledTime is ".*": give an ISO time/);
    }
    const other = new World();
    const trigger = SingletonJobTrigger.queue(other.queue());
    const triggered = other.job(SingletonJobTarget.lambda(other.fn()), { trigger });
    expect(() => triggered.runEvent(slot)).toThrow(/^the job import has a trigger/);
  });

  test("does its slot's work once, with the scheduled run of the same slot", async () => {
    const world = new World();
    const job = world.job(SingletonJobTarget.lockedLambda(world.fn()), { schedule: everyHour });
    const template = world.template();
    const clock = new ManualClock(Date.parse(slot));
    const steps = new StepFunctions(clock);
    const definitions = definitionsIn(template);
    for (const [id, definition] of Object.entries(definitions)) steps.define(id, definition);
    const runs: unknown[] = [];
    steps.resources.set("lambda:invoke", ({ Payload }: { Payload: Record<string, unknown> }) => {
      runs.push(Payload.executionId);
      return { Payload: {} };
    });
    const stateMachineArn = machineArn(
      String(Object.keys(definitions).find((id) => id.startsWith("JobWorkflow"))),
    );
    const byHand = JSON.parse(world.stack.resolve(job.runEvent(slot)));
    for (const input of [byHand, { ...byHand, executionId: "by the schedule" }]) {
      steps.machines.start({ stateMachineArn, input });
      await clock.advance(5_000);
    }
    expect(runs).toEqual(["by hand"]);
    await clock.advance(3_600_000);
    steps.machines.start({
      stateMachineArn,
      input: { ...byHand, scheduledTime: "2026-11-25T09:00:00Z", executionId: "by the schedule" },
    });
    await clock.advance(5_000);
    expect(runs).toEqual(["by hand", "by the schedule"]);
  });
});
