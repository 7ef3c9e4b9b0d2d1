import { type ILeaseTable, LeasedWorkflow, type LeaseHeartbeat, type LeaseWakeup } from "@leasehold/cdk";
import { environmentNames } from "@leasehold/client/environment";
import { Duration } from "aws-cdk-lib";
import { Choice, Condition, Succeed, TaskInput, Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import { LambdaInvoke } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { Construct } from "constructs";
import { tableVariable, transferKey } from "../../functions/import-orders/schema.ts";
import { Handler } from "../handler.ts";
import type { Pace } from "../pace.ts";
import { SystemTable } from "../system-table.ts";

/** What imports and exports work with. */
export interface ImportsProps {
  readonly leases: ILeaseTable;
  readonly heartbeat: LeaseHeartbeat;
  readonly wakeup: LeaseWakeup;
  readonly pace: Pace;
}

/**
 * Imports and exports of orders, which must not overlap: by a function for what is done in minutes, and by a workflow
 * for what takes hours. They share one lock.
 */
export class Imports extends Construct {
  readonly workflow: LeasedWorkflow;

  constructor(scope: Construct, id: string, props: ImportsProps) {
    super(scope, id);
    const { leases, heartbeat, wakeup, pace } = props;
    const orders = new SystemTable(this, "Orders");
    const transfer = new Handler(this, "Transfer", {
      entry: "import-orders/handler.ts",
      description: "Imports or exports orders, one holder at a time.",
      timeout: Duration.minutes(5),
      environment: { [tableVariable]: orders.tableName, [environmentNames.tableName]: leases.tableName },
    });
    orders.permit(transfer, "Query", "GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem");
    leases.grants.useLeases(transfer, { keys: [transferKey] });

    const step = LambdaInvoke.jsonata(this, "TransferChunk", {
      lambdaFunction: transfer,
      payload: TaskInput.fromObject({
        kind: "{% $states.context.Execution.Input.kind %}",
        lease: "{% $lease %}",
      }),
      outputs: "{% $states.result.Payload %}",
    });
    const pause = Wait.jsonata(this, "Pause", { time: WaitTime.duration(pace.betweenChunks) });
    const isDone = Choice.jsonata(this, "IsAnythingLeft");
    const done = Succeed.jsonata(this, "AllTransferred");
    isDone.when(Condition.jsonata("{% $states.input.result = 'nothingLeft' %}"), done).otherwise(pause);
    pause.next(step);
    this.workflow = new LeasedWorkflow(this, "Workflow", {
      table: leases,
      key: transferKey,
      work: step.next(isDone),
      leaseDuration: pace.workflowLease,
      whenHeld: "wait",
      waitFor: Duration.hours(6),
      heartbeat,
      wakeup,
    });
  }
}
