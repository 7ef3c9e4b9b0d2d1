/** The tasks of other services that a job can run under its lock. */
import { environmentNames, runEnvironmentNames } from "@leasehold/client/environment";
import { ArnFormat, Aws, Duration, type IResource, Names, Stack } from "aws-cdk-lib";
import type { ISecurityGroup, SubnetSelection } from "aws-cdk-lib/aws-ec2";
import type { Cluster, ICluster, PropagatedTagSource, TaskDefinition } from "aws-cdk-lib/aws-ecs";
import { type IRole, PolicyStatement } from "aws-cdk-lib/aws-iam";
import {
  IntegrationPattern,
  type IStateMachine,
  QueryLanguage,
  StateMachineType,
  TaskInput,
  type TaskStateBase,
  Timeout,
} from "aws-cdk-lib/aws-stepfunctions";
import {
  type BatchContainerOverrides,
  type BatchJobDependency,
  BatchSubmitJob,
  type ContainerOverride,
  EcsRunTask,
  type ExecutionClass,
  GlueStartJobRun,
  type IEcsLaunchTarget,
  type WorkerConfigurationProperty,
} from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { areSame } from "../table/table-place.ts";
import { jsonata, startedBy } from "../workflow/asl.ts";
import { executionsInPolicy } from "../workflow/machine-names.ts";
import { mayReadOutput } from "../workflow/state-machine.ts";
import type { TargetSettings } from "./job-target.ts";
import { fencedInput, input } from "./locked-call.ts";
import type { LockedTaskTargetOptions, TaskOfJob } from "./locked-target.ts";
import { checkSameRegion } from "./workflow-target.ts";

/** Options of {@link SingletonJobTarget.ecsTask}: those of the library's EcsRunTask, and the job's own. */
export interface EcsTaskTargetOptions extends LockedTaskTargetOptions {
  /** Where the task runs. The library's own Cluster is no ICluster under exactOptionalPropertyTypes. */
  readonly cluster: ICluster | Cluster;
  /** What runs, with its default container. */
  readonly taskDefinition: TaskDefinition;
  /** The launch target, such as `new EcsFargateLaunchTarget()`. */
  readonly launchTarget: IEcsLaunchTarget;
  /** Other settings for some containers. @default - none */
  readonly containerOverrides?: ContainerOverride[];
  /** @default - public subnets with assignPublicIp, private ones otherwise */
  readonly subnets?: SubnetSelection;
  /** @default - a new security group */
  readonly securityGroups?: ISecurityGroup[];
  /** @default false */
  readonly assignPublicIp?: boolean;
  /** The source of the task's tags. @default - none */
  readonly propagatedTagSource?: PropagatedTagSource;
  /** Whether ECS Exec may be used. @default false */
  readonly enableExecuteCommand?: boolean;
  /** CPU units of the task. @default - those of the definition */
  readonly cpu?: string;
  /** Memory of the task in MiB. @default - that of the definition */
  readonly memoryMiB?: string;
}

/** Options of {@link SingletonJobTarget.batchJob}: those of the library's BatchSubmitJob, and the job's own. */
export interface BatchJobTargetOptions extends LockedTaskTargetOptions {
  readonly jobDefinitionArn: string;
  readonly jobQueueArn: string;
  /** From 2 to 10,000, for an array job. @default - no array */
  readonly arraySize?: number;
  /** Other settings for the container. @default - none */
  readonly containerOverrides?: BatchContainerOverrides;
  /** Jobs that have to end before, 20 at most. @default - none */
  readonly dependsOn?: BatchJobDependency[];
  /** Parameters of the job. @default - none */
  readonly payload?: TaskInput;
  /** How often Batch itself attempts the job, from 1 to 10. @default 1 */
  readonly attempts?: number;
  /** @default - none */
  readonly tags?: { readonly [name: string]: string };
}

/** Options of {@link SingletonJobTarget.glueJob}: those of the library's GlueStartJobRun, and the job's own. */
export interface GlueJobTargetOptions extends LockedTaskTargetOptions {
  readonly glueJobName: string;
  /** Arguments of the run besides those that every run gets; each name begins with `--`. @default - none */
  readonly arguments?: { readonly [name: string]: string };
  /** The name of a security configuration. @default - that of the job's definition */
  readonly securityConfiguration?: string;
  /** When Glue reports a run as delayed; at least a minute. @default - that of the job's definition */
  readonly notifyDelayAfter?: Duration;
  /** @default - that of the job's definition */
  readonly workerConfiguration?: WorkerConfigurationProperty;
  /** @default ExecutionClass.STANDARD */
  readonly executionClass?: ExecutionClass;
}

