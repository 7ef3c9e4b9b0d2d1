import { attributeNames } from "@leasehold/client/schema";
import { CfnOutput, Stack, type StackProps } from "aws-cdk-lib";
import { AttributeType, Billing, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import type { Construct } from "constructs";

/** The lease table, for whoever deploys with CDK. */
export class LeaseholdStack extends Stack {
  constructor(scope: Construct, id: string, props: StackProps = {}) {
    super(scope, id, { description: "Leasehold: a lease table on DynamoDB.", ...props });
    // The table outlives its stack: with it would go the fencing tokens, which must never run backwards.
    const table = new TableV2(this, "Leases", {
      partitionKey: { name: attributeNames.partitionKey, type: AttributeType.STRING },
      sortKey: { name: attributeNames.sortKey, type: AttributeType.STRING },
      timeToLiveAttribute: attributeNames.timeToLive,
      billing: Billing.onDemand(),
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      deletionProtection: true,
    });
    new CfnOutput(this, "LeaseTableName", { value: table.tableName, description: "LEASEHOLD_TABLE_NAME" });
  }
}
