// IAM policies for a lease table, to copy. A test compares them with the CDK's grants.

import { limits, utf8Bytes } from "@leasehold/client/schema";

/** The purpose of a policy. */
export type PolicyKind = "use" | "primitives" | "operate" | "read" | "create";

const use = ["UpdateItem", "GetItem", "ConditionCheckItem", "PartiQLUpdate"];
const looks = ["GetItem", "Query", "ConditionCheckItem"];
/** Reads every key: DynamoDB has no condition on the keys that a scan returns. */
const list = "Scan";

const actions: Readonly<Record<PolicyKind, readonly string[]>> = {
  use,
  primitives: [...use, "Query", "DeleteItem"],
  read: [...looks, list],
  operate: [...looks, list, "UpdateItem", "DeleteItem"],
  create: [
    "CreateTable",
    "TagResource",
    "DescribeTable",
    "DescribeTimeToLive",
    "UpdateTimeToLive",
    "DescribeContinuousBackups",
    "UpdateContinuousBackups",
    "UpdateTable",
    "ListTagsOfResource",
  ],
};

/** A policy in IAM's form. */
export interface Policy {
  readonly Version: "2012-10-17";
  readonly Statement: readonly {
    readonly Effect: "Allow";
    readonly Action: readonly string[];
    readonly Resource: string;
    readonly Condition?: object;
  }[];
}

/** The policy for a table; with prefixes, only for keys with one of them, and without scans. */
export function policyFor(kind: PolicyKind, tableArn: string, prefixes: readonly string[]): Policy {
  const isLimited = prefixes.length > 0;
  const named = actions[kind].filter((action) => !(isLimited && action === list));
  const condition = {
    "ForAllValues:StringLike": { "dynamodb:LeadingKeys": prefixes.map((prefix) => `${literally(prefix)}*`) },
    // "For all values" is also true for a request without a key.
    Null: { "dynamodb:LeadingKeys": "false" },
  };
  return {
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Action: named.map((action) => `dynamodb:${action}`),
        Resource: tableArn,
        ...(isLimited ? { Condition: condition } : {}),
      },
    ],
  };
}

/** Writes wildcards, and characters that could begin a policy variable, as IAM's variables for these characters. */
function literally(prefix: string): string {
  return prefix.replaceAll(/[*?$]/g, (character) => `\${${character}}`);
}

/** Whether a text can begin a key. */
export function isPrefix(text: string): boolean {
  return text !== "" && utf8Bytes(text) <= limits.keyBytes;
}
