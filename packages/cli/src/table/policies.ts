// Policies of IAM for a lease table, to copy. A test holds them to what the CDK's grants permit.

import { limits, utf8Bytes } from "@leasehold/client/schema";

/** Whom a policy is for. */
export type PolicyKind = "use" | "primitives" | "operate" | "read" | "create";

const use = ["UpdateItem", "GetItem", "ConditionCheckItem", "PartiQLUpdate"];
const looks = ["GetItem", "Query", "ConditionCheckItem"];
/** Reads every key: DynamoDB knows no condition on the keys that a scan may return. */
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

/** A policy as IAM takes it. */
export interface Policy {
  readonly Version: "2012-10-17";
  readonly Statement: readonly {
    readonly Effect: "Allow";
    readonly Action: readonly string[];
    readonly Resource: string;
    readonly Condition?: object;
  }[];
}

/** The policy for a table; with prefixes, for the keys alone that begin with one of them, and without scans. */
export function policyFor(kind: PolicyKind, tableArn: string, prefixes: readonly string[]): Policy {
  const isLimited = prefixes.length > 0;
  const named = actions[kind].filter((action) => !(isLimited && action === list));
  const condition = {
    "ForAllValues:StringLike": { "dynamodb:LeadingKeys": prefixes.map((prefix) => `${literally(prefix)}*`) },
    // "For all values" is also true of a request that names no key.
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

/** Writes wildcards, and what begins a policy variable, as IAM's variables for these characters. */
function literally(prefix: string): string {
  return prefix.replaceAll(/[*?$]/g, (character) => `\${${character}}`);
}

/** Whether a text can begin a key. */
export function isPrefix(text: string): boolean {
  return text !== "" && utf8Bytes(text) <= limits.keyBytes;
}
