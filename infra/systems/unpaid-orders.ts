import { type ILeaseTable, SingletonJob, SingletonJobTarget } from "@leasehold/cdk";
import { Duration } from "aws-cdk-lib";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { Construct } from "constructs";
import { closeUnpaidOrdersKey } from "../../functions/close-unpaid-orders/job.ts";
import { tableVariable } from "../../functions/close-unpaid-orders/schema.ts";
import { Handler } from "../handler.ts";
import type { Pace } from "../pace.ts";
import { SystemTable } from "../system-table.ts";

/** Closes unpaid orders at every tick, one run at a time, and gives back the stock that they held. */
export class UnpaidOrders extends Construct {
  readonly job: SingletonJob;

  constructor(scope: Construct, id: string, props: { readonly leases: ILeaseTable; readonly pace: Pace }) {
    super(scope, id);
    const { leases, pace } = props;
    const shop = new SystemTable(this, "Shop");
    const close = new Handler(this, "Close", {
      entry: "close-unpaid-orders/handler.ts",
      description: "Closes the orders that were not paid in time.",
      timeout: Duration.seconds(40),
      environment: { [tableVariable]: shop.tableName },
    });
    shop.permit(close, "Query", "UpdateItem", "DeleteItem");
    this.job = new SingletonJob(this, "Job", {
      table: leases,
      jobName: "close-unpaid-orders",
      key: closeUnpaidOrdersKey,
      schedule: ScheduleExpression.rate(pace.tick),
      target: SingletonJobTarget.lambda(close),
      lockAtMostFor: pace.tickLease,
      heartbeat: Duration.millis(Math.floor(pace.tickLease.toMilliseconds() / 3)),
    });
  }
}
