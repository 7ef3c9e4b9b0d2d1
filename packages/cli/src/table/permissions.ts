// The permitted requests, each tried on one key. Every write has a condition that no item meets, so it changes nothing.

import {
  BatchExecuteStatementCommand,
  DeleteItemCommand,
  GetItemCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import { type AskedTable, refusalIn } from "./asked-table.ts";
import { broken, type Finding, notChecked, ok, warning } from "./findings.ts";

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

/** An IAM action, its use, and a request that needs it and changes nothing. */
type Trial = readonly [action: string, use: string, command: object];

const reads = ["GetItem", "Query", "Scan"];

function trialsOn(TableName: string): readonly Trial[] {
  const table = { TableName, Key: key };
  const Statement = `UPDATE "${TableName}" REMOVE "${token}" WHERE "${partitionKey}" = ? AND "${sortKey}" = ? AND "${token}" = ?`;
  const Parameters = [{ S: doctorKey }, { S: leaseSortKey }, never];
  const under = {
    KeyConditionExpression: `${partitionKey} = :key`,
    ExpressionAttributeValues: { ":key": { S: doctorKey } },
  };
  const update = new UpdateItemCommand({ ...table, UpdateExpression: "REMOVE #token", ...condition });
  const batch = new BatchExecuteStatementCommand({ Statements: [{ Statement, Parameters }] });
  const check = { TransactItems: [{ ConditionCheck: { ...table, ...condition } }] };
  return [
    ["GetItem", "waiting and looking", new GetItemCommand(table)],
    ["UpdateItem", "every lock", update],
    ["Query", "jobs, tasks, leasehold get", new QueryCommand({ TableName, Limit: 1, ...under })],
    ["Scan", "leasehold ls", new ScanCommand({ TableName, Limit: 1 })],
    ["PartiQLUpdate", "renewals that share a request", batch],
    ["ConditionCheckItem", "lease.conditionCheck()", new TransactWriteItemsCommand(check)],
    ["DeleteItem", "tasks", new DeleteItemCommand({ ...table, ...condition })],
  ];
}

/** Tries the requests that locks and commands need. With `isReadOnly`, only reads. */
export async function permissionFindings(
  asked: AskedTable,
  isReadOnly: boolean,
): Promise<readonly Finding[]> {
  const check = "permissions";
  const trials = trialsOn(asked.tableName);
  const outcomes = await Promise.all(
    trials.map(async (trial) =>
      isReadOnly && !reads.includes(trial[0]) ? "left" : await outcome(asked, trial),
    ),
  );
  const having = (wanted: Outcome | "left"): readonly Trial[] =>
    trials.filter((_, index) => outcomes[index] === wanted);
  const named = (some: readonly Trial[]): string => some.map(([action]) => action).join(" ");
  const granted = named(having("permitted"));
  const denied = having("denied");
  const unknown = named(having("unsupported"));
  const left = named(having("left"));
  const isBlind = denied.some(([action]) => action === "GetItem" || action === "UpdateItem");
  const findings: Finding[] = [];
  if (granted !== "") {
    findings.push(ok(check, `${granted} (each tried on the key "${doctorKey}")`));
  }
  if (denied.length > 0) {
    const text = `denied: ${denied.map(([action, use]) => `${action} (${use})`).join(", ")}`;
    const fix = "leasehold table policy use, operate or read prints the policy to give to this role";
    findings.push((isBlind ? broken : warning)(check, text, fix, "iam.md"));
  }
  if (unknown !== "") findings.push(notChecked(check, `this engine does not know ${unknown}`));
  if (left !== "") findings.push(notChecked(check, `--read-only sends none of ${left}`));
  return findings;
}

type Outcome = "permitted" | "denied" | "unsupported";

async function outcome({ send }: AskedTable, [, , command]: Trial): Promise<Outcome> {
  try {
    // The SDK's overloads take each command by its own type.
    const answer = await send(command as BatchExecuteStatementCommand);
    // DynamoDB refuses each statement of a batch separately.
    return answer.Responses?.[0]?.Error?.Code === "AccessDenied" ? "denied" : "permitted";
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
