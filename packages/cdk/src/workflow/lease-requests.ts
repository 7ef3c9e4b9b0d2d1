/**
 * The client's own expressions as arguments of Step Functions' DynamoDB integration.
 *
 * Nothing is retyped: an expression comes from the client with sample values, whose placeholders are then given
 * JSONata. A placeholder that is forgotten, or that the expression does not know, fails at synth.
 */
import {
  acquire,
  cancel,
  close,
  heldBySomebody,
  park,
  recordOnly,
  release,
  renew,
  renewUnlessRevoked,
  requestRevocation,
  takeOver,
} from "@leasehold/client/internal";
import { attributeNames, closedToken, leaseSortKey, waiterSortKeyPrefix } from "@leasehold/client/schema";
import { type Json, jsonata, literal } from "./asl.ts";

/** What the requests of one workflow or keeper have in common. */
export interface LeaseTerms {
  /** The lease table's name; may be a token. */
  readonly tableName: string;
  readonly retentionMs: number;
  /** What the variables of the machine begin with, where it runs the states of others too. @default "" */
  readonly variablePrefix?: string;
}

/** A variable of the machine, as JSONata reads it. */
function variable({ variablePrefix = "" }: Pick<LeaseTerms, "variablePrefix">, name: string): string {
  return `$${variablePrefix}${name}`;
}

/** JSONata by placeholder. */
type Values = Readonly<Record<`:${string}`, string>>;

/** The shape of one of the client's expressions, with sample values. */
interface Sample {
  readonly update: string;
  readonly condition: string;
  readonly names: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, string | number>>;
}

const sample = {
  key: "key",
  token: "token",
  fencingToken: 1,
  version: 1,
  owner: "owner",
  acquiredAt: 1,
  expiresAt: 1,
  leaseDurationMs: 1,
  retentionMs: 1,
  now: 1,
  data: undefined,
  slot: undefined,
  closedUntil: 2,
  closedForMs: 1,
  reason: "reason",
  taskToken: "taskToken",
};

/** JSONata for the ttl of an item whose lease ends after some more milliseconds; as the client's `timeToLive`. */
function timeToLiveAfter(durationMs: string, { retentionMs }: LeaseTerms): string {
  return `$ceil(($millis() + ${durationMs} + ${retentionMs}) / 1000)`;
}

/** Values of a grant; the variables key, token, version and owner are the workflow's. */
function grantValues(terms: LeaseTerms, leaseDurationMs: number): Values {
  return {
    ":token": variable(terms, "token"),
    ":version": `${variable(terms, "version")} + 1`,
    ":owner": variable(terms, "owner"),
    ":acquiredAt": "$millis()",
    ":expiresAt": `$millis() + ${leaseDurationMs}`,
    ":leaseDurationMs": String(leaseDurationMs),
    ":ttl": timeToLiveAfter(String(leaseDurationMs), terms),
    ":one": "1",
  };
}

/** Takes a lock that nobody holds; with `once`, unless the variable `slot` is done. */
export function acquireArguments(terms: LeaseTerms, leaseDurationMs: number, once: boolean): Json {
  const values = grantValues(terms, leaseDurationMs);
  return once
    ? updateItem(
        terms,
        acquire({ ...sample, slot: "slot" }),
        { ...values, ":slot": variable(terms, "slot") },
        true,
      )
    : updateItem(terms, acquire(sample), values, true);
}

/** Takes a lock from the record in the variable `record`, which was judged expired. */
export function takeOverArguments(terms: LeaseTerms, leaseDurationMs: number): Json {
  const values = {
    ...grantValues(terms, leaseDurationMs),
    ":judgedToken": ofRecord("token", "S", terms),
    ":judgedVersion": ofRecord("version", "N", terms),
  };
  return updateItem(terms, takeOver(sample, { token: "token", version: 1 }), values, true);
}

/** Prolongs the lease of the variables token, fence, version and leaseDurationMs; not while its holder is asked to stop. */
export function renewArguments(terms: LeaseTerms): Json {
  return updateItem(terms, renewUnlessRevoked(sample), renewalValues(terms), true);
}

/** Prolongs the same lease, whether its holder is asked to stop or not. */
export function renewHeldArguments(terms: LeaseTerms): Json {
  return updateItem(terms, renew(sample), renewalValues(terms), true);
}

function renewalValues(terms: LeaseTerms): Values {
  return {
    ":token": "$token",
    ":fence": "$fence",
    ":version": "$version + 1",
    ":expiresAt": "$millis() + $leaseDurationMs",
    ":leaseDurationMs": "$leaseDurationMs",
    ":ttl": timeToLiveAfter("$leaseDurationMs", terms),
  };
}

/** Lets the lock go; with `once`, the variable `slot` is done. */
export function releaseArguments(terms: LeaseTerms, once: boolean): Json {
  const values = { ...proof(terms), ":ttl": timeToLiveAfter("0", terms) };
  return once
    ? updateItem(terms, release({ ...sample, slot: "slot" }), { ...values, ":slot": variable(terms, "slot") })
    : updateItem(terms, release(sample), values);
}

/** Lets the lock go, but keeps it closed until the variable `closedUntil`. */
export function closeArguments(terms: LeaseTerms, once: boolean): Json {
  const closedUntil = variable(terms, "closedUntil");
  const values = {
    ...proof(terms),
    ":closedToken": `${literal(closedToken(""))} & ${variable(terms, "token")}`,
    ":closedUntil": closedUntil,
    ":remaining": `$max([0, ${closedUntil} - $millis()])`,
    ":ttl": `$ceil((${closedUntil} + ${terms.retentionMs}) / 1000)`,
  };
  return once
    ? updateItem(terms, close({ ...sample, slot: "slot" }), { ...values, ":slot": variable(terms, "slot") })
    : updateItem(terms, close(sample), values);
}

