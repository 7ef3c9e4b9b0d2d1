import { App } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import { beforeAll, describe, expect, it } from "vitest";
import { LeaseholdStack } from "../../infra/leasehold-stack.ts";

describe("the deployed table", () => {
  let template: Template;

  beforeAll(() => {
    template = Template.fromStack(new LeaseholdStack(new App(), "Test"));
  });

  it("has the client's key, ttl attribute and billing", () => {
    template.hasResourceProperties("AWS::DynamoDB::GlobalTable", {
      BillingMode: "PAY_PER_REQUEST",
      KeySchema: [
        { AttributeName: "pk", KeyType: "HASH" },
        { AttributeName: "sk", KeyType: "RANGE" },
      ],
      AttributeDefinitions: [
        { AttributeName: "pk", AttributeType: "S" },
        { AttributeName: "sk", AttributeType: "S" },
      ],
      TimeToLiveSpecification: { AttributeName: "ttl", Enabled: true },
    });
  });

  it("is protected from deletion, backed up, and outlives its stack", () => {
    template.hasResource("AWS::DynamoDB::GlobalTable", {
      DeletionPolicy: "Retain",
      UpdateReplacePolicy: "Retain",
      Properties: {
        Replicas: [
          Match.objectLike({
            DeletionProtectionEnabled: true,
            PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
          }),
        ],
      },
    });
  });

  it("is in one region: replicas that lag would let two holders in", () => {
    const [table] = Object.values(template.findResources("AWS::DynamoDB::GlobalTable"));
    expect(table?.Properties.Replicas).toHaveLength(1);
  });
});
