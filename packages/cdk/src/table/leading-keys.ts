import { limits, utf8Bytes } from "@leasehold/client/schema";
import { Token } from "aws-cdk-lib";
import { aListOf, aText, checkKind, checkProps, type Kinds } from "../prop-kinds.ts";

/** The locks of a permission. Keys and prefixes add up; without either it covers every lock. */
export interface LeaseKeyScope {
  /** Keys of locks, taken literally: `*`, `?` and `$` mean themselves. @default - no single keys */
  readonly keys?: string[];
  /** Prefixes of the locks' keys, taken literally. @default - no prefixes */
  readonly keyPrefixes?: string[];
}

/** The conditions of a policy statement. */
export type PolicyConditions = Record<string, Record<string, unknown>>;

const scopeKinds: Kinds<LeaseKeyScope> = { keys: aListOf(aText), keyPrefixes: aListOf(aText) };

const leadingKeys = "dynamodb:LeadingKeys";

/**
 * Returns the conditions that limit a statement to the locks of a scope; undefined for every lock.
 *
 * Throws when the scope names no lock at all, or a key that DynamoDB does not allow.
 */
export function leadingKeysConditions(scope: LeaseKeyScope): PolicyConditions | undefined {
  const { keys, keyPrefixes } = checkProps(scope, scopeKinds);
  if (keys === undefined && keyPrefixes === undefined) return undefined;
  const patterns = [
    ...(keys ?? []).map((key) => literally(checkLeaseKey("keys", key))),
    ...(keyPrefixes ?? []).map((prefix) => `${literally(checkLeaseKey("keyPrefixes", prefix))}*`),
  ];
  if (patterns.length === 0) {
    throw new Error("keys and keyPrefixes are empty, which permits nothing: name a key, or leave both out");
  }
  return {
    "ForAllValues:StringLike": { [leadingKeys]: patterns },
    // "For all values" is also true for no values, and so for a request without a key.
    Null: { [leadingKeys]: "false" },
  };
}

/** Refuses a key that DynamoDB would refuse. Accepts a value that is known only at deployment. */
export function checkLeaseKey(prop: string, key: string): string {
  checkKind(prop, key, aText);
  if (Token.isUnresolved(key)) return key;
  if (key === "")
    throw new Error(`${prop} has an empty key: a lock's key is a text of 1 to ${limits.keyBytes} bytes`);
  const bytes = utf8Bytes(key);
  if (bytes > limits.keyBytes) {
    const start = JSON.stringify(`${key.slice(0, 40)}...`);
    throw new Error(
      `${prop} has a key of ${bytes} bytes, ${start}: shorten it to at most ${limits.keyBytes} bytes`,
    );
  }
  return key;
}

/** Writes wildcards, and characters that could begin a policy variable, as IAM's variables for these characters. */
function literally(key: string): string {
  // In the text, a token is a marker with a dollar sign, which must stay whole.
  return Token.isUnresolved(key) ? key : key.replaceAll(/[*?$]/g, (character) => `\${${character}}`);
}