/** A task of ECS; the environment is that of the task definition's default container. */
export function ecsTask(options: EcsTaskTargetOptions): TaskOfJob {
  return (job, settings) => {
    const { retryAttempts: _, timeout: __, containerOverrides = [], ...props } = options;
    const { taskDefinition } = props;
    const cluster = props.cluster as ICluster;
    const tagging = props.propagatedTagSource === undefined ? [] : ["ecs:TagResource"];
    const { defaultContainer, taskRole, executionRole } = taskDefinition;
    if (defaultContainer === undefined) {
      throw new Error(`${taskDefinition.node.path} has no container: add one before the job is defined`);
    }
    checkSameRegion(job, "cluster", cluster);
    checkSameAccount(job, "cluster", cluster);
    const environment = Object.entries(variables(settings)).map(([name, value]) => ({ name, value }));
    const isDefault = ({ containerDefinition }: ContainerOverride): boolean =>
      containerDefinition.containerName === defaultContainer.containerName;
    const own = containerOverrides.find(isDefault);
    const task = EcsRunTask.jsonata(job, "Task", {
      ...props,
      cluster,
      integrationPattern: IntegrationPattern.RUN_JOB,
      containerOverrides: [
        ...containerOverrides.filter((override) => !isDefault(override)),
        {
          containerDefinition: defaultContainer,
          ...own,
          environment: [...(own?.environment ?? []), ...environment],
        },
      ],
    });
    const state = fieldsOf(task);
    const roles = [taskRole, executionRole].filter((role): role is IRole => role !== undefined);
    return {
      // The revision that this app deploys. The workflow may run only that.
      state: {
        ...state,
        Arguments: { ...Object(state.Arguments), TaskDefinition: taskDefinition.taskDefinitionArn },
      },
      statements: [
        may(["ecs:RunTask"], [taskDefinition.taskDefinitionArn], {
          ArnEquals: { "ecs:cluster": cluster.clusterArn },
        }),
        may(
          ["ecs:StopTask", "ecs:DescribeTasks", ...tagging],
          [arnOf(job, "ecs", "task", `${cluster.clusterName}/*`)],
        ),
        may(
          ["iam:PassRole"],
          roles.map(({ roleArn }) => roleArn),
          { StringEquals: { "iam:PassedToService": "ecs-tasks.amazonaws.com" } },
        ),
        mayWatch(job, "StepFunctionsGetEventsForECSTaskRule"),
      ],
      noRoom: ["ECS.AmazonECSException", "AmazonECS.Unknown"],
      unclear: ["ECS.ServerException", "ECS.SdkClientException"],
    };
  };
}

/** A job of AWS Batch. */
export function batchJob(options: BatchJobTargetOptions): TaskOfJob {
  return (job, settings, timeout) => {
    const { retryAttempts: _, timeout: __, containerOverrides, ...props } = options;
    const { jobDefinitionArn, jobQueueArn } = props;
    // Batch asks for it on the definition, too.
    const tagging = props.tags === undefined ? [] : ["batch:TagResource"];
    const task = BatchSubmitJob.jsonata(job, "Task", {
      ...props,
      jobName: Names.uniqueResourceName(job, {
        maxLength: 128,
        separator: "-",
        allowedSpecialCharacters: "-",
      }),
      containerOverrides: {
        ...containerOverrides,
        environment: { ...containerOverrides?.environment, ...variables(settings) },
      },
      taskTimeout: Timeout.duration(timeout),
    });
    return {
      state: fieldsOf(task),
      statements: [
        // For a definition without a revision, Batch runs the newest revision.
        may(["batch:SubmitJob", ...tagging], [jobDefinitionArn, `${jobDefinitionArn}:*`, jobQueueArn]),
        may(["batch:TerminateJob", ...tagging], [arnOf(job, "batch", "job", "*")]),
        // This action supports no resource-level permissions.
        may(["batch:DescribeJobs"], ["*"]),
        mayWatch(job, "StepFunctionsGetEventsForBatchJobsRule"),
      ],
      noRoom: ["Batch.AWSBatchException", "Batch.TooManyRequestsException"],
      unclear: ["Batch.ServerException", "Batch.SdkClientException"],
    };
  };
}

/** Glue refuses to start a run with a longer timeout. */
export const longestGlueTimeout: Duration = Duration.days(7);

