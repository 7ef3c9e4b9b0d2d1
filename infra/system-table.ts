import { AttributeType, Billing, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import type { IGrantable } from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";

/** The actions of a system on its own table; transactions need the same permissions as single requests. */
export type TableAction = "Query" | "GetItem" | "BatchGetItem" | "PutItem" | "UpdateItem" | "DeleteItem";

/** A table of one of the systems' own items, which is not the lease table: on demand, backed up, kept. */
export class SystemTable extends TableV2 {
  constructor(scope: Construct, id: string) {
    super(scope, id, {
      partitionKey: { name: "pk", type: AttributeType.STRING },
      sortKey: { name: "sk", type: AttributeType.STRING },
      billing: Billing.onDemand(),
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    });
  }

  /** Permits these actions and no others. */
  permit(grantee: IGrantable, ...actions: TableAction[]): void {
    this.grants.actions(grantee, ...actions.map((action) => `dynamodb:${action}`));
  }
}
