import { type JobTarget, type LeasedWorkflow, LeaseTable, SingletonJobTarget } from "@leasehold/cdk";
import { App, Duration, type Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import {
  Cluster,
  Ec2TaskDefinition,
  FargateTaskDefinition,
  PropagatedTagSource,
  TaskDefinition,
} from "aws-cdk-lib/aws-ecs";
import { Key } from "aws-cdk-lib/aws-kms";
import {
  CustomerManagedEncryptionConfiguration,
  DefinitionBody,
  Pass,
  StateMachine,
  StateMachineType,
} from "aws-cdk-lib/aws-stepfunctions";
import { EcsEc2LaunchTarget, EcsFargateLaunchTarget } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { describe, expect, test } from "vitest";
import { env, functionIn, newStack, permitted, statementsIn } from "../support/constructs.ts";
import { definitionsIn } from "../support/definitions.ts";
import {
  clusterIn,
  ecsTask,
  jobDefinitionArn,
  jobIn,
  jobQueueArn,
  runIn,
  taskTargets as targets,
  theirMachineArn,
  vpcIn,
  withContainers,
} from "../support/jobs.ts";

/** What a job's own workflow may do with the task. */
function aboutTask(target: (stack: Stack) => JobTarget): string[] {
  const stack = newStack();
  jobIn(stack, target(stack));
  const all = permitted(Template.fromStack(stack), /^JobWorkflowStateMachineRole/);
  return all.filter((text) => !/^(logs|xray|dynamodb):|^states:StartExecution <Lease/.test(text));
}

type Run = { readonly Arguments: Readonly<Record<string, unknown>> };

test("tasks of a job with permits leave no marks", () => {
  const stack = newStack();
  for (const [id, target] of Object.entries(targets)) {
    jobIn(stack, target(stack), { permits: 3, once: false }, id);
  }
  expect(JSON.stringify(definitionsIn(Template.fromStack(stack)))).not.toContain("MarkCall");
});

describe("the workflow of a job", () => {
  const here = "eu-west-1:111122223333";
  const watching = (rule: string): string =>
    `events:PutTargets,events:PutRule,events:DescribeRule arn:<AWS::Partition>:events:${here}:rule/${rule}`;

  test("of a task of ECS may run this revision in this cluster, see and stop its tasks, and pass its roles to ECS", () => {
    expect(aboutTask(ecsTask)).toEqual([
      expect.stringMatching(/^ecs:RunTask <Definition\w+>$/),
      expect.stringMatching(
        /^ecs:StopTask,ecs:DescribeTasks arn:<AWS::Partition>:ecs:eu-west-1:111122223333:task\/<Cluster\w+>\/\*$/,
      ),
      expect.stringMatching(
        /^iam:PassRole \["<DefinitionTaskRole\w+.Arn>","<DefinitionExecutionRole\w+.Arn>"\]$/,
      ),
      watching("StepFunctionsGetEventsForECSTaskRule"),
    ]);
    const stack = newStack();
    jobIn(stack, ecsTask(stack));
    const conditions = statementsIn(Template.fromStack(stack), /^JobWorkflow/).map(
      ({ Condition }) => Condition,
    );
    expect(conditions).toContainEqual({
      ArnEquals: { "ecs:cluster": { "Fn::GetAtt": [expect.stringMatching(/^Cluster/), "Arn"] } },
    });
    expect(conditions).toContainEqual({ StringEquals: { "iam:PassedToService": "ecs-tasks.amazonaws.com" } });
  });

  test("of a job of Batch may submit this one to this queue, and see and terminate jobs", () => {
    expect(aboutTask(() => SingletonJobTarget.batchJob({ jobDefinitionArn, jobQueueArn }))).toEqual([
      `batch:SubmitJob ${JSON.stringify([jobDefinitionArn, `${jobDefinitionArn}:*`, jobQueueArn])}`,
      `batch:TerminateJob arn:<AWS::Partition>:batch:${here}:job/*`,
      "batch:DescribeJobs *",
      watching("StepFunctionsGetEventsForBatchJobsRule"),
    ]);
  });

  test("of a task or a job with tags may set them", () => {
    const tagged = { propagatedTagSource: PropagatedTagSource.TASK_DEFINITION };
    expect(aboutTask((stack) => ecsTask(stack, tagged))).toContainEqual(
      expect.stringMatching(/^ecs:StopTask,ecs:DescribeTasks,ecs:TagResource arn:.*:task\/<Cluster\w+>\/\*$/),
    );
    const tags = { team: "reports" };
    const ofBatch = aboutTask(() => SingletonJobTarget.batchJob({ jobDefinitionArn, jobQueueArn, tags }));
    expect(ofBatch.slice(0, 2)).toEqual([
      `batch:SubmitJob,batch:TagResource ${JSON.stringify([jobDefinitionArn, `${jobDefinitionArn}:*`, jobQueueArn])}`,
      `batch:TerminateJob,batch:TagResource arn:<AWS::Partition>:batch:${here}:job/*`,
    ]);
  });

  test("of a job of Glue may start, see and stop runs of this one", () => {
    expect(aboutTask(() => SingletonJobTarget.glueJob({ glueJobName: "report" }))).toEqual([
      `glue:StartJobRun,glue:GetJobRun,glue:GetJobRuns,glue:BatchStopJobRun arn:<AWS::Partition>:glue:${here}:job/report`,
    ]);
  });

  test("of another state machine may start it, and see and stop its executions", () => {
    const theirs = (stack: Stack) => StateMachine.fromStateMachineArn(stack, "Theirs", theirMachineArn());
    expect(aboutTask((stack) => SingletonJobTarget.stateMachine(theirs(stack)))).toEqual([
      `states:StartExecution ${theirMachineArn()}`,
      `states:DescribeExecution,states:StopExecution arn:<AWS::Partition>:states:${here}:execution:theirs:*`,
      watching("StepFunctionsGetEventsForStepFunctionsExecutionRule"),
    ]);
  });

  test("of another state machine with a key may decrypt its output, by itself or as the user permits it", () => {
    const mayDecrypt = (stack: Stack, key: Key, conditions: object): void => {
      const permission = { Effect: "Allow", Action: "kms:Decrypt", Resource: stack.resolve(key.keyArn) };
      const statements = statementsIn(Template.fromStack(stack), /^JobWorkflowStateMachineRole/);
      expect(statements).toContainEqual({ ...permission, ...conditions });
    };
    const stack = newStack();
    const key = new Key(stack, "Key");
    const encryptionConfiguration = new CustomerManagedEncryptionConfiguration(key);
    const definitionBody = DefinitionBody.fromChainable(new Pass(stack, "Nothing"));
    const machine = new StateMachine(stack, "Theirs", { definitionBody, encryptionConfiguration });
    jobIn(stack, SingletonJobTarget.stateMachine(machine));
    const stateMachineArn = stack.resolve(machine.stateMachineArn);
    const StringEquals = { "kms:EncryptionContext:aws:states:stateMachineArn": stateMachineArn };
    mayDecrypt(stack, key, { Condition: { StringEquals } });

    const other = newStack();
    const theirKey = new Key(other, "Key");
    const imported = StateMachine.fromStateMachineArn(other, "Theirs", theirMachineArn());
    const job = jobIn(other, SingletonJobTarget.stateMachine(imported));
    theirKey.grantDecrypt((job.node.findChild("Workflow") as LeasedWorkflow).stateMachine);
    mayDecrypt(other, theirKey, {});
  });

  const locked = (stack: Stack): JobTarget => SingletonJobTarget.lockedLambda(functionIn(stack));
  test.each(Object.entries({ ...targets, locked }))(
    "of the target %s has the alarms and metrics of a locked job",
    (_, target) => {
      for (const overlap of ["skip", "replace"] as const) {
        const stack = newStack();
        const job = jobIn(stack, target(stack), { overlap });
        expect(Object.keys(job.runs.failed)).toEqual(
          overlap === "replace" ? ["failed", "timedOut"] : ["failed", "timedOut", "aborted"],
        );
        expect(job.alarms?.all).toHaveLength(3);
      }
    },
  );
});

describe("a task of ECS", () => {
  test("runs the revision of this app on Fargate, in private subnets, with a security group of its own", () => {
    const stack = newStack();
    jobIn(stack, ecsTask(stack));
    const template = Template.fromStack(stack);
    expect(runIn<Run>(template)).toMatchObject({
      Resource: "arn:aws:states:::ecs:runTask.sync",
      TimeoutSeconds: expect.stringContaining("(3600)"),
      Arguments: {
        LaunchType: "FARGATE",
        NetworkConfiguration: { AwsvpcConfiguration: { Subnets: ["subnet-0a1b2c3d"] } },
        TaskDefinition: expect.stringContaining("Definition"),
      },
    });
    template.resourceCountIs("AWS::EC2::SecurityGroup", 1);
  });

  test("keeps what the user overrides in each container, beside the run's own variables", () => {
    const stack = newStack();
    const taskDefinition = withContainers(new Ec2TaskDefinition(stack, "OnEc2"));
    const [main, proxy] = ["main", "proxy"].map((name) => taskDefinition.findContainer(name));
    if (main === undefined || proxy === undefined) throw new Error("no containers");
    jobIn(
      stack,
      ecsTask(stack, {
        cluster: Cluster.fromClusterAttributes(stack, "Fleet", {
          clusterName: "fleet",
          vpc: vpcIn(stack, "FleetVpc"),
          hasEc2Capacity: true,
        }),
        taskDefinition,
        launchTarget: new EcsEc2LaunchTarget(),
        containerOverrides: [
          { containerDefinition: main, command: ["report"], environment: [{ name: "MODE", value: "full" }] },
          { containerDefinition: proxy, cpu: 1 },
        ],
      }),
    );
    const { Arguments } = runIn<Run>(Template.fromStack(stack));
    expect(Arguments.LaunchType).toBe("EC2");
    expect(Arguments.Overrides).toMatchObject({
      ContainerOverrides: [
        { Name: "proxy", Cpu: 1 },
        {
          Name: "main",
          Command: ["report"],
          Environment: [{ Name: "MODE", Value: "full" }, { Name: "LEASEHOLD_JOB" }, {}, {}, {}, {}],
        },
      ],
    });
  });

  test("can be of another stack, as its table can", () => {
    const app = new App();
    const shared = newStack({ env }, app, "Shared");
    const table = new LeaseTable(shared, "Leases");
    const target = ecsTask(shared);
    const stack = newStack({ env }, app);
    jobIn(stack, target, { table });
    expect(() => app.synth()).not.toThrow();
    Template.fromStack(shared).resourceCountIs("AWS::Scheduler::Schedule", 0);
  });
});

describe("what a task cannot be", () => {
  test("without its parts, or with parts of another kind, refused by name", () => {
    const stack = newStack();
    const some = { cluster: clusterIn(stack), launchTarget: new EcsFargateLaunchTarget() };
    const imported = TaskDefinition.fromTaskDefinitionArn(
      stack,
      "Imported",
      "arn:aws:ecs:eu-west-1:111122223333:task-definition/report:1",
    );
    expect(() => SingletonJobTarget.ecsTask(some as never)).toThrow("taskDefinition is undefined");
    expect(() => SingletonJobTarget.ecsTask({ ...some, taskDefinition: imported as never })).toThrow(
      "taskDefinition is an object of another kind: give a task definition of aws-ecs, defined in this app",
    );
    expect(() => SingletonJobTarget.batchJob({ jobQueueArn } as never)).toThrow(
      "jobDefinitionArn is undefined",
    );
    expect(() => SingletonJobTarget.glueJob({ glueJobName: 1 } as never)).toThrow(
      "glueJobName is 1: give a text",
    );
    expect(() => SingletonJobTarget.stateMachine("theirs" as never)).toThrow('machine is "theirs"');
  });

  test.each([
    [{ retryAttempts: 21 }, "retryAttempts of the Glue job is 21: set a whole number from 0 to 20"],
    [
      { timeout: Duration.seconds(30) },
      "timeout of the Glue job is 30 seconds: choose from 1 minute to 7 days",
    ],
    [{ timeout: Duration.days(8) }, "timeout of the Glue job is 8 days: choose from 1 minute to 7 days"],
  ])("with %o", (options, message) => {
    expect(() => SingletonJobTarget.glueJob({ glueJobName: "report", ...options })).toThrow(message);
  });

  test("a task definition without a container", () => {
    const stack = newStack();
    const taskDefinition = new FargateTaskDefinition(stack, "Empty");
    expect(() => jobIn(stack, ecsTask(stack, { taskDefinition }))).toThrow(
      "Test/Empty has no container: add one before the job is defined",
    );
  });

  test("an express state machine, or one of another region or account", () => {
    const stack = newStack();
    const express = new StateMachine(stack, "Express", {
      stateMachineType: StateMachineType.EXPRESS,
      definitionBody: DefinitionBody.fromChainable(new Pass(stack, "Done")),
    });
    expect(() => SingletonJobTarget.stateMachine(express)).toThrow(
      "the state machine Test/Express is an express one, whose end Step Functions cannot wait for: give one of the type STANDARD",
    );
    const there = StateMachine.fromStateMachineArn(stack, "There", theirMachineArn("us-east-1"));
    expect(() => jobIn(stack, SingletonJobTarget.stateMachine(there), {}, "There2")).toThrow(
      "the state machine Test/There is in us-east-1, and Step Functions calls services of its own region (eu-west-1) only",
    );
    const theirs = StateMachine.fromStateMachineArn(
      stack,
      "Theirs",
      theirMachineArn("eu-west-1", "444455556666"),
    );
    expect(() => jobIn(stack, SingletonJobTarget.stateMachine(theirs), {}, "Theirs2")).toThrow(
      "the state machine Test/Theirs is of the account 444455556666, and a job uses those of its own account (111122223333) only",
    );
  });
});
