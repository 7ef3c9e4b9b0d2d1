import { type ILeaseTable, InvokeFunction } from "@leasehold/cdk";
import { environmentNames } from "@leasehold/client/environment";
import { Duration } from "aws-cdk-lib";
import { Schedule, ScheduleExpression, ScheduleTargetInput } from "aws-cdk-lib/aws-scheduler";
import { Construct } from "constructs";
import { departmentKeyPrefix, tableVariable } from "../../functions/admit-tickets/schema.ts";
import { Handler } from "../handler.ts";
import type { Pace } from "../pace.ts";
import { SystemTable } from "../system-table.ts";

/** Admission of service tickets: one in service for each department, a bounded queue behind it, and a cleaner. */
export class Tickets extends Construct {
  constructor(scope: Construct, id: string, props: { readonly leases: ILeaseTable; readonly pace: Pace }) {
    super(scope, id);
    const { leases, pace } = props;
    const desks = new SystemTable(this, "Desks");
    const admission = new Handler(this, "Admission", {
      entry: "admit-tickets/handler.ts",
      description: "Admits service tickets, first come, first served.",
      timeout: Duration.seconds(30),
      environment: { [tableVariable]: desks.tableName, [environmentNames.tableName]: leases.tableName },
    });
    desks.permit(admission, "Query", "GetItem", "UpdateItem");
    leases.grants.useLeases(admission, { keyPrefixes: [departmentKeyPrefix] });
    // Cleaning twice does no harm: no lock is needed.
    new Schedule(this, "Cleaning", {
      description: "Takes tickets off that have not been heard of.",
      schedule: ScheduleExpression.rate(pace.cleaning),
      target: new InvokeFunction(admission, {
        input: ScheduleTargetInput.fromObject({ action: "clean" }),
        retryAttempts: 0,
      }),
    });
  }
}
