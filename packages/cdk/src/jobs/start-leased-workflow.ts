import { Stack } from "aws-cdk-lib";
import { type IRole, PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { ISchedule, IScheduleTarget, ScheduleTargetConfig } from "aws-cdk-lib/aws-scheduler";
import { ScheduleTargetBase, type ScheduleTargetBaseProps } from "aws-cdk-lib/aws-scheduler-targets";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { acceptResource } from "../accepted-findings.ts";
import { leasedMachines, ofLeasedWorkflows } from "../workflow/machine-names.ts";

/**
 * A schedule's target: a leased workflow.
 *
 * Like the library's StepFunctionsStartExecution, but all targets of a stack share one role, which may start each of
 * the stack's leased workflows.
 */
export class StartLeasedWorkflow extends ScheduleTargetBase implements IScheduleTarget {
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