/** Takes back an acquisition whose answer never came. */
export function cancelArguments(terms: LeaseTerms): Json {
  const values = { ":token": variable(terms, "token"), ":ttl": timeToLiveAfter("0", terms) };
  return updateItem(terms, cancel(sample), values);
}

/** The values by which a lease proves itself. */
function proof(terms: LeaseTerms): Values {
  return { ":token": variable(terms, "token"), ":fence": variable(terms, "fence") };
}

/** Asks the holder in the variable `record` to stop. */
export function revokeArguments(terms: LeaseTerms): Json {
  const values = {
    ":token": ofRecord("token", "S", terms),
    ":reason": `'replaced by ' & ${variable(terms, "owner")}`,
  };
  return updateItem(terms, requestRevocation(sample), values);
}

/** Reads the lease item without its payload, seeing every earlier write. */
export function inspectArguments(terms: LeaseTerms): Json {
  const { projection, names } = recordOnly();
  return {
    TableName: terms.tableName,
    Key: keyOf(terms, leaseSortKey),
    ConsistentRead: true,
    ProjectionExpression: projection,
    ExpressionAttributeNames: names,
  };
}

/**
 * Parks the execution under the variables waitingSince and owner, if somebody holds the lock: then its release will
 * find the waiter.
 */
export function parkArguments(terms: LeaseTerms): Json {
  const { condition, names } = heldBySomebody();
  const waiter = park(sample);
  const {
    update,
    condition: _,
    ...write
  } = placed(
    { ...waiter, condition: "" },
    { ":taskToken": "$states.context.Task.Token", ":ttl": timeToLiveAfter("0", terms) },
  );
  const since = `$string(${variable(terms, "waitingSince")})`;
  const place = jsonata(`${literal(waiterSortKeyPrefix)} & ${since} & '#' & ${variable(terms, "owner")}`);
  return {
    TransactItems: [
      {
        ConditionCheck: {
          TableName: terms.tableName,
          Key: keyOf(terms, leaseSortKey),
          ConditionExpression: condition,
          ExpressionAttributeNames: names,
        },
      },
      {
        Update: { TableName: terms.tableName, Key: keyOf(terms, place), UpdateExpression: update, ...write },
      },
    ],
  };
}

/** The item that a look has found, as the variable `record`; empty where there is none. */
export const record: string = jsonata("$exists($states.result.Item) ? $states.result.Item : {}");

/** JSONata for an attribute of the item in the variable `record`, as a number or a text; undefined where it is missing. */
export function ofRecord(
  attribute: "token" | "fence" | "version" | "owner" | "expiresAt" | "revocation" | "doneSlot",
  type: "S" | "N",
  terms: Pick<LeaseTerms, "variablePrefix"> = {},
): string {
  return attributeOf(variable(terms, "record"), attribute, type);
}

/** JSONata that tells whether the item in the variable `record` was let go by the holder of the variable `token`. */
export function wasReleasedIn(terms: Pick<LeaseTerms, "variablePrefix">): string {
  const [item, token] = [variable(terms, "record"), variable(terms, "token")];
  return (
    `${attributeOf(item, "releasedToken", "S")} = ${token} and ` +
    `$not(${attributeOf(item, "brokenToken", "S")} = ${token})`
  );
}

/** {@link wasReleasedIn}, where the variables have no prefix. */
export const wasReleased: string = wasReleasedIn({});

/** JSONata that tells whether the item in the variable `record` is of a lock that nobody holds, but that is still closed. */
export const isClosed: string = `$contains(${ofRecord("token", "S")}, /^${closedToken("")}/)`;

/** JSONata for an attribute of an item. */
export function attributeOf(item: string, attribute: keyof typeof attributeNames, type: "S" | "N"): string {
  const path = `${item}.\`${attributeNames[attribute]}\`.${type}`;
  return type === "N" ? `$number(${path})` : path;
}

/** With `returnsWritten` the answer has the attributes that were written, and no others: a payload may be too large. */
function updateItem(terms: LeaseTerms, request: Sample, values: Values, returnsWritten = false): Json {
  const { update, condition, ...write } = placed(request, values);
  return {
    TableName: terms.tableName,
    Key: keyOf(terms, leaseSortKey),
    UpdateExpression: update,
    ConditionExpression: condition,
    ...write,
    ...(returnsWritten ? { ReturnValues: "UPDATED_NEW" } : {}),
  };
}

function keyOf(terms: LeaseTerms, sortKey: string): Json {
  return {
    [attributeNames.partitionKey]: { S: jsonata(variable(terms, "key")) },
    [attributeNames.sortKey]: { S: sortKey },
  };
}

/** Puts JSONata in the place of sample values: texts stay texts, and numbers are written as DynamoDB takes them. */
export function placed(
  { update, condition, names, values: samples }: Sample,
  values: Values,
): {
  readonly update: string;
  readonly condition: string;
  readonly ExpressionAttributeNames: Json;
  readonly ExpressionAttributeValues: Json;
} {
  const [wanted, given] = [Object.keys(samples).sort(), Object.keys(values).sort()];
  if (wanted.join() !== given.join()) {
    throw new Error(`the expression wants ${wanted.join(", ")}, and is given ${given.join(", ")}`);
  }
  const attributeValues: Record<string, Json> = {};
  for (const [placeholder, expression] of Object.entries(values)) {
    attributeValues[placeholder] =
      typeof samples[placeholder] === "number"
        ? { N: jsonata(`$string(${expression})`) }
        : { S: jsonata(expression) };
  }
  return {
    update,
    condition,
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: attributeValues,
  };
}
