import type { ILeaseTable } from "@leasehold/cdk";
import { environmentNames } from "@leasehold/client/environment";
import { Duration } from "aws-cdk-lib";
import { Construct } from "constructs";
import { claimVariable, taskKeyPrefix } from "../../functions/claim-tasks/schema.ts";
import { Handler } from "../handler.ts";
import type { Pace } from "../pace.ts";

/** Sets of tasks of which each is claimed by one worker, of however many invocations there are: in the lease table. */
export class Tasks extends Construct {
  constructor(scope: Construct, id: string, props: { readonly leases: ILeaseTable; readonly pace: Pace }) {
    super(scope, id);
    const { leases, pace } = props;
    const worker = new Handler(this, "Worker", {
      entry: "claim-tasks/handler.ts",
      description: "Adds tasks to a set, or claims them one by one and does them.",
      timeout: Duration.minutes(5),
      environment: {
        [environmentNames.tableName]: leases.tableName,
        [claimVariable]: String(pace.taskClaim.toMilliseconds()),
      },
    });
    leases.grants.usePrimitives(worker, { keyPrefixes: [taskKeyPrefix] });
  }
}
