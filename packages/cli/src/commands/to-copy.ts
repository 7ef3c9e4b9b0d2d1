// Texts about a table to copy: its definition in other languages, and policies of IAM. Nothing is sent.

import { attributeNames, limits, utf8Bytes } from "@leasehold/client/schema";
import { type Call, command } from "../command.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { several, text, yes } from "../flags.ts";
import { newTableName, tableTag } from "../table/place.ts";
import { shown } from "../terminal/text.ts";

const { partitionKey, sortKey, timeToLive } = attributeNames;

export const tableCfn = definition("cfn", "CloudFormation", cfn);
export const tableTerraform = definition("terraform", "Terraform", terraform);
export const tableCdk = definition("cdk", "the AWS CDK", cdk);

/** The settings of a table that a user may choose. */
interface TableSettings {
  readonly tableName: string;
  readonly stream: boolean;
  readonly pointInTimeRecovery: boolean;
  readonly deletionProtection: boolean;
}

/** The command that prints a definition of a table in one language. */
function definition(kind: string, language: string, write: (settings: TableSettings) => string) {
  return command({
    usage: `table ${kind} [NAME] [flags]`,
    details: `Prints the definition of a lease table for ${language}, to copy. Sends nothing. NAME is leases by default.`,
    writes: false,
    flags: {
      stream: yes("a stream of changes: waiting workflows and durable functions need it"),
      "no-pitr": yes("without point-in-time recovery"),
      "no-deletion-protection": yes("without deletion protection"),
    },
    async run({ flags, global, terminal }, name?: string) {
      const tableName = newTableName(name ?? global.table ?? "leases");
      const text = write({
        tableName,
        stream: flags.stream,
        pointInTimeRecovery: !flags["no-pitr"],
        deletionProtection: !flags["no-deletion-protection"],
      });
      for (const line of text.trimEnd().split("\n")) terminal.print(line);
      return exitCodes.done;
    },
  });
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

const use = ["UpdateItem", "GetItem", "ConditionCheckItem", "PartiQLUpdate"];
const looks = ["GetItem", "Query", "ConditionCheckItem"];
/** Reads every key: DynamoDB has no condition on the keys that a scan returns. */
const list = "Scan";
const settings =
  "CreateTable TagResource DescribeTable DescribeTimeToLive UpdateTimeToLive DescribeContinuousBackups UpdateContinuousBackups UpdateTable ListTagsOfResource";

/** The actions, by whom the policy is for. */
const actions = {
  use,
  primitives: [...use, "Query", "DeleteItem"],
  operate: [...looks, list, "UpdateItem", "DeleteItem"],
  read: [...looks, list],
  create: settings.split(" "),
} as const satisfies Readonly<Record<string, readonly string[]>>;
const kinds = Object.keys(actions) as (keyof typeof actions)[];

const flags = {
  prefix: several(text("PREFIX", "only keys that begin with this; may be given several times")),
  account: text("ID", "the account of the table (default: a placeholder, ACCOUNT)"),
};

export const tablePolicy = command({
  usage: `table policy ${kinds.join("|")} [flags]`,
  details: `
Prints a policy for IAM, to copy. Sends nothing. What is not known of the table stands as a placeholder: REGION, ACCOUNT,
TABLE. With --prefix the policy has no Scan, so that leasehold ls is refused: DynamoDB cannot limit a scan to some keys.

use         for programs that use locks
primitives  for programs with job runs, tasks or single flight too
operate     for people on call: every look; break, stop, skip, requeue
read        for people and dashboards: every look, no write
create      for leasehold table create, set and doctor

  leasehold table policy use --prefix orders/ --table leases --region eu-central-1 --account 123456789012
  leasehold table policy read -t arn:aws:dynamodb:eu-central-1:123456789012:table/leases`,
  writes: false,
  operands: [1, 1],
  flags,
  async run(call, given) {
    const { flags, terminal } = call;
    const kind = kinds.find((one) => one === given);
    if (kind === undefined) {
      throw new UsageError(`"${shown(given)}" says not whom the policy is for; allowed: ${kinds.join(", ")}`);
    }
    const wrong = flags.prefix.find((prefix) => utf8Bytes(prefix) > limits.keyBytes);
    if (wrong !== undefined)
      throw new UsageError(`--prefix is "${shown(wrong.slice(0, 40))}…", longer than a key may be`);
    if (kind === "create" && flags.prefix.length > 0) {
      throw new UsageError("--prefix does not go together with create: a table's settings have no keys");
    }
    terminal.print(JSON.stringify(policyFor(kind, arnOf(call), flags.prefix), undefined, 2));
    return exitCodes.done;
  },
});

/** The table's ARN, as far as flags and variables determine it. */
function arnOf({ global, flags: { account = "ACCOUNT" }, env }: Call<typeof flags>): string {
  const { table = "TABLE" } = global;
  if (table.startsWith("arn:")) return table;
  const region = global.region ?? (env.AWS_REGION || env.AWS_DEFAULT_REGION || "REGION");
  const partition = region.startsWith("cn-") ? "aws-cn" : region.startsWith("us-gov-") ? "aws-us-gov" : "aws";
  return `arn:${partition}:dynamodb:${region}:${account}:table/${table}`;
}

/** The policy for a table; with prefixes, only for keys with one of them, and without scans. */
function policyFor(kind: keyof typeof actions, tableArn: string, prefixes: readonly string[]) {
  const isLimited = prefixes.length > 0;
  const named = actions[kind].filter((action) => !(isLimited && action === list));
  const condition = {
    "ForAllValues:StringLike": { "dynamodb:LeadingKeys": prefixes.map((prefix) => `${literally(prefix)}*`) },
    // "For all values" is also true for a request without a key.
    Null: { "dynamodb:LeadingKeys": "false" },
  };
  const statement = {
    Effect: "Allow",
    Action: named.map((action) => `dynamodb:${action}`),
    Resource: tableArn,
    ...(isLimited ? { Condition: condition } : {}),
  };
  return { Version: "2012-10-17", Statement: [statement] };
}

/** Writes wildcards, and characters that could begin a policy variable, as IAM's variables for these characters. */
function literally(prefix: string): string {
  return prefix.replaceAll(/[*?$]/g, (character) => `\${${character}}`);
}
