/**
 * Checks the values that callers give. Options are checked by tables, from each option's name to its rule: the known
 * names, the values that are read and the values that are refused follow from one table. Every message names the value
 * and what is allowed; docs/errors.md has the advice.
 */
import { InvalidOptionsError, type RefusalWording, saying } from "./errors.ts";
import { isWhole } from "./item-values.ts";
import { limits, utf8Bytes } from "./schema.ts";

/** Refuses an option's value, or returns the value to use. Throws InvalidOptionsError. */
export type Rule<Value> = (option: string, value: unknown) => Value;

/** A rule for each option of an object. The rule of an omitted option is not called. */
export type Rules<Options> = { readonly [Name in keyof Options]-?: Rule<Options[Name]> };

/** Refuses a value that is not allowed. */
export function check(
  isAllowed: boolean,
  option: string,
  value: unknown,
  allowed: string,
  wording?: RefusalWording,
): asserts isAllowed {
  if (!isAllowed) throw new InvalidOptionsError(option, value, allowed, wording);
}

/** Returns a rule by a test and a description of the allowed values. The test may look into objects of the caller. */
export function rule<Value>(allowed: string, isAllowed: (value: unknown) => boolean): Rule<Value> {
  return (option, value) => {
    check(
      readable(option, value, () => isAllowed(value)),
      option,
      value,
      allowed,
    );
    return value as Value;
  };
}

/** Returns the rule of a value out of several. */
export function oneOf<Word>(...words: readonly Word[]): Rule<Word> {
  return rule(words.join(", "), (value) => words.includes(value as Word));
}

/** The rule of an option that is checked elsewhere, together with others. */
export const unchecked: Rule<never> = (_, value) => value as never;
export const trueOrFalse: Rule<boolean> = oneOf(true, false);
export const isFunction = (value: unknown): boolean => typeof value === "function";
export const aFunction: Rule<never> = rule("a function", isFunction);
const listener: Rule<never> = rule("a function, or an array of functions", isFunction);
/** One listener, or several. They are copied, so that the checked listeners are the called ones. */
export const listeners: Rule<never> = (option, value) =>
  [value].flat().map((each) => listener(option, each)) as never;

/** Returns the rule of an object with methods that will be called. */
export function withMethods<Value>(...methods: string[]): Rule<Value> {
  return rule(
    `an object with the methods ${methods.join(", ")}`,
    (value) =>
      isObject(value) && methods.every((name) => isFunction((value as Record<string, unknown>)[name])),
  );
}

/** Refuses a value that is not an AbortSignal. */
export const checkSignal: Rule<AbortSignal> = rule("an AbortSignal", (value) => value instanceof AbortSignal);

/** Returns the rule of a whole number. `others` describes further values that the caller of the rule has allowed. */
function wholeNumber(unit: string, min: number, max: number, others = ""): Rule<number> {
  return rule(
    `a whole number${unit} from ${min} to ${max}${others}`,
    (value) => isWhole(value, max) && value >= min,
  );
}

/** Returns the rule of a count. */
export function countTo(most: number): Rule<number> {
  return wholeNumber("", 1, most);
}

/** Returns the rule of a duration: a whole number of milliseconds within its range. */
export function duration(min: number, max: number = limits.durationMs, others?: string): Rule<number> {
  return wholeNumber(" of milliseconds", min, max, others);
}

/** Refuses what is no duration of this range. */
export function checkDuration(option: string, value: unknown, ...range: Parameters<typeof duration>): number {
  return duration(...range)(option, value);
}

/** Returns the rule of a text that is well-formed, not empty and not longer than DynamoDB's limit or ours. */
export function text(maxBytes: number): Rule<string> {
  return rule(
    `a well-formed string of 1 to ${maxBytes} bytes in UTF-8`,
    // A lone surrogate would be stored as a replacement character, and two keys could become one.
    (value) =>
      typeof value === "string" && value !== "" && value.isWellFormed() && utf8Bytes(value) <= maxBytes,
  );
}

/** Refuses what is no such text. */
export function checkText(option: string, value: unknown, maxBytes: number): string {
  return text(maxBytes)(option, value);
}

/** A lock's key. */
export function checkKey(key: unknown): string {
  return checkText("key", key, limits.keyBytes);
}

/** An owner of a lease, or its token. */
export const label: Rule<string> = text(limits.ownerBytes);

/** A slot: its characters sort the same in every language and in DynamoDB. A Date is written as an ISO time in UTC. */
export function checkSlot(option: string, slot: unknown): string {
  // Null for an invalid Date.
  const written: unknown = slot instanceof Date ? slot.toJSON() : slot;
  check(
    typeof written === "string" && written.length <= limits.slotBytes && /^[ -~]+$/.test(written),
    option,
    slot,
    `a valid Date, or 1 to ${limits.slotBytes} printable ASCII characters`,
  );
  return written;
}

