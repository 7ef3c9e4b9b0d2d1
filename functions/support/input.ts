import { InvalidOptionsError } from "@leasehold/client";

/** An input of which nothing is known yet but that it is an object with no unexpected fields. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * Refuses a value that is no object, and unknown fields, which are nearly always misspelt ones. Without `known` every
 * field passes: for events whose fields depend on one of them.
 */
export function fieldsOf(input: unknown, known?: readonly string[], where = "event"): Fields {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    const allowed = known === undefined ? "an object" : `an object with the fields ${known.join(", ")}`;
    throw new InvalidOptionsError(where, input, allowed);
  }
  const fields = input as Fields;
  if (known === undefined) return fields;
  for (const [name, value] of Object.entries(fields)) {
    if (!known.includes(name)) {
      throw new InvalidOptionsError(`${where}.${name}`, value, `one of the fields ${known.join(", ")}`);
    }
  }
  return fields;
}

/** DynamoDB's own limit for a sort key: every name here becomes part of a key. */
const longestName = 1024;

/** A name that is well-formed and not empty. */
export function nameIn(fields: Fields, field: string, longest: number = longestName): string {
  const value = fields[field];
  if (typeof value === "string" && value !== "" && value.length <= longest && value.isWellFormed())
    return value;
  throw new InvalidOptionsError(
    `event.${field}`,
    value,
    `a non-empty string of at most ${longest} characters`,
  );
}

/** One of a few words. */
export function choiceIn<T extends string>(fields: Fields, field: string, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === fields[field]);
  if (choice === undefined)
    throw new InvalidOptionsError(`event.${field}`, fields[field], choices.join(", "));
  return choice;
}

/** A duration in whole milliseconds, or what to take when there is none. */
export function durationIn(fields: Fields, field: string, fallback: number, longestMs = 86_400_000): number {
  const value = fields[field] === undefined ? fallback : fields[field];
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= longestMs)
    return value;
  throw new InvalidOptionsError(
    `event.${field}`,
    value,
    `a whole number of milliseconds from 0 to ${longestMs}`,
  );
}

/** Yes or no; no when it is absent. */
export function flagIn(fields: Fields, field: string): boolean {
  const value = fields[field] === undefined ? false : fields[field];
  if (typeof value === "boolean") return value;
  throw new InvalidOptionsError(`event.${field}`, value, "true or false");
}

/** A function was asked to touch a lock that is none of its business. Nothing was sent. */
export class KeyNotAllowedError extends Error {
  readonly key: string;
  /** What the key would have to be, or start with. */
  readonly allowed: string;

  constructor(key: string, allowed: string) {
    super(`the key ${JSON.stringify(key)} may not be touched by this function; allowed: ${allowed}`);
    this.name = "KeyNotAllowedError";
    this.key = key;
    this.allowed = allowed;
  }
}

/** Refuses keys outside a prefix; without a prefix every key is allowed. Throws {@link KeyNotAllowedError}. */
export function checkKeyPrefix(key: string, prefix: string | undefined): void {
  if (prefix === undefined || key.startsWith(prefix)) return;
  throw new KeyNotAllowedError(key, `keys that start with ${JSON.stringify(prefix)}`);
}

/** Refuses every key but one. Throws {@link KeyNotAllowedError}. */
export function checkKeyIs(key: string, only: string): void {
  if (key !== only) throw new KeyNotAllowedError(key, `the key ${JSON.stringify(only)}`);
}
