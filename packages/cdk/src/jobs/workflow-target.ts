import { Duration, type IResource, Stack } from "aws-cdk-lib";
import { SfnStateMachine } from "aws-cdk-lib/aws-events-targets";
import { type IRole, PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { ISchedule, IScheduleTarget, ScheduleTargetConfig } from "aws-cdk-lib/aws-scheduler";
import {
  ScheduleTargetBase,
  type ScheduleTargetBaseProps,
  StepFunctionsStartExecution,
} from "aws-cdk-lib/aws-scheduler-targets";
import type { IChainable, IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { acceptResource } from "../accepted-findings.ts";
import { picked } from "../prop-kinds.ts";
import { areSame } from "../table/table-place.ts";
import { permissionsToKeep } from "../workflow/lease-heartbeat.ts";
import { LeasedWorkflow } from "../workflow/leased-workflow.ts";
import { isLeased, leasedMachines, ofLeasedWorkflows } from "../workflow/machine-names.ts";
import type { RedriveGuard } from "../workflow/redrive-guard.ts";
import { failuresOf } from "../workflow/state-machine.ts";
import type { WhenHeld } from "../workflow/workflow-terms.ts";
import { type IBoundTarget, type JobOverlap, JobTarget, type TargetSettings } from "./job-target.ts";

const onItsOwn = "for a workflow, which has its own: set it on the LeasedWorkflow instead";

/** The part of a leased workflow that a job needs. */
export interface LeasedStateMachine {
  readonly stateMachine: IStateMachine;
  /** The guard that stops redriven executions. @default - none here */
  readonly redriveGuard?: RedriveGuard;
}

/** A leased workflow, with all of its own settings. */
export class WorkflowTarget extends JobTarget {
  readonly timeout = undefined;
  readonly refusedProps: JobTarget["refusedProps"] = {
    key: onItsOwn,
    overlap: onItsOwn,
    once: onItsOwn,
    lockAtMostFor: onItsOwn,
    lockAtLeastFor: onItsOwn,
    heartbeat: onItsOwn,
    permits: onItsOwn,
  };
  readonly waitingOverlaps: JobOverlap[] = [];
  readonly keptOverlaps: JobOverlap[] = [];
  readonly #workflow: LeasedStateMachine;

  constructor(workflow: LeasedStateMachine) {
    super();
    this.#workflow = workflow;
  }

  bind(): IBoundTarget {
    return runsOf(this.#workflow);
  }
}

/** A job whose runs are the executions of a leased workflow. */
function runsOf({ stateMachine, redriveGuard }: LeasedStateMachine): IBoundTarget {
  return {
    redriveGuard,
    permissions: permissionsToKeep(stateMachine),
    runs: {
      succeeded: stateMachine.metricSucceeded(),
      failed: failuresOf(stateMachine),
    },
    arn: stateMachine.stateMachineArn,
    grantStart: (grantee) => stateMachine.grantStartExecution(grantee),
    scheduleTarget: (props) =>
      isLeased(stateMachine)
        ? new StartLeasedWorkflow(stateMachine, props)
        : new StepFunctionsStartExecution(stateMachine, props),
    ruleTarget: ({ event, ...props }) => new SfnStateMachine(stateMachine, { ...props, input: event }),
  };
}

/**
 * A schedule's target: a leased workflow.
 *
 * Like the library's StepFunctionsStartExecution, but all targets of a stack share one role, which may start each of
 * the stack's leased workflows.
 */
class StartLeasedWorkflow extends ScheduleTargetBase implements IScheduleTarget {
  readonly #stateMachineArn: string;

  constructor(stateMachine: IStateMachine, props: ScheduleTargetBaseProps) {
    // The library makes a role for each target ARN here.
    super(props, leasedMachines(Stack.of(stateMachine)));
    this.#stateMachineArn = stateMachine.stateMachineArn;
  }

  override bind(schedule: ISchedule): ScheduleTargetConfig {
    return { ...super.bind(schedule), arn: this.#stateMachineArn };
  }

  protected addTargetActionToRole(role: IRole): void {
    role.addToPrincipalPolicy(
      new PolicyStatement({ actions: ["states:StartExecution"], resources: [this.targetArn] }),
    );
    acceptResource(role, this.targetArn, ofLeasedWorkflows);
  }
}

/** The shortest default of the workflow's lease; its keeper renews it. */
const shortestLease = Duration.minutes(3);

/** The states of a job's workflow, and their permissions. */
export interface JobWork {
  /** The states that call the function, or run the task. */
  readonly work: IChainable;
  /** The permissions of these states. */
  readonly statements: readonly PolicyStatement[];
}

/** The parts of a job's workflow, besides the job's settings. */
export interface JobWorkflowProps extends JobWork {
  readonly key: string;
  readonly whenHeld: WhenHeld;
  readonly leaseDuration?: Duration | undefined;
}

/** Creates the target of a workflow that holds a lease while it works. Its waiting runs do not poll. */
export function jobWorkflow(
  job: Construct,
  id: string,
  settings: TargetSettings,
  props: JobWorkflowProps,
): IBoundTarget {
  const { table, once, lockAtLeastFor, maxEventAge, keeper } = settings;
  const { key, whenHeld, work, statements, leaseDuration = longer(lockAtLeastFor, shortestLease) } = props;
  const workflow = new LeasedWorkflow(job, id, {
    table,
    key,
    work,
    whenHeld,
    once,
    leaseDuration,
    // A run that is too old to start is too old to wait.
    ...(whenHeld === "skip" ? {} : { waitFor: maxEventAge }),
    ...picked(settings, "permits", "lockAtLeastFor", "wakeup"),
    ...(keeper ? { heartbeat: keeper } : {}),
    ...settings.observability,
  });
  const { stateMachine } = workflow;
  for (const statement of statements) {
    stateMachine.addToRolePolicy(statement);
    for (const arn of statement.resources) {
      acceptResource(stateMachine, arn, "a task, a job or an execution gets its name when the run starts it");
    }
  }
  return { ...runsOf(workflow), ...(keeper ? {} : { keeper: workflow.heartbeat }) };
}

/** Refuses a resource of another region, which Step Functions does not reach. */
export function checkSameRegion(job: Construct, kind: string, resource: IResource): void {
  const [here, there] = [Stack.of(job).region, resource.env.region];
  if (areSame(here, there) !== false) return;
  throw new Error(
    `the ${kind} ${resource.node.path} is in ${there}, and Step Functions calls services of its own region (${here}) only: ` +
      `define the job in a stack of ${there}`,
  );
}

function longer(a: Duration | undefined, b: Duration): Duration {
  // The workflow itself checks values that are known at deployment only.
  return a !== undefined && !a.isUnresolved() && a.toMilliseconds() > b.toMilliseconds() ? a : b;
}
