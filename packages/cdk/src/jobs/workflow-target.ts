import { StepFunctionsStartExecution } from "aws-cdk-lib/aws-scheduler-targets";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { type BoundTarget, JobTarget } from "./job-target.ts";

const onItsOwn = "for a workflow, which has its own: set it on the LeasedWorkflow instead";

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
  };
  readonly waitingOverlaps = [] as const;
  readonly keptOverlaps = [] as const;
  readonly #stateMachine: IStateMachine;

  constructor(stateMachine: IStateMachine) {
    super();
    this.#stateMachine = stateMachine;
  }

  bind(): BoundTarget {
    return executionsOf(this.#stateMachine);
  }
}

/** A job whose runs are the executions of a state machine. */
export function executionsOf(stateMachine: IStateMachine): BoundTarget {
  return {
    runs: {
      succeeded: stateMachine.metricSucceeded(),
      failed: {
        failed: stateMachine.metricFailed(),
        timedOut: stateMachine.metricTimedOut(),
        aborted: stateMachine.metricAborted(),
      },
    },
    scheduleTarget: (props) => new StepFunctionsStartExecution(stateMachine, props),
  };
}
