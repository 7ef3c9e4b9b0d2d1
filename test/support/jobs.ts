/** Jobs of constructs, and targets of each kind. */
import {
  type EcsTaskTargetOptions,
  type JobTarget,
  LeasedWorkflow,
  LeaseTable,
  LeaseWakeup,
  SingletonJob,
  type SingletonJobProps,
  SingletonJobTarget,
  SingletonJobTrigger,
} from "@leasehold/cdk";
import { Duration, type Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { type IVpc, Vpc } from "aws-cdk-lib/aws-ec2";
import {
  Cluster,
  type ClusterProps,
  ContainerImage,
  FargateTaskDefinition,
  LogDrivers,
  type TaskDefinition,
} from "aws-cdk-lib/aws-ecs";
import { Rule } from "aws-cdk-lib/aws-events";
import {
  Alias,
  type IFunction,
  type IVersion,
  Function as LambdaFunction,
  Version,
} from "aws-cdk-lib/aws-lambda";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { DefinitionBody, Pass, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { EcsFargateLaunchTarget } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { env, everyFiveMinutes, functionIn, newStack } from "./constructs.ts";
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

/** A stack with a table, a function, and what else a job can be made of. */
export class JobWorld {
  readonly stack: Stack = newStack();
  readonly table = new LeaseTable(this.stack, "Leases", { stream: true });
  readonly fn = functionIn(this.stack, "Work", { timeout: Duration.minutes(2) });

  workflow(): LeasedWorkflow {
    const work = new Pass(this.stack, "Nothing");
    return new LeasedWorkflow(this.stack, "Import", { table: this.table, key: "import", work });
  }

  wakeup(): LeaseWakeup {
    return new LeaseWakeup(this.stack, "Wakeup", { table: this.table });
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

  /** A job of every five minutes, unless it has a trigger. */
  job(given: JobProps = {}, id = "Job"): SingletonJob {
    const { table, fn } = this;
    const schedule = given.trigger ? {} : { schedule: everyFiveMinutes };
    const target = given.target ?? SingletonJobTarget.lambda(fn);
    const props = { table, ...schedule, jobName: "close-unpaid-orders", ...given, target };
    return new SingletonJob(this.stack, id, props as SingletonJobProps);
  }

  /** The template of the stack with one job. */
  templateOf(given?: JobProps): Template {
    this.job(given);
    return this.template();
  }

  template(): Template {
    return Template.fromStack(this.stack);
  }
}

export function aliasIn(stack: Stack, id: string, version: IVersion): IFunction {
  // The library's own types disagree under exactOptionalPropertyTypes.
  return new Alias(stack, id, { aliasName: "live", version }) as IFunction;
}

const functionArn = (account = env.account): string => `arn:aws:lambda:eu-west-1:${account}:function:report`;

/** Functions that the app does not define. */
export const otherFunctions: Readonly<Record<string, (stack: Stack, id: string) => IFunction>> = {
  "an imported function": (stack, id) => LambdaFunction.fromFunctionName(stack, id, "report"),
  "one of another account": (stack, id) =>
    LambdaFunction.fromFunctionArn(stack, id, functionArn("444455556666")),
  "an imported alias": (stack, id) =>
    Alias.fromAliasAttributes(stack, id, {
      aliasName: "live",
      aliasVersion: Version.fromVersionArn(stack, `${id}Version`, `${functionArn()}:7`),
    }),
  "an imported version": (stack, id) => Version.fromVersionArn(stack, id, `${functionArn()}:7`),
};

/** Some of a job's props; undefined takes one away. */
export type JobProps = { readonly [Name in keyof SingletonJobProps]?: SingletonJobProps[Name] | undefined };

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
