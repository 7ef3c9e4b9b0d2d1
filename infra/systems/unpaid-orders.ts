import { type ILeaseTable, SingletonJob, SingletonJobTarget } from "@leasehold/cdk";
import { environmentNames } from "@leasehold/client/environment";
import { Duration } from "aws-cdk-lib";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { Construct } from "constructs";
import { closeUnpaidOrdersKey } from "../../functions/close-unpaid-orders/job.ts";
import {
  closeAfterMs,
  closeAfterVariable,
  parkedMessage,
  scheduleVariable,
  tableVariable,
} from "../../functions/close-unpaid-orders/schema.ts";
import { SystemAlarm } from "../alarms.ts";
import { Handler } from "../handler.ts";
import type { Pace } from "../pace.ts";
import { SystemTable } from "../system-table.ts";

/** Properties of {@link UnpaidOrders}. */
export interface UnpaidOrdersProps {
  readonly leases: ILeaseTable;
  readonly pace: Pace;
  /** How long after its payment was due an order is closed: whole hours, up to 366 days. @default Duration.hours(0) */
  readonly closeAfter?: Duration | undefined;
}

/** Closes unpaid orders at every tick, one run at a time, and gives back the stock that they held. */
export class UnpaidOrders extends Construct {
  readonly job: SingletonJob;

  constructor(scope: Construct, id: string, props: UnpaidOrdersProps) {
    super(scope, id);
    const { leases, pace, closeAfter = Duration.hours(0) } = props;
    const closeAfterHours = String(closeAfter.toHours());
    // Refused here, and not by each invocation.
    closeAfterMs(closeAfterHours);
    // At whole minutes: a rate counts from its deployment, and afterwards nothing tells which of its slots were
    // missed.
    const schedule = ScheduleExpression.cron({ minute: `0/${pace.tick.toMinutes()}` });
    const shop = new SystemTable(this, "Shop");
    const close = new Handler(this, "Close", {
      entry: "close-unpaid-orders/handler.ts",
      description: "Closes the orders that were not paid in time.",
      timeout: Duration.seconds(40),
      environment: { [tableVariable]: shop.tableName, [closeAfterVariable]: closeAfterHours },
    });
    shop.permit(close, "Query", "PutItem", "UpdateItem", "DeleteItem");
    this.job = new SingletonJob(this, "Job", {
      table: leases,
      jobName: "close-unpaid-orders",
      key: closeUnpaidOrdersKey,
      schedule,
      target: SingletonJobTarget.lambda(close),
      lockAtMostFor: pace.tickLease,
      heartbeat: Duration.millis(Math.floor(pace.tickLease.toMilliseconds() / 3)),
      maxInterval: pace.tick.plus(pace.tick),
      maxEventAge: pace.tick,
    });

    const report = new Handler(this, "Report", {
      entry: "close-unpaid-orders/report.ts",
      description:
        "Tells how the runs that close unpaid orders went, and makes up for those that are missing.",
      timeout: Duration.minutes(5),
      leases,
      environment: {
        [environmentNames.lockAtMostForMs]: String(pace.tickLease.toMilliseconds()),
        [tableVariable]: shop.tableName,
        [scheduleVariable]: schedule.expressionString,
        [closeAfterVariable]: closeAfterHours,
      },
    });
    shop.permit(report, "Query", "GetItem", "PutItem", "UpdateItem", "DeleteItem");
    leases.grants.usePrimitives(report, { keys: [closeUnpaidOrdersKey] });

    new SystemAlarm(this, "Parked", {
      what: "Unpaid orders could not be closed, and are parked.",
      entry: "ordersParked",
      messages: [parkedMessage],
      functions: { Close: close, Report: report },
    });
  }
}
