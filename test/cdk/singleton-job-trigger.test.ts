// What a run is sent: by a schedule, by a rule, and by hand.
import { type JobTarget, SingletonJobTarget } from "@leasehold/cdk";
import { AccountRootPrincipal, Role } from "aws-cdk-lib/aws-iam";
import { expect, test } from "vitest";
import { eventRules } from "../../tools/local/src/services/event-bus.ts";
import { only, permitted } from "../support/constructs.ts";
import { JobWorld, machineIn } from "../support/jobs.ts";

const { lambda, lockedLambda, workflow } = SingletonJobTarget;
const scheduledTime = "2026-11-25T08:00:00Z";

// A role of the stack's schedules may start each of its leased workflows.
const leased = /^states:StartExecution .*:stateMachine:leased-\w+-\*$/;
test.each<[string, (world: JobWorld) => JobTarget, by: RegExp, scheduled?: RegExp]>([
  ["a function", ({ fn }) => lambda(fn), /^lambda:InvokeFunction .*Work/],
  ["a locked function", ({ fn }) => lockedLambda(fn), /^states:StartExecution <JobWorkflow/, leased],
  ["a workflow", (world) => workflow(world.workflow()), /^states:StartExecution <Import/, leased],
  [
    "a machine that is not of this package",
    ({ stack }) => workflow({ stateMachine: machineIn(stack) }),
    /^states:StartExecution <Machine/,
  ],
])(
  "a run of %s has its job, time and input, also by hand, for whom it is permitted",
  (_, targetIn, permission, scheduled = permission) => {
    const world = new JobWorld();
    const job = world.job({ target: targetIn(world), input: { dryRun: true } });
    job.grantRun(new Role(world.stack, "Operator", { assumedBy: new AccountRootPrincipal() }));
    const template = world.template();
    const { Target } = only(template.findResources("AWS::Scheduler::Schedule")).Properties;
    const event = { job: "close-unpaid-orders", input: { dryRun: true } };
    expect(JSON.parse(Target.Input)).toEqual({
      ...event,
      scheduledTime: "<aws.scheduler.scheduled-time>",
      executionId: "<aws.scheduler.execution-id>",
    });
    const byHand = JSON.parse(world.stack.resolve(job.runEvent(scheduledTime)));
    expect(byHand).toEqual({ ...event, scheduledTime, executionId: "by hand" });
    expect(world.stack.resolve(job.targetArn)).toEqual(Target.Arn);
    expect(permitted(template, /^Operator/)).toEqual([expect.stringMatching(permission)]);
    expect(permitted(template, /^SchedulerRole/)[0]).toMatch(scheduled);
  },
);

const event = {
  id: "11112222-aaaa",
  source: "shop",
  "detail-type": "Uploaded",
  detail: { file: 'a "quoted" name.csv' },
  resources: ["arn:aws:s3:::orders"],
  time: "2026-11-25T08:00:00Z",
};

test.each<[string, (world: JobWorld) => JobTarget]>([
  ["a function", ({ fn }) => lambda(fn)],
  ["a workflow, and may start no other", (world) => workflow(world.workflow())],
])("a rule sends its event to %s", (_, targetIn) => {
  const world = new JobWorld();
  const target = targetIn(world);
  const isWorkflow = "key" in target.refusedProps;
  const template = world.templateOf({
    trigger: world.rule(),
    target,
    ...(isWorkflow ? {} : { overlap: "skip" }),
  });
  const ofShop = { Properties: { EventPattern: { source: ["shop"] } } };
  const { EventPattern, Targets } = only(template.findResources("AWS::Events::Rule", ofShop)).Properties;
  const [{ InputTransformer }] = Targets;
  const spec = {
    stack: "s",
    path: "s/r",
    name: "r",
    logicalId: "r",
    arn: "arn:aws:events:eu-west-1:111122223333:rule/r",
    pattern: EventPattern,
    targets: [{ arn: "t", template: InputTransformer.InputTemplate, paths: InputTransformer.InputPathsMap }],
  };
  const sent: unknown[] = [];
  const send = (_arn: string, input: string) => sent.push(JSON.parse(input));
  eventRules([spec], { send, onError: () => {} })(event);
  expect(sent).toMatchObject([
    {
      job: "close-unpaid-orders",
      time: scheduledTime,
      executionId: event.id,
      input: { id: event.id, source: "shop", "detail-type": "Uploaded", detail: event.detail },
    },
  ]);
  expect(permitted(template, /^ImportStateMachineEventsRole/)).toEqual(
    isWorkflow ? [expect.stringMatching(/^states:StartExecution <ImportStateMachine\w+>$/)] : [],
  );
});
