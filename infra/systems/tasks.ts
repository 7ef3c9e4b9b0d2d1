import type { ILeaseTable } from "@leasehold/cdk";
import { environmentNames } from "@leasehold/client/environment";
import { Duration } from "aws-cdk-lib";
import { Construct } from "constructs";
import { tableVariable, taskKeyPrefix } from "../../functions/claim-tasks/schema.ts";
import { Handler } from "../handler.ts";
import { SystemTable } from "../system-table.ts";

/** Sets of tasks of which each is claimed by one worker, of however many invocations there are. */
export class Tasks extends Construct {
  constructor(scope: Construct, id: string, props: { readonly leases: ILeaseTable }) {
    super(scope, id);
    const { leases } = props;
    const board = new SystemTable(this, "Board");
    const worker = new Handler(this, "Worker", {
      entry: "claim-tasks/handler.ts",
      description: "Claims the tasks of a set one by one and does them.",
      timeout: Duration.minutes(5),
      environment: { [tableVariable]: board.tableName, [environmentNames.tableName]: leases.tableName },
    });
    board.permit(worker, "Query", "GetItem", "PutItem", "UpdateItem");
    leases.grants.useLeases(worker, { keyPrefixes: [taskKeyPrefix] });
  }
}
