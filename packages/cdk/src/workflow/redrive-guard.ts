import { Stack } from "aws-cdk-lib";
import { EventField, Rule, RuleTargetInput } from "aws-cdk-lib/aws-events";
import { SfnStateMachine } from "aws-cdk-lib/aws-events-targets";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct, type IConstruct } from "constructs";
import { acceptResource } from "../accepted-findings.ts";
import { callOnce, catching, type Definition, jsonata, noSuchExecution, retry, succeed } from "./asl.ts";
import {
  executionsInPolicy,
  isLeased,
  leasedArnPrefix,
  leasedExecutions,
  ofLeasedWorkflows,
} from "./machine-names.ts";
import { redrivenCause, redrivenError } from "./redrive-refusal.ts";
import { stateMachineOf } from "./state-machine.ts";

/**
 * Stops redriven leased workflows: one state machine and one rule for all of a stack. It may stop the executions of the
 * stack's leased workflows, and no others. It recognises them by the prefix of their names; a workflow with a
 * `stateMachineName` has one more rule in its own stack.
 *
 * A redriven workflow has lost its lease, and continues at the task that was under way. Tasks in JSONata refuse by
 * themselves. This construct stops tasks in JSONPath and the iterations of distributed maps, as soon as EventBridge's
 * event of the redrive arrives. Costs 2 state transitions a redrive, and nothing else.
 */
export class RedriveGuard extends Construct {
  readonly stateMachine: StateMachine;

  /** The guard of a leased workflow's stack, created at the first call. */
  static of(workflow: StateMachine): RedriveGuard {
    const stack = Stack.of(workflow);
    const id = "LeaseholdRedriveGuard";
    const existing = stack.node.tryFindChild(id);
    const guard = existing instanceof RedriveGuard ? existing : new RedriveGuard(stack, id);
    if (!isLeased(workflow)) {
      guard.#stop(executionsInPolicy(workflow, stack), workflow, workflow.stateMachineArn);
    }
    return guard;
  }

  private constructor(scope: Construct, id: string) {
    super(scope, id);
    this.stateMachine = stateMachineOf(this, redriveGuardDefinition());
    const stack = Stack.of(this);
    this.#stop(leasedExecutions(stack), this, { prefix: leasedArnPrefix(stack) });
  }

  #stop(executions: string, scope: IConstruct, stateMachineArn: unknown): void {
    this.stateMachine.addToRolePolicy(
      new PolicyStatement({ actions: ["states:StopExecution"], resources: [executions] }),
    );
    acceptResource(this.stateMachine, executions, ofLeasedWorkflows);
    new Rule(scope, "Redriven", {
      description: "Has an execution stopped that was redriven, and so is at work without its lease.",
      eventPattern: {
        source: ["aws.states"],
        detailType: ["Step Functions Execution Status Change"],
        detail: {
          stateMachineArn: [stateMachineArn],
          status: ["RUNNING"],
          redriveCount: [{ numeric: [">", 0] }],
        },
      },
      targets: [
        new SfnStateMachine(this.stateMachine, {
          input: RuleTargetInput.fromObject({ execution: EventField.fromPath("$.detail.executionArn") }),
        }),
      ],
    });
  }
}

/**
 * This is the last line of defence: it tries for about an hour. An execution that has ended by then answers like a
 * stopped one.
 */
const patiently = retry([noSuchExecution], { IntervalSeconds: 1, MaxAttempts: 65, MaxDelaySeconds: 60 });

/** Returns the definition. Its input is `{ execution }`, the ARN of the redriven execution. */
export function redriveGuardDefinition(): Definition {
  return {
    Comment: "Stops a leased workflow that was redriven.",
    StartAt: "Stop",
    States: {
      Stop: callOnce("sfn:stopExecution", {
        Arguments: {
          ExecutionArn: jsonata("$states.input.execution"),
          Error: redrivenError,
          Cause: redrivenCause,
        },
        Next: "Done",
        Retry: patiently,
        Catch: [catching(noSuchExecution, "Done")],
      }),
      Done: succeed(),
    },
  };
}
