import { type IRole, PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IScheduleTarget } from "aws-cdk-lib/aws-scheduler";
import { ScheduleTargetBase, type ScheduleTargetBaseProps } from "aws-cdk-lib/aws-scheduler-targets";
import { aFunction, checkKind } from "../prop-kinds.ts";

/**
 * A schedule's target: a function, without its versions.
 *
 * Like the library's LambdaInvoke, but that also permits every version and alias.
 *
 * ```ts
 * new Schedule(this, "Cleaning", { schedule: ScheduleExpression.rate(Duration.minutes(5)), target: new InvokeFunction(worker) });
 * ```
 */
export class InvokeFunction extends ScheduleTargetBase implements IScheduleTarget {
  constructor(fn: IFunction, props: ScheduleTargetBaseProps = {}) {
    super(props, checkKind("fn", fn, aFunction).functionArn);
  }

  protected addTargetActionToRole(role: IRole): void {
    role.addToPrincipalPolicy(
      new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [this.targetArn] }),
    );
  }
}
