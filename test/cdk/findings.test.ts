// What validators find in users' stacks: nothing about what the constructs make.

import {
  type JobOverlap,
  type JobTarget,
  LeaseDashboard,
  LeasedWorkflow,
  LeasedWorkflowAlarms,
  type LeasedWorkflowProps,
  LeaseHeartbeat,
  LeaseHeartbeatAlarms,
  LeaseTable,
  LeaseTableAlarms,
  LeaseWakeup,
  LeaseWakeupAlarms,
  SingletonJob,
  SingletonJobTarget,
  SingletonJobTrigger,
  TaskTrigger,
} from "@leasehold/cdk";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { TableEncryptionV2 } from "aws-cdk-lib/aws-dynamodb";
import { ContainerInsights } from "aws-cdk-lib/aws-ecs";
import { Rule } from "aws-cdk-lib/aws-events";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { type Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { CallAwsService } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { describe, expect, test } from "vitest";
import { findingsIn, needlessIn } from "../support/cdk-nag.ts";
import { type CloudFormationTemplate, templateProblems } from "../support/cloudformation.ts";
import {
  functionIn as anyFunctionIn,
  newStack,
  everyFiveMinutes as schedule,
} from "../support/constructs.ts";
import { definitionsIn, problemsIn } from "../support/definitions.ts";
import { clusterIn, ecsTask, machineIn, taskTargets } from "../support/jobs.ts";

/** A function of the user's, about which cdk-nag finds nothing. */
function functionIn(stack: Stack, id: string): LambdaFunction {
  const role = new Role(stack, `${id}Role`, { assumedBy: new ServicePrincipal("lambda.amazonaws.com") });
  return anyFunctionIn(stack, id, { role, runtime: Runtime.NODEJS_LATEST });
}

function workflowIn(stack: Stack, id: string, props: Omit<LeasedWorkflowProps, "work">): LeasedWorkflow {
  return new LeasedWorkflow(stack, id, { work: new Pass(stack, `${id}Work`), ...props });
}

/** A stack with each construct of the package. */
function everything(stack: Stack, encryption?: TableEncryptionV2): Stack {
  const table = new LeaseTable(stack, "Leases", {
    history: Duration.days(7),
    ...(encryption === undefined ? {} : { encryption }),
  });
  const wakeup = new LeaseWakeup(stack, "Wakeup", { table });
  new TaskTrigger(stack, "Letters", { table, worker: functionIn(stack, "Letter"), keys: ["letters"] });
  const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table, scope: { keyPrefixes: ["orders/"] } });
  const waiting = workflowIn(stack, "Waiting", { table, wakeup, heartbeat, whenHeld: "wait" });
  const named = workflowIn(stack, "Named", { table, key: "named", stateMachineName: "acme-import" });
  const lockAtLeastFor = Duration.seconds(10);
  workflowIn(stack, "Permitted", { table, permits: 500, lockAtLeastFor, whenHeld: "skip" });
  const overlaps: readonly JobOverlap[] = ["skip", "queue", "replace"];
  const jobs = overlaps.flatMap((overlap) => {
    const common = { table, schedule, overlap };
    const queues = overlap === "queue" ? { wakeup } : {};
    const waits = overlap === "skip" ? {} : { wakeup };
    return [
      new SingletonJob(stack, `Function${overlap}`, {
        ...common,
        ...queues,
        target: SingletonJobTarget.lambda(functionIn(stack, `Close${overlap}`)),
      }),
      new SingletonJob(stack, `Locked${overlap}`, {
        ...common,
        ...waits,
        target: SingletonJobTarget.lockedLambda(functionIn(stack, `Report${overlap}`)),
      }),
    ];
  });
  const tasks: Readonly<Record<string, JobTarget>> = {
    Container: ecsTask(stack, {
      cluster: clusterIn(stack, { containerInsightsV2: ContainerInsights.ENABLED }),
    }),
    Batch: taskTargets.batchJob(),
    Glue: taskTargets.glueJob(),
    Machine: taskTargets.stateMachine(stack),
  };
  for (const [index, [id, target]] of Object.entries(tasks).entries()) {
    const overlap = overlaps[index % 3] ?? "skip";
    const waits = overlap === "skip" ? {} : { wakeup };
    jobs.push(new SingletonJob(stack, `${id}Job`, { table, schedule, target, overlap, ...waits }));
  }
  const uploaded = new Rule(stack, "Uploaded", { eventPattern: { source: ["shop"] } });
  new SingletonJob(stack, "TriggeredJob", {
    table,
    trigger: SingletonJobTrigger.rule(uploaded),
    overlap: "skip",
    permits: 3,
    target: SingletonJobTarget.lockedLambda(functionIn(stack, "Triggered")),
  });
  const failed = new Queue(stack, "Failed", { enforceSSL: true });
  const orders = new Queue(stack, "Orders", {
    enforceSSL: true,
    visibilityTimeout: Duration.minutes(6),
    deadLetterQueue: { queue: failed, maxReceiveCount: 5 },
  });
  new SingletonJob(stack, "QueuedJob", {
    table,
    trigger: SingletonJobTrigger.queue(orders),
    target: SingletonJobTarget.lambda(functionIn(stack, "Queued")),
  });
  for (const workflow of [waiting, named]) {
    const target = SingletonJobTarget.workflow(workflow);
    jobs.push(new SingletonJob(stack, `Job${workflow.node.id}`, { table, schedule, target }));
  }
  new LeasedWorkflowAlarms(stack, "WorkflowAlarms", { workflow: waiting });
  new LeaseHeartbeatAlarms(stack, "HeartbeatAlarms", { heartbeat });
  new LeaseWakeupAlarms(stack, "WakeupAlarms", { wakeup });
  new LeaseTableAlarms(stack, "TableAlarms", { table });
  new LeaseDashboard(stack, "Dashboard", { tables: [table], jobs, workflows: [named.stateMachine] });
  return stack;
}

