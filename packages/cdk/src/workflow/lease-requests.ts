/**
 * The client's own statements as arguments of Step Functions' DynamoDB integration.
 *
 * Nothing is retyped: a statement comes from the client with sample values, and JSONata then replaces the samples. A
 * forgotten or unknown placeholder fails at synth.
 */
import {
  acquire,
  type Cooldown,
  cancel,
  type Grant,
  heldBySomebody,
  type LeaseEnd,
  park,
  recordOnly,
  release,
  renew,
  renewUnlessRevoked,
  requestRevocation,
  takeOver,
  type Write,
} from "@leasehold/client/internal";
import { attributeNames, cooldownToken, leaseSortKey, waiterSortKeyPrefix } from "@leasehold/client/schema";
import { type Json, jsonata, literal } from "./asl.ts";

/** The common terms of one workflow's or keeper's requests. */
export interface LeaseTerms {
  /** The lease table's name; may be a token. */
  readonly tableName: string;
  readonly retentionMs: number;
  /** The prefix of the machine's variables, when it runs the user's states too. @default "" */
  readonly variablePrefix?: string;
}

/** A variable of the machine, as JSONata reads it. */
export function variable({ variablePrefix = "" }: Pick<LeaseTerms, "variablePrefix">, name: string): string {
  return `$${variablePrefix}${name}`;
}

/** JSONata by placeholder. */
export type Values = Readonly<Record<`:${string}`, string>>;

/** JSONata for an attribute's name, by the name in a sample. */
export type Names = Readonly<Record<string, string>>;

/** The lock's item; its key is filled in afterwards. */
const lock = { key: "key" };
/** A grant, with a sample of each value. */
export const grant: Grant = {
  token: "token",
  version: 1,
  owner: "owner",
  acquiredAt: 1,
  expiresAt: 1,
  leaseDurationMs: 1,
  retentionMs: 1,
  reentrant: false,
  data: undefined,
  slot: undefined,
};
const shown = { token: "token", fencingToken: 1 };
const renewal = { shown, version: 1, expiresAt: 1, leaseDurationMs: 1, retentionMs: 1 };
const ending = { shown, now: 1, retentionMs: 1, slot: undefined, cooldown: undefined };

/** JSONata for the ttl of an item whose lease ends after this many milliseconds; as the client's `timeToLive`. */
export function timeToLiveAfter(durationMs: string, { retentionMs }: LeaseTerms): string {
  return `$ceil(($millis() + ${durationMs} + ${retentionMs}) / 1000)`;
}

/** Values of a grant; the workflow has the variables key, token, version and owner. */
function grantValues(terms: LeaseTerms, leaseDurationMs: number): Values {
  return {
    ":token": variable(terms, "token"),
    ":version": `${variable(terms, "version")} + 1`,
    ":owner": variable(terms, "owner"),
    ":acquiredAt": "$millis()",
    ":expiresAt": `$millis() + ${leaseDurationMs}`,
    ":leaseDurationMs": String(leaseDurationMs),
    ":ttl": timeToLiveAfter(String(leaseDurationMs), terms),
    ":fromFence": "$millis()",
    ":byFence": "1",
    ":ifReleasedToken": variable(terms, "token"),
  };
}

/** Acquires a free lock; with `once`, unless the variable `slot` is done. */
export function acquireArguments(terms: LeaseTerms, leaseDurationMs: number, once: boolean): Json {
  const values = grantValues(terms, leaseDurationMs);
  if (!once) return updateItem(terms, acquire(lock, grant), values, true);
  const ofSlot = { ...values, ":ifDoneSlot": variable(terms, "slot") };
  return updateItem(terms, acquire(lock, { ...grant, slot: "slot" }), ofSlot, true);
}

/** Takes a lock over from the record in the variable `record`, which was judged expired. */
export function takeOverArguments(terms: LeaseTerms, leaseDurationMs: number): Json {
  const values = {
    ...grantValues(terms, leaseDurationMs),
    ":ifToken": ofRecord("token", "S", terms),
    ":ifVersion": ofRecord("version", "N", terms),
    ":ifFence": ofRecord("fence", "N", terms),
    // A lock in its cooldown was released before: the marks of that release stay.
    ":lastEnd": `${isInCooldown(terms)} ? '' & ${ofRecord("lastEnd", "S", terms)} : ${ended("takenOver")}`,
  };
  return updateItem(
    terms,
    takeOver(lock, grant, { token: "judged", version: 1, fencingToken: 1 }),
    values,
    true,
  );
}

/**
 * Prolongs the lease of the variables token, fence, version and leaseDurationMs, unless its holder was asked to stop.
 */
