import { SfnStateMachine } from "aws-cdk-lib/aws-events-targets";
import { StepFunctionsStartExecution } from "aws-cdk-lib/aws-scheduler-targets";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { permissionsToKeep } from "../workflow/lease-heartbeat.ts";
import { isLeased } from "../workflow/machine-names.ts";
import type { RedriveGuard } from "../workflow/redrive-guard.ts";
import { failuresOf } from "../workflow/state-machine.ts";
import { type IBoundTarget, type JobOverlap, JobTarget } from "./job-target.ts";
import { StartLeasedWorkflow } from "./start-leased-workflow.ts";

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
export function runsOf({ stateMachine, redriveGuard }: LeasedStateMachine): IBoundTarget {
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