describe.each([
  ["leaves its account and region open", () => everything(newStack({}))],
  [
    "knows them, and whose table has a key of the user's",
    () => {
      const stack = newStack();
      const key = new Key(stack, "Key", { enableKeyRotation: true });
      return everything(stack, TableEncryptionV2.customerManagedKey(key));
    },
  ],
])("a stack with each construct that %s", (_, make) => {
  test("has no finding of cdk-nag, and no fault to AWS's own validator and to one of state machines", () => {
    const stack = make();
    expect(findingsIn(stack)).toEqual([]);
    const template = Template.fromStack(stack);
    expect(templateProblems(template.toJSON() as CloudFormationTemplate)).toEqual([]);
    expect(Object.keys(definitionsIn(template)).length).toBeGreaterThan(15);
    expect(problemsIn(template)).toEqual([]);
  });

  test("accepts no finding that does not occur", () => expect(needlessIn(make())).toEqual([]));
});

test("a stack has no finding about what it adds to the heartbeat of another stack", () => {
  const app = new App();
  const platform = new Stack(app, "Platform");
  const table = new LeaseTable(platform, "Leases");
  const heartbeat = new LeaseHeartbeat(platform, "Heartbeat", { table });
  const team = new Stack(app, "Team");
  workflowIn(team, "Import", { table, heartbeat });
  expect(findingsIn(team)).toEqual([]);
});

test("a stack has no finding about what a heartbeat may do with a state machine of the user's", () => {
  const stack = newStack({});
  const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table: new LeaseTable(stack, "Leases") });
  heartbeat.guard(machineIn(stack, "Own"));
  const findings = findingsIn(stack);
  expect(findings.length).toBeGreaterThan(0);
  expect(findings.filter((finding) => !finding.startsWith("Test/Own/"))).toEqual([]);
});

test("a finding about a user's own work stays", () => {
  const stack = newStack({});
  const work = new CallAwsService(stack, "List", {
    service: "s3",
    action: "listBuckets",
    iamAction: "s3:ListAllMyBuckets",
    iamResources: ["*"],
  });
  const table = new LeaseTable(stack, "Leases");
  new LeasedWorkflow(stack, "Import", { table, key: "import", work });
  expect(findingsIn(stack)).toEqual([
    "Test/Import/StateMachine/Role/DefaultPolicy/Resource AwsSolutions-IAM5[Resource::*]",
  ]);
});