/** A job of AWS Glue. Its runs get arguments, because they have no environment. */
export function glueJob(options: GlueJobTargetOptions): TaskOfJob {
  return (job, settings, timeout) => {
    const { retryAttempts: _, timeout: __, arguments: own, ...props } = options;
    const given = Object.entries(variables(settings)).map(([name, value]) => [`--${name}`, value]);
    const task = GlueStartJobRun.jsonata(job, "Task", {
      ...props,
      integrationPattern: IntegrationPattern.RUN_JOB,
      arguments: TaskInput.fromObject({ ...own, ...Object.fromEntries(given) }),
      // Glue counts minutes.
      taskTimeout: Timeout.duration(Duration.minutes(Math.ceil(timeout.toSeconds() / 60))),
    });
    return {
      state: fieldsOf(task),
      statements: [
        may(
          ["glue:StartJobRun", "glue:GetJobRun", "glue:GetJobRuns", "glue:BatchStopJobRun"],
          [arnOf(job, "glue", "job", props.glueJobName)],
        ),
      ],
      // The job has reached its most runs: an earlier run is still being stopped, or someone has started one by hand.
      noRoom: [
        "Glue.AWSGlueException",
        "Glue.ThrottlingException",
        "Glue.ConcurrentRunsExceededException",
        "Glue.ResourceNumberLimitExceededException",
      ],
      unclear: ["Glue.InternalServiceException", "Glue.OperationTimeoutException", "Glue.SdkClientException"],
    };
  };
}

/** An execution of a state machine without its own locking code. */
export function execution(machine: IStateMachine): TaskOfJob {
  if (
    (machine as { readonly stateMachineType?: StateMachineType }).stateMachineType ===
    StateMachineType.EXPRESS
  ) {
    throw new Error(
      `the state machine ${machine.node.path} is an express one, whose end Step Functions cannot wait for: ` +
        "give one of the type STANDARD",
    );
  }
  return (job) => {
    checkSameRegion(job, "state machine", machine);
    checkSameAccount(job, "state machine", machine);
    return {
      state: {
        Type: "Task",
        QueryLanguage: "JSONata",
        Resource: `arn:${Aws.PARTITION}:states:::states:startExecution.sync:2`,
        Arguments: {
          StateMachineArn: machine.stateMachineArn,
          Input: jsonata(
            `$type(${input}) = 'object' ? $merge([(${fencedInput}), {${startedBy}}]) : ${input}`,
          ),
        },
      },
      statements: [
        may(["states:StartExecution"], [machine.stateMachineArn]),
        may(
          ["states:DescribeExecution", "states:StopExecution"],
          [executionsInPolicy(machine, Stack.of(job))],
        ),
        mayWatch(job, "StepFunctionsGetEventsForStepFunctionsExecutionRule"),
        ...mayReadOutput(machine),
      ],
      result: "$states.result.Output",
      noRoom: ["StepFunctions.ExecutionLimitExceededException", "StepFunctions.AWSStepFunctionsException"],
      unclear: ["StepFunctions.SdkClientException"],
    };
  };
}

/** The variables that every run gives its work, as the command line does. */
function variables({ jobName, key }: TargetSettings): Readonly<Record<string, string>> {
  const textOf = (field: string, otherwise: string): string =>
    jsonata(`$exists(${input}.${field}) ? $string(${input}.${field}) : '${otherwise}'`);
  return {
    [environmentNames.job]: jobName,
    [environmentNames.key]: key,
    [runEnvironmentNames.slot]: textOf("scheduledTime", ""),
    [runEnvironmentNames.fencingToken]: jsonata("$string($lease.fencingToken)"),
    [runEnvironmentNames.input]: textOf("input", "null"),
  };
}

/** A library's task as the fields of its state. */
function fieldsOf(task: TaskStateBase): Record<string, unknown> {
  const { End: _, ...state } = task.toStateJson(QueryLanguage.JSON_PATH) as Record<string, unknown>;
  return state;
}

/** Permits the rule that Step Functions itself makes in the account. By this rule it learns of the task's end. */
function mayWatch(job: Construct, rule: string): PolicyStatement {
  const actions = ["events:PutTargets", "events:PutRule", "events:DescribeRule"];
  return may(actions, [arnOf(job, "events", "rule", rule)]);
}

function may(
  actions: string[],
  resources: string[],
  conditions: Record<string, Record<string, unknown>> = {},
): PolicyStatement {
  return new PolicyStatement({ actions, resources, conditions });
}

function arnOf(job: Construct, service: string, resource: string, resourceName: string): string {
  return Stack.of(job).formatArn({
    service,
    resource,
    resourceName,
    arnFormat: ArnFormat.SLASH_RESOURCE_NAME,
  });
}

function checkSameAccount(job: Construct, kind: string, resource: IResource): void {
  const [here, there] = [Stack.of(job).account, resource.env.account];
  if (areSame(here, there) !== false) return;
  throw new Error(
    `the ${kind} ${resource.node.path} is of the account ${there}, and a job uses those of its own account (${here}) ` +
      `only: define the job in a stack of ${there}`,
  );
}
