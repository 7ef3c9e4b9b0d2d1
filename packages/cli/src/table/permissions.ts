// The permitted requests, each tried on one key. Every write has a condition that no item meets, so it changes nothing.

import {
  BatchExecuteStatementCommand,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import { docsAddress } from "../terminal/text.ts";
import { type AskedTable, refusalIn } from "./asked-table.ts";
import type { Finding } from "./findings.ts";

/** The key of doctor's trials. */
export const doctorKey = "leasehold/doctor";

const { partitionKey, sortKey, token } = attributeNames;
const key = { [partitionKey]: { S: doctorKey }, [sortKey]: { S: leaseSortKey } };
const never = { S: "no token is this one" };
const condition = {
  ConditionExpression: "#token = :never",
  ExpressionAttributeNames: { "#token": token },
  ExpressionAttributeValues: { ":never": never },
};

type Options = { readonly abortSignal: AbortSignal };

/** An IAM action, its use, and a request that needs it and changes nothing. */
interface Trial {
  readonly action: string;
  readonly for: string;
  readonly isWrite: boolean;
  send(dynamodb: DynamoDBClient, TableName: string, options: Options): Promise<unknown>;
}

const trials: readonly Trial[] = [
  {
    action: "GetItem",
    for: "waiting and looking",
    isWrite: false,
    send: (dynamodb, TableName, options) =>
      dynamodb.send(new GetItemCommand({ TableName, Key: key }), options),
  },
  {
    action: "UpdateItem",
    for: "every lock",
    isWrite: true,
    send: (dynamodb, TableName, options) =>
      dynamodb.send(
        new UpdateItemCommand({ TableName, Key: key, UpdateExpression: "REMOVE #token", ...condition }),
        options,
      ),
  },
  {
    action: "Query",
    for: "jobs, tasks, leasehold get",
    isWrite: false,
    send: (dynamodb, TableName, options) =>
      dynamodb.send(
        new QueryCommand({
          TableName,
          Limit: 1,
          KeyConditionExpression: `${partitionKey} = :key`,
          ExpressionAttributeValues: { ":key": { S: doctorKey } },
        }),
        options,
      ),
  },
  {
    action: "Scan",
    for: "leasehold ls",
    isWrite: false,
    send: (dynamodb, TableName, options) => dynamodb.send(new ScanCommand({ TableName, Limit: 1 }), options),
  },
  {
    action: "PartiQLUpdate",
    for: "renewals that share a request",
    isWrite: true,
    send: async (dynamodb, TableName, options) => {
      const Statement = `UPDATE "${TableName}" REMOVE "${token}" WHERE "${partitionKey}" = ? AND "${sortKey}" = ? AND "${token}" = ?`;
      const Parameters = [{ S: doctorKey }, { S: leaseSortKey }, never];
      const { Responses = [] } = await dynamodb.send(
        new BatchExecuteStatementCommand({ Statements: [{ Statement, Parameters }] }),
        options,
      );
      const { Code, Message } = Responses[0]?.Error ?? {};
      // DynamoDB refuses each statement of a batch separately.
      if (Code === "AccessDenied") throw Object.assign(new Error(Message), { name: "AccessDeniedException" });
    },
  },
  {
    action: "ConditionCheckItem",
    for: "lease.conditionCheck()",
    isWrite: true,
    send: (dynamodb, TableName, options) =>
      dynamodb.send(
        new TransactWriteItemsCommand({
          TransactItems: [{ ConditionCheck: { TableName, Key: key, ...condition } }],
        }),
        options,
      ),
  },
  {
    action: "DeleteItem",
    for: "tasks",
    isWrite: true,
    send: (dynamodb, TableName, options) =>
      dynamodb.send(new DeleteItemCommand({ TableName, Key: key, ...condition }), options),
  },
];

/** Tries the requests that locks and commands need. With `isReadOnly`, only reads. */
export async function permissionFinding(asked: AskedTable, isReadOnly: boolean): Promise<readonly Finding[]> {
  const check = "permissions";
  const tried = trials.filter(({ isWrite }) => !(isWrite && isReadOnly));
  const results = await Promise.all(tried.map((trial) => outcome(asked, trial)));
  const having = (wanted: Outcome): readonly Trial[] => tried.filter((_, index) => results[index] === wanted);
  const granted = having("permitted").map(({ action }) => action);
  const denied = having("denied");
  const unknown = having("unsupported").map(({ action }) => action);
  const left = trials.filter((trial) => !tried.includes(trial)).map(({ action }) => action);
  const isBlind = denied.some(({ action }) => action === "GetItem" || action === "UpdateItem");
  return [
    ...(granted.length > 0
      ? [
          {
            check,
            result: "ok" as const,
            text: `${granted.join(" ")} (each tried on the key "${doctorKey}")`,
          },
        ]
      : []),
    ...(denied.length > 0
      ? [
          {
            check,
            result: isBlind ? ("error" as const) : ("warning" as const),
            text: `denied: ${denied.map(({ action, for: use }) => `${action} (${use})`).join(", ")}`,
            fix: "leasehold iam --use, --operate or --read prints the policy to give to this role",
            docs: docsAddress("iam.md"),
          },
        ]
      : []),
    ...(unknown.length > 0
      ? [{ check, result: "not checked" as const, text: `this engine does not know ${unknown.join(" ")}` }]
      : []),
    ...(left.length > 0
      ? [{ check, result: "not checked" as const, text: `--read-only sends none of ${left.join(" ")}` }]
      : []),
  ];
}

type Outcome = "permitted" | "denied" | "unsupported";

async function outcome(asked: AskedTable, { send }: Trial): Promise<Outcome> {
  try {
    await asked.ask((dynamodb, options) => send(dynamodb, asked.tableName, options));
    return "permitted";
  } catch (error) {
    const refusal = refusalIn(error);
    if (refusal !== undefined) return refusal;
    const { name } = Object((error as Error).cause ?? error) as { readonly name?: string };
    // DynamoDB evaluated the condition, so the request was permitted.
    if (name === "ConditionalCheckFailedException" || name === "TransactionCanceledException")
      return "permitted";
    throw error;
  }
}