/** Checks the work that will run under a lease. */
export function checkWork<Work>(work: Work | undefined): asserts work is Work {
  aFunction("work", work);
}

/** Names of parameters: messages show their options without a prefix. */
const isParameter = /^(options|query)$/;

/**
 * Checks options by their rules, and returns the values to use. Each option is read once, so that the checked value is
 * the used one. An undefined option counts as omitted, except for required options.
 */
export function checkOptions<Options extends object>(
  options: Options,
  rules: Rules<Options>,
  where = "options",
  required: readonly (keyof Options)[] = [],
): Options {
  const given: { [Name in keyof Options]?: unknown } = checkKnown(options, Object.keys(rules), where);
  // A missing required option is checked as undefined.
  for (const name of required) given[name] ??= undefined;
  const prefix = isParameter.test(where) ? "" : `${where}.`;
  for (const name in given) {
    const path = prefix + name;
    given[name] = readable(path, given[name], () => rules[name](path, given[name]));
  }
  return given as Options;
}

/**
 * Refuses unknown options, which are nearly always misspelt, wherever in the prototype chain they are. Returns the known
 * options that have a value, each read once.
 */
export function checkKnown<Options extends object>(
  options: Options,
  known: readonly string[],
  where: string,
): Options {
  const given = membersOf(options, known, where);
  for (const name of readable(where, options, () => namesOf(options))) {
    if (known.includes(name)) continue;
    const path = `${where}.${name}`;
    const finding = "is not an option here";
    check(false, path, memberOf(options, name, path), known.join(", "), { finding });
  }
  return given;
}

/**
 * Returns the members of an object that have one of the names and a value, each read once. In data from a program of
 * another version, other members are ignored.
 */
export function membersOf<Value extends object>(
  value: Value,
  names: readonly string[],
  where: string,
): Value {
  const isRecord = readable(where, value, () => isObject(value) && !Array.isArray(value));
  // A text in place of an object may be a handle as JSON, with its token.
  check(isRecord, where, value, "an object", typeof value === "string" ? { finding: "is a text" } : {});
  const given: Record<string, unknown> = {};
  for (const name of names) {
    const member = memberOf(value, name, `${where}.${name}`);
    if (member !== undefined) given[name] = member;
  }
  return given as Value;
}

/** The names of an object's members, also of its class, but without the class's methods. */
function namesOf(options: object): ReadonlySet<string> {
  const names = new Set<string>();
  for (let holder = options; holder && holder !== Object.prototype; holder = Object.getPrototypeOf(holder)) {
    for (const [name, { enumerable, get }] of Object.entries(Object.getOwnPropertyDescriptors(holder))) {
      // Every object has the getter of this name.
      if (enumerable || (get && name !== "__proto__")) names.add(name);
    }
  }
  return names;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Reads a value that may be a getter or a proxy, and may throw. A refusal of one of its parts stays as it is. */
export function readable<Value>(path: string, value: unknown, read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof InvalidOptionsError) throw cause;
    const wording = { finding: `cannot be read (${saying(cause)})`, cause };
    throw new InvalidOptionsError(path, value, "a value that can be read", wording);
  }
}

function memberOf(holder: object, name: string, path: string): unknown {
  return readable(path, undefined, () => (holder as Readonly<Record<string, unknown>>)[name]);
}

/** Refuses a payload that is too large. */
export function checkSize(option: string, bytes: number, most: number, where = ""): void {
  const finding = `is ${bytes} bytes of JSON`;
  check(bytes <= most, option, bytes, `at most ${most} bytes${where}`, { finding });
}

/** Turns a payload into JSON text, and refuses what JSON would drop, change or fail on. */
export function checkData(
  data: unknown,
  option = "data",
  mostBytes: number = limits.dataBytes,
): string | undefined {
  if (data === undefined) return undefined;
  checkJson(option, data, []);
  const json = readable(option, data, () => JSON.stringify(data));
  checkSize(option, utf8Bytes(json), mostBytes);
  return json;
}

function checkJson(path: string, value: unknown, ancestors: readonly unknown[]): void {
  if (value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value))
    return;
  const members = readable(path, value, () => (isPlain(value) ? Object.keys(value) : undefined));
  check(
    members !== undefined && !ancestors.includes(value) && ancestors.length < limits.dataDepth,
    path,
    value,
    `null, booleans, finite numbers, strings, and arrays and plain objects without cycles, ${limits.dataDepth} deep`,
  );
  for (const name of members) {
    const inner = `${path}.${name}`;
    checkJson(inner, memberOf(value as object, name, inner), [...ancestors, value]);
  }
}

function isPlain(value: unknown): value is object {
  return (
    Array.isArray(value) ||
    (isObject(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value)))
  );
}
