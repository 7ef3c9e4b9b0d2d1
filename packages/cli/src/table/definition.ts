// The definition of a lease table: as a request to DynamoDB, and as text for CloudFormation, Terraform and the CDK.

import type { CreateTableCommandInput } from "@aws-sdk/client-dynamodb";
import { attributeNames } from "@leasehold/client/schema";

const { partitionKey, sortKey, timeToLive } = attributeNames;

/** The tag by which commands find the table when none is named. */
export const tableTag = { Key: "leasehold", Value: "true" } as const;

/** The settings of a table that a user may choose. */
export interface TableSettings {
  readonly tableName: string;
  readonly stream: boolean;
  readonly pointInTimeRecovery: boolean;
  readonly deletionProtection: boolean;
}

/** The request that creates a table; ttl and point-in-time recovery are separate requests. */
export function createTableInput(
  settings: Omit<TableSettings, "pointInTimeRecovery"> & {
    readonly kmsKey: string | undefined;
    readonly tags: readonly { readonly Key: string; readonly Value: string }[];
  },
): CreateTableCommandInput {
  const { tableName, stream, deletionProtection, kmsKey, tags } = settings;
  return {
    TableName: tableName,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [
      { AttributeName: partitionKey, AttributeType: "S" },
      { AttributeName: sortKey, AttributeType: "S" },
    ],
    KeySchema: [
      { AttributeName: partitionKey, KeyType: "HASH" },
      { AttributeName: sortKey, KeyType: "RANGE" },
    ],
    ...(deletionProtection ? { DeletionProtectionEnabled: true } : {}),
    ...(stream ? { StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" } } : {}),
    ...(kmsKey === undefined
      ? {}
      : { SSESpecification: { Enabled: true, SSEType: "KMS", KMSMasterKeyId: kmsKey } }),
    Tags: [...tags],
  };
}

/** Kinds of definitions that can be printed, by the words that name them. */
export const definitionKinds = ["cfn", "terraform", "cdk"] as const;
export type DefinitionKind = (typeof definitionKinds)[number];

/** The definition of a table as text. */
export function definitionText(kind: DefinitionKind, settings: TableSettings): string {
  return { cfn, terraform, cdk }[kind](settings);
}

function cfn({ tableName, stream, pointInTimeRecovery, deletionProtection }: TableSettings): string {
  return `Resources:
  LeaseTable:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: Retain
    UpdateReplacePolicy: Retain
    Properties:
      TableName: "${tableName}"
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions:
        - AttributeName: ${partitionKey}
          AttributeType: S
        - AttributeName: ${sortKey}
          AttributeType: S
      KeySchema:
        - AttributeName: ${partitionKey}
          KeyType: HASH
        - AttributeName: ${sortKey}
          KeyType: RANGE
      TimeToLiveSpecification:
        AttributeName: ${timeToLive}
        Enabled: true
      PointInTimeRecoverySpecification:
        PointInTimeRecoveryEnabled: ${pointInTimeRecovery}
      DeletionProtectionEnabled: ${deletionProtection}
${stream ? "      StreamSpecification:\n        StreamViewType: NEW_AND_OLD_IMAGES\n" : ""}      Tags:
        - Key: ${tableTag.Key}
          Value: "${tableTag.Value}"
Outputs:
  LeaseTableName:
    Value: !Ref LeaseTable
`;
}

function terraform({ tableName, stream, pointInTimeRecovery, deletionProtection }: TableSettings): string {
  const streamLines = `
  stream_enabled   = true
  stream_view_type = "NEW_AND_OLD_IMAGES"
`;
  return `resource "aws_dynamodb_table" "leases" {
  name                        = "${tableName}"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "${partitionKey}"
  range_key                   = "${sortKey}"
  deletion_protection_enabled = ${deletionProtection}
${stream ? streamLines : ""}
  attribute {
    name = "${partitionKey}"
    type = "S"
  }

  attribute {
    name = "${sortKey}"
    type = "S"
  }

  ttl {
    attribute_name = "${timeToLive}"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = ${pointInTimeRecovery}
  }

  tags = {
    ${tableTag.Key} = "${tableTag.Value}"
  }

  lifecycle {
    prevent_destroy = true
  }
}
`;
}

function cdk({ tableName, stream, pointInTimeRecovery, deletionProtection }: TableSettings): string {
  const props = [
    `tableName: ${JSON.stringify(tableName)}`,
    ...(stream ? ["stream: true"] : []),
    ...(pointInTimeRecovery ? [] : ["pointInTimeRecovery: false"]),
    ...(deletionProtection ? [] : ["deletionProtection: false"]),
  ];
  return `import { LeaseTable } from "@leasehold/cdk";

const table = new LeaseTable(this, "LeaseTable", { ${props.join(", ")} });
`;
}
