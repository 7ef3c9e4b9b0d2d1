/** Jobs of constructs, and targets of each kind. */
import {
  type EcsTaskTargetOptions,
  type JobTarget,
  LeaseTable,
  LeaseWakeup,
  SingletonJob,
  type SingletonJobProps,
  SingletonJobTarget,
} from "@leasehold/cdk";
import type { Stack } from "aws-cdk-lib";
import type { Template } from "aws-cdk-lib/assertions";
import { type IVpc, Vpc } from "aws-cdk-lib/aws-ec2";
import {
  Cluster,
  type ClusterProps,
  ContainerImage,
  FargateTaskDefinition,
  LogDrivers,
  type TaskDefinition,
} from "aws-cdk-lib/aws-ecs";
import { DefinitionBody, Pass, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { EcsFargateLaunchTarget } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { env, everyFiveMinutes } from "./constructs.ts";
import { definitionsIn, stateNamed } from "./definitions.ts";

/** A job of every five minutes, unless the test wants another; a wakeup comes with it where runs wait. */
export function jobIn(
  stack: Stack,
  target: JobTarget,
  props: Partial<SingletonJobProps> = {},
  id = "Job",
): SingletonJob {
  const table = props.table ?? new LeaseTable(stack, `${id}Leases`, { stream: true });
  const waits = props.overlap === "queue" || props.overlap === "replace";
  const wakeup = waits ? { wakeup: new LeaseWakeup(stack, `${id}Wakeup`, { table }) } : {};
  return new SingletonJob(stack, id, { table, schedule: everyFiveMinutes, target, ...wakeup, ...props });
}

export const jobDefinitionArn = "arn:aws:batch:eu-west-1:111122223333:job-definition/report:3";
export const jobQueueArn = "arn:aws:batch:eu-west-1:111122223333:job-queue/slow";

/** The ARN of a state machine that no app of the tests defines. */
export function theirMachineArn(region: string = env.region, account: string = env.account): string {
  return `arn:aws:states:${region}:${account}:stateMachine:theirs`;
}

export function machineIn(stack: Stack, id = "Machine"): StateMachine {
  const definitionBody = DefinitionBody.fromChainable(new Pass(stack, `${id}Work`));
  return new StateMachine(stack, id, { definitionBody });
}

export function vpcIn(stack: Stack, id = "Vpc"): IVpc {
  return Vpc.fromVpcAttributes(stack, id, {
    vpcId: "vpc-0a1b2c3d",
    availabilityZones: ["a"],
    privateSubnetIds: ["subnet-0a1b2c3d"],
  });
}

export function clusterIn(stack: Stack, props: ClusterProps = {}): Cluster {
  return new Cluster(stack, "Cluster", { vpc: vpcIn(stack), ...props });
}

/** Gives a definition of tasks its default container, and another one. */
export function withContainers<Definition extends TaskDefinition>(definition: Definition): Definition {
  for (const name of ["main", "proxy"]) {
    const logging = LogDrivers.awsLogs({ streamPrefix: name });
    definition.addContainer(name, { image: ContainerImage.fromRegistry(name), memoryLimitMiB: 128, logging });
  }
  return definition;
}

export function ecsTask(stack: Stack, options: Partial<EcsTaskTargetOptions> = {}): JobTarget {
  return SingletonJobTarget.ecsTask({
    cluster: options.cluster ?? clusterIn(stack),
    taskDefinition: options.taskDefinition ?? withContainers(new FargateTaskDefinition(stack, "Definition")),
    launchTarget: new EcsFargateLaunchTarget(),
    ...options,
  });
}

/** A target of each kind of task. */
export const taskTargets = {
  ecsTask: (stack: Stack) => ecsTask(stack),
  batchJob: () => SingletonJobTarget.batchJob({ jobDefinitionArn, jobQueueArn }),
  glueJob: () => SingletonJobTarget.glueJob({ glueJobName: "report" }),
  stateMachine: (stack: Stack) =>
    SingletonJobTarget.stateMachine(StateMachine.fromStateMachineArn(stack, "Theirs", theirMachineArn())),
} as const;

/** The state that calls the function or runs the task. */
export function runIn<Run>(template: Template): Run {
  return stateNamed("Run", definitionsIn(template)) as Run;
}