export function renewArguments(terms: LeaseTerms): Json {
  return updateItem(terms, renewUnlessRevoked(lock, renewal), renewalValues(terms), true);
}

/** Prolongs the same lease, even if its holder was asked to stop. */
export function renewHeldArguments(terms: LeaseTerms): Json {
  return updateItem(terms, renew(lock, renewal), renewalValues(terms), true);
}

function renewalValues(terms: LeaseTerms): Values {
  return {
    ":ifToken": "$token",
    ":ifFence": "$fence",
    ":ifVersion": "$version + 1",
    ":version": "$version + 1",
    ":expiresAt": "$millis() + $leaseDurationMs",
    ":leaseDurationMs": "$leaseDurationMs",
    ":ttl": timeToLiveAfter("$leaseDurationMs", terms),
  };
}

/** Releases the lock; with `once`, the variable `slot` is done. */
export function releaseArguments(terms: LeaseTerms, once: boolean): Json {
  return endArguments(terms, once, { ":ttl": timeToLiveAfter("0", terms) }, undefined);
}

/** Releases the lock, but keeps its cooldown until the variable `cooldownUntil`. */
export function closeArguments(terms: LeaseTerms, once: boolean): Json {
  const cooldownUntil = variable(terms, "cooldownUntil");
  const values: Values = {
    ":token": `${literal(cooldownToken(""))} & ${variable(terms, "token")}`,
    ":expiresAt": cooldownUntil,
    ":leaseDurationMs": `$max([0, ${cooldownUntil} - $millis()])`,
    ":ttl": `$ceil((${cooldownUntil} + ${terms.retentionMs}) / 1000)`,
  };
  return endArguments(terms, once, values, { until: 2, forMs: 1 });
}

function endArguments(
  terms: LeaseTerms,
  once: boolean,
  values: Values,
  cooldown: Cooldown | undefined,
): Json {
  const all = {
    ...values,
    ...proof(terms),
    ":releasedToken": variable(terms, "token"),
    ":lastEnd": ended(once ? "completed" : "released"),
  };
  if (!once) return updateItem(terms, release(lock, { ...ending, cooldown }), all);
  const ofSlot = { ...all, ":doneSlot": variable(terms, "slot") };
  return updateItem(terms, release(lock, { ...ending, cooldown, slot: "slot" }), ofSlot);
}

/** JSONata for how and when a lease has ended, in the form of the client's own writes. */
function ended(how: LeaseEnd): string {
  return `${literal(`${how} `)} & $string($millis())`;
}

/** Takes back an acquisition whose answer was lost. */
export function cancelArguments(terms: LeaseTerms): Json {
  const token = variable(terms, "token");
  const values = { ":releasedToken": token, ":ifToken": token, ":ttl": timeToLiveAfter("0", terms) };
  return updateItem(terms, cancel(lock, { token: "token", now: 1, retentionMs: 1 }), values);
}

/** The values by which a lease proves itself. */
function proof(terms: LeaseTerms): Values {
  return { ":ifToken": variable(terms, "token"), ":ifFence": variable(terms, "fence") };
}

/** Asks the holder in the variable `record` to stop. */
export function revokeArguments(terms: LeaseTerms): Json {
  const values = {
    ":ifToken": ofRecord("token", "S", terms),
    ":revocation": `'replaced by ' & ${variable(terms, "owner")}`,
  };
  return updateItem(terms, requestRevocation(lock, "token", "reason"), values);
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
 * Parks the execution under the variables waitingSince and owner, if the lock is held: the lock's release then finds
 * the waiter.
 *
 * @param durationMs JSONata for how long it waits there
 */
export function parkArguments(terms: LeaseTerms, durationMs: string): Json {
  const { condition, names } = heldBySomebody(lock.key).request();
  const waiter = park({ pk: "key", sk: "waiter" }, { taskToken: "taskToken", expiresAt: 1, retentionMs: 1 });
  const {
    update,
    condition: _,
    ...write
  } = placed(waiter, {
    ":taskToken": "$states.context.Task.Token",
    ":ttl": timeToLiveAfter(durationMs, terms),
  });
  const since = `$string(${variable(terms, "waitingSince")})`;
  const sortKey = jsonata(`${literal(waiterSortKeyPrefix)} & ${since} & '#' & ${variable(terms, "owner")}`);
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
        Update: {
          TableName: terms.tableName,
          Key: keyOf(terms, sortKey),
          UpdateExpression: update,
          ...write,
        },
      },
    ],
  };
}

