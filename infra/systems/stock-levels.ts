import type { ILeaseTable } from "@leasehold/cdk";
import { Duration } from "aws-cdk-lib";
import { Construct } from "constructs";
import { cacheKeyPrefix, tableVariable } from "../../functions/resource-cache/schema.ts";
import { CalledFunctionAlarms } from "../alarms.ts";
import { Handler } from "../handler.ts";
import { SystemTable } from "../system-table.ts";

/** Stock levels that are costly to compute: cached in the lease table, and computed by one caller at a time. */
export class StockLevels extends Construct {
  constructor(scope: Construct, id: string, props: { readonly leases: ILeaseTable }) {
    super(scope, id);
    const { leases } = props;
    const movements = new SystemTable(this, "Movements");
    const levels = new Handler(this, "Levels", {
      entry: "resource-cache/handler.ts",
      description: "Gives a warehouse's stock levels, from the cache or computed by one caller.",
      timeout: Duration.seconds(30),
      leases,
      environment: { [tableVariable]: movements.tableName },
    });
    movements.permit(levels, "Query");
    leases.grants.usePrimitives(levels, { keyPrefixes: [cacheKeyPrefix] });
    new CalledFunctionAlarms(this, "LevelsAlarms", { fn: levels });
  }
}
