import { limits, utf8Bytes } from "@leasehold/client/schema";
import { Token } from "aws-cdk-lib";
import { aListOf, aText, checkKind, checkProps, type Kinds } from "../prop-kinds.ts";

/** Which locks a permission is about. Keys and prefixes add up; without either it is about every lock. */
export interface LeaseKeyScope {
  /** Keys of locks, taken literally: `*`, `?` and `$` mean themselves. @default - no single keys */
  readonly keys?: string[];
  /** How the keys of the locks start, taken literally. @default - no prefixes */
  readonly keyPrefixes?: string[];
}

/** The conditions of a policy statement. */
export type PolicyConditions = Record<string, Record<string, unknown>>;

const scopeKinds: Kinds<LeaseKeyScope> = { keys: aListOf(aText), keyPrefixes: aListOf(aText) };

const leadingKeys = "dynamodb:LeadingKeys";

/**
 * Gives the conditions that hold a statement to the locks of a scope; undefined for every lock.
 *
 * Throws when the scope names no lock at all, or a key that DynamoDB cannot have.
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
    // "For all values" is also true of no values at all, and so of a request that names no key.
    Null: { [leadingKeys]: "false" },
  };
}

/** Refuses a key that DynamoDB would refuse; a value known at deployment only is let through. */
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
  // A token stands in the text as a marker of its own, with a dollar sign, that must stay whole.
  return Token.isUnresolved(key) ? key : key.replaceAll(/[*?$]/g, (character) => `\${${character}}`);
}