/** The item of a look, as the variable `record`; empty without an item. */
export const record: string = jsonata("$exists($states.result.Item) ? $states.result.Item : {}");

/** JSONata for an attribute of the item in the variable `record`, as a number or a text; undefined if it is missing. */
export function ofRecord(
  attribute: keyof typeof attributeNames,
  type: "S" | "N",
  terms: Pick<LeaseTerms, "variablePrefix"> = {},
): string {
  return attributeOf(variable(terms, "record"), attribute, type);
}

/**
 * JSONata: whether the lease of the variables `token` and `fence` was released, by the item in the variable `record`.
 *
 * Another caller that has given up may have replaced the mark of the release. Each lease has the next fencing token: so
 * the lock is free, or what it says of its last end is about this lease, until a later lease has ended.
 */
export function wasReleased(terms: Pick<LeaseTerms, "variablePrefix"> = {}): string {
  const fence = ofRecord("fence", "N", terms);
  const own = variable(terms, "fence");
  const isMarked = `${ofRecord("releasedToken", "S", terms)} = ${variable(terms, "token")}`;
  const isFree = `${fence} = ${own} and $not(${isHeldIn(terms)})`;
  const lastEnd = `$contains(${ofRecord("lastEnd", "S", terms)}, /^(released|completed) /)`;
  const isNext = `${fence} = ${own} + 1 and ${isHeldIn(terms)} and ${lastEnd}`;
  return `((${isMarked} or ${isFree}) and $not(${wasBroken(terms)}) or ${isNext})`;
}

/** JSONata: whether the item in the variable `record` says that the lease of the variable `token` was broken. */
export function wasBroken(terms: Pick<LeaseTerms, "variablePrefix">): string {
  return `${ofRecord("brokenToken", "S", terms)} = ${variable(terms, "token")}`;
}

/** JSONata: whether a later lease than that of the variable `fence` has ended. */
export const wasHeldSince: string = `${ofRecord("fence", "N")} - (${isHeldIn({})} ? 1 : 0) > $fence`;

/** JSONata: whether a caller holds the lock in the variable `record`. */
function isHeldIn(terms: Pick<LeaseTerms, "variablePrefix">): string {
  return `($exists(${ofRecord("token", "S", terms)}) and $not(${isInCooldown(terms)}))`;
}

/** JSONata: whether the item in the variable `record` is a lock in its cooldown, without a holder. */
export function isInCooldown(terms: Pick<LeaseTerms, "variablePrefix"> = {}): string {
  return `$contains(${ofRecord("token", "S", terms)}, /^${cooldownToken("")}/)`;
}

/** JSONata for an attribute of an item. */
export function attributeOf(item: string, attribute: keyof typeof attributeNames, type: "S" | "N"): string {
  const path = `${item}.\`${attributeNames[attribute]}\`.${type}`;
  return type === "N" ? `$number(${path})` : path;
}

/** With `returnsWritten` the answer has only the written attributes: a payload may be too large. */
export function updateItem(
  terms: LeaseTerms,
  write: Write,
  values: Values,
  returnsWritten = false,
  names: Names = {},
): Json {
  const { update, condition, ...expression } = placed(write, values, names);
  return {
    TableName: terms.tableName,
    Key: keyOf(terms, write.key.sk),
    UpdateExpression: update,
    ConditionExpression: condition,
    ...expression,
    ...(returnsWritten ? { ReturnValues: "UPDATED_NEW" } : {}),
  };
}

export function keyOf(terms: LeaseTerms, sortKey: string): Json {
  return {
    [attributeNames.partitionKey]: { S: jsonata(variable(terms, "key")) },
    [attributeNames.sortKey]: { S: sortKey },
  };
}

/**
 * Replaces sample values by JSONata: texts stay texts, and numbers get DynamoDB's form. A name that is no word contains
 * a sample, and `names` has its JSONata.
 */
export function placed(
  write: Write,
  values: Values,
  givenNames: Names = {},
): {
  readonly update: string;
  readonly condition: string;
  readonly ExpressionAttributeNames: Json;
  readonly ExpressionAttributeValues: Json;
} {
  const { update, condition, names, values: samples } = write.request();
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
  const attributeNames = Object.entries(names).map(([placeholder, attribute]) => {
    const given = givenNames[attribute];
    if (given === undefined && /\W/.test(attribute)) throw new Error(`no name is given for ${attribute}`);
    return [placeholder, given === undefined ? attribute : jsonata(given)];
  });
  return {
    update,
    condition,
    ExpressionAttributeNames: Object.fromEntries(attributeNames),
    ExpressionAttributeValues: attributeValues,
  };
}
