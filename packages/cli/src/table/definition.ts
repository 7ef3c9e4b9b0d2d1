// The definition of a lease table: its names and tags, and the request that creates it.

import type { CreateTableCommandInput } from "@aws-sdk/client-dynamodb";
import { attributeNames } from "@leasehold/client/schema";
import { UsageError } from "../exit-codes.ts";
import type { GlobalValues } from "../flags.ts";
import { shown } from "../terminal/text.ts";

const { partitionKey, sortKey } = attributeNames;

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

/** The name of a table that does not exist yet: the operand, or --table. Throws a UsageError. */
export function newTableName({
  operands,
  global,
}: {
  readonly operands: readonly string[];
  readonly global: Pick<GlobalValues, "table">;
}): string {
  const name = operands[0] ?? global.table;
  if (name === undefined) throw new UsageError("no name is given; say leasehold table create NAME");
  if (!/^[\w.-]{3,255}$/.test(name)) {
    throw new UsageError(
      `"${shown(name)}" is no table's name; allowed: 3 to 255 letters, digits, _, - and .`,
    );
  }
  return name;
}

/** Tags of the form k=v. Throws a UsageError. */
export function tagsOf(texts: readonly string[]): { readonly Key: string; readonly Value: string }[] {
  return texts.map((text) => {
    const [, Key, Value] = /^([^=]{1,128})=(.{0,256})$/.exec(text) ?? [];
    if (Key === undefined || Value === undefined) {
      throw new UsageError(`--tag is "${shown(text)}"; allowed: KEY=VALUE`);
    }
    return { Key, Value };
  });
}
