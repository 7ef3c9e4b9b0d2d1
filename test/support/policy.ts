/**
 * Judges requests by statements of IAM, as far as our grants use them: actions, and conditions on `dynamodb:LeadingKeys`.
 * A statement with anything else is an error here, and never permitted by mistake.
 */
import type { Call } from "./scripted-store.ts";

/** What IAM judges by itself: one action on one partition key. A request may have several. */
export interface Access {
  readonly action: string;
  /** Absent where the request names no key, as a Scan. */
  readonly leadingKey?: string;
}

/** A statement of a policy, as the CDK and the command line write it. */
export interface PolicyStatement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Condition?: unknown;
}

/** What DynamoDB asks IAM for a call to the store: each entry of a transaction and each statement of a batch by itself. */
export function accessesOf({ method, requests, entries = [], readsKey }: Call): Access[] {
  const reads = { get: "GetItem", query: "Query", scan: "Scan" };
  const inTransaction = { delete: "DeleteItem", check: "ConditionCheckItem" };
  const named =
    method === "transact"
      ? entries.map(({ action, key }) => ({
          action: typeof action === "string" ? inTransaction[action] : "UpdateItem",
          leadingKey: key.pk,
        }))
      : method === "update" || method === "updateMany"
        ? requests.map(({ key }) => ({
            // BatchExecuteStatement is permitted by statement.
            action: method === "update" ? "UpdateItem" : "PartiQLUpdate",
            leadingKey: key.pk,
          }))
        : [{ action: reads[method], ...(readsKey === undefined ? {} : { leadingKey: readsKey }) }];
  return named.map((access) => ({ ...access, action: `dynamodb:${access.action}` }));
}

/** Whether one of the statements allows an access. */
export function isPermitted(statements: readonly PolicyStatement[], access: Access): boolean {
  return statements.some(
    ({ Effect, Action, Condition = {} }) =>
      onlyAllow(Effect) &&
      [Action].flat().includes(access.action) &&
      Object.entries(Condition as object).every(([operator, block]) => holds(operator, block, access)),
  );
}

function onlyAllow(effect: string): true {
  if (effect !== "Allow")
    throw new Error(`a statement has the effect ${effect}, which is not evaluated here`);
  return true;
}

function holds(operator: string, block: unknown, { leadingKey }: Access): boolean {
  const { "dynamodb:LeadingKeys": wanted, ...others } = block as Record<string, unknown>;
  if (wanted === undefined || Object.keys(others).length > 0) {
    throw new Error(`a condition is on ${Object.keys(block as object)}, which is not evaluated here`);
  }
  if (operator === "Null") return (leadingKey === undefined) === ([wanted].flat()[0] === "true");
  if (operator === "ForAllValues:StringLike") {
    // True of all values where there are none: IAM's own trap.
    return (
      leadingKey === undefined || ([wanted].flat() as string[]).some((like) => matches(like, leadingKey))
    );
  }
  throw new Error(`the condition operator ${operator} is not evaluated here`);
}

/** `*` and `?` stand for any characters and for one, `${*}`, `${?}` and `${$}` for themselves. */
function matches(like: string, text: string): boolean {
  const parts = like.match(/\$\{[*?$]\}|[\s\S]/gu) ?? [];
  const expression = parts.map((part) => {
    if (part === "*") return ".*";
    if (part === "?") return ".";
    const literal = part.length > 1 && part.startsWith("${") ? part.charAt(2) : part;
    return literal.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
  });
  return new RegExp(`^${expression.join("")}$`, "su").test(text);
}
