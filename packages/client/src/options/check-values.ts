/**
 * Checks the values that callers give. Options are checked by tables, from each option's name to its rule: the known
 * names, the values that are read and the values that are refused follow from one table.
 */
import { InvalidOptionsError, saying } from "../errors/errors.ts";
import { limits, utf8Bytes } from "../schema.ts";
import { adviceFor } from "./suggestions.ts";

/** Refuses an option's value, or returns the value to use. Throws InvalidOptionsError. */
export type Rule<Value> = (option: string, value: unknown) => Value;

/** A rule for each option of an object. The rule of an omitted option is not called. */
export type Rules<Options> = { readonly [Name in keyof Options]-?: Rule<Options[Name]> };

/** Returns a rule by a test and a description of the allowed values. */
export function rule<Value>(allowed: string, isAllowed: (value: unknown) => boolean): Rule<Value> {
  return (option, value) => {
    check(isAllowed(value), option, value, allowed);
    return value as Value;
  };
}

/** Returns the rule of a word out of several. */
export function oneOf<Word extends string>(...words: readonly Word[]): Rule<Word> {
  return rule(words.join(", "), (value) => words.includes(value as Word));
}

/** The rule of an option that is checked elsewhere, together with others. */
export const unchecked: Rule<never> = (_, value) => value as never;
export const trueOrFalse: Rule<boolean> = rule("true or false", (value) => typeof value === "boolean");
const isFunction = (value: unknown): boolean => typeof value === "function";
export const aFunction: Rule<never> = rule("a function", isFunction);
const listener: Rule<never> = rule("a function, or an array of functions", isFunction);
/** One listener, or several. They are copied, so that the checked listeners are the called ones. */
export const listeners: Rule<never> = (option, value) =>
  [value].flat().map((each) => listener(option, each)) as never;

/** Refuses a value that is not allowed. */
export function check(
  isAllowed: boolean,
  option: string,
  value: unknown,
  allowed: string,
): asserts isAllowed {
  if (!isAllowed) throw new InvalidOptionsError(option, value, allowed);
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
    try {
      given[name] = rules[name](path, given[name]);
    } catch (error) {
      throw refusalOf(path, given[name], error);
    }
  }
  return given as Options;
}

/**
 * Refuses unknown options, which are nearly always misspelt, wherever in the prototype chain they are. In data from a
 * program of another version, unknown members are ignored instead. Returns the known options that have a value, each
 * read once.
 */
export function checkKnown<Options extends object>(
  options: Options,
  known: readonly string[],
  where: string,
  unknown: "refused" | "ignored" = "refused",
): Options {
  const isObject = typeof options === "object" && options !== null;
  const names = readable(where, options, () => {
    return isObject && !Array.isArray(options) ? namesOf(options) : undefined;
  });
  if (names === undefined) throw new InvalidOptionsError(where, options, "an object", unshown(options));
  const given: Record<string, unknown> = {};
  for (const option of names) {
    if (unknown === "ignored" && !known.includes(option)) continue;
    const path = `${where}.${option}`;
    const value = memberOf(options, option, path);
    if (!known.includes(option)) {
      const wording = { finding: "is not an option here", advice: adviceFor(option, known) };
      throw new InvalidOptionsError(path, value, known.join(", "), wording);
    }
    if (value !== undefined) given[option] = value;
  }
  return given as Options;
}

/** A text in place of an object may be a handle as JSON, with its token. */
function unshown(value: unknown): { readonly finding?: string } {
  return typeof value === "string" ? { finding: "is a text" } : {};
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

/** Reads a value that may be a getter or a proxy, and may throw. A refusal of one of its parts stays as it is. */
export function readable<Value>(path: string, value: unknown, read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    throw refusalOf(path, value, cause);
  }
}

function refusalOf(path: string, value: unknown, cause: unknown): InvalidOptionsError {
  if (cause instanceof InvalidOptionsError) return cause;
  const wording = { finding: `cannot be read (${saying(cause)})`, cause };
  return new InvalidOptionsError(path, value, "a value that can be read", wording);
}

function memberOf(holder: object, name: string, path: string): unknown {
  return readable(path, undefined, () => (holder as Readonly<Record<string, unknown>>)[name]);
}

/** Returns the rule of an object with methods that will be called. */
export function withMethods<Value>(...methods: string[]): Rule<Value> {
  const allowed = `an object with the methods ${methods.join(", ")}`;
  return (option, value) => {
    check(typeof value === "object" && value !== null, option, value, allowed);
    const isMissing = (name: string): boolean =>
      typeof memberOf(value, name, `${option}.${name}`) !== "function";
    const missing = methods.filter(isMissing).join(", ");
    if (missing === "") return value as Value;
    throw new InvalidOptionsError(option, value, allowed, { finding: `lacks ${missing}` });
  };
}

/** Refuses a value that is not an AbortSignal. */
export const checkSignal: Rule<AbortSignal> = (option, value) => {
  if (value instanceof AbortSignal) return value;
  const advice = value instanceof AbortController ? "pass controller.signal" : undefined;
  throw new InvalidOptionsError(option, value, "an AbortSignal", { advice });
};

/** Whether a value is a whole number, not negative, and exact. */
export function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** A duration is a whole number of milliseconds within its range. */
export function checkDuration(
  option: string,
  value: unknown,
  min: number,
  max: number = limits.durationMs,
): number {
  const isInRange = isWhole(value) && value >= min && value <= max;
  check(isInRange, option, value, `a whole number of milliseconds from ${min} to ${max}`);
  return value;
}

/** Returns the rule of a duration. */
export function duration(min: number, max?: number): Rule<number> {
  return (option, value) => checkDuration(option, value, min, max);
}

/** Returns the rule of a count. */
export function countTo(most: number): Rule<number> {
  return rule(`a whole number from 1 to ${most}`, (value) => isWhole(value) && value >= 1 && value <= most);
}

/** A text that is well-formed, not empty and not longer than DynamoDB's limit or ours. */
export function checkText(option: string, value: unknown, maxBytes: number): string {
  // A lone surrogate would be stored as a replacement character, and two keys could become one.
  const isText =
    typeof value === "string" && value !== "" && value.isWellFormed() && utf8Bytes(value) <= maxBytes;
  check(isText, option, value, `a non-empty, well-formed string of at most ${maxBytes} bytes in UTF-8`);
  return value;
}

/** A lock's key. */
export function checkKey(key: unknown): string {
  return checkText("key", key, limits.keyBytes);
}

/** Returns the rule of a text. */
export function text(maxBytes: number): Rule<string> {
  return (option, value) => checkText(option, value, maxBytes);
}

/** An owner of a lease, or its token. */
export const label: Rule<string> = text(limits.ownerBytes);

/** A slot: its characters sort the same in every language and in DynamoDB. A Date is written as an ISO time in UTC. */
export function checkSlot(option: string, slot: unknown): string {
  const isDate = slot instanceof Date;
  const written = isDate && !Number.isNaN(slot.getTime()) ? slot.toISOString() : slot;
  if (typeof written === "string" && written.length <= limits.slotBytes && /^[\x20-\x7e]+$/.test(written)) {
    return written;
  }
  const allowed = `a Date, or 1 to ${limits.slotBytes} printable ASCII characters that sort in the order of the runs, such as an ISO time`;
  throw new InvalidOptionsError(option, slot, allowed, isDate ? { finding: "is an invalid Date" } : {});
}

/** Checks the work that will run under a lease. */
export function checkWork<Work>(work: Work | undefined): asserts work is Work {
  check(typeof work === "function", "work", work, "a function of the lease");
}

/** Refuses a payload that is too large. */
export function checkSize(option: string, bytes: number, most: number, where = ""): void {
  if (bytes <= most) return;
  throw new InvalidOptionsError(option, bytes, `at most ${most} bytes of JSON${where}`, {
    finding: `is ${bytes} bytes of JSON`,
    advice: "store it elsewhere, and give its name here",
  });
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

const jsonValues =
  "plain JSON values: null, booleans, finite numbers, strings, arrays and objects without cycles";

function checkJson(path: string, value: unknown, ancestors: readonly object[]): void {
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "number" && Number.isFinite(value)) return;
  check(typeof value === "object" && !ancestors.includes(value), path, value, jsonValues);
  if (ancestors.length >= limits.dataDepth) {
    const [option = path] = path.split(".", 1);
    throw new InvalidOptionsError(option, ancestors.length, `at most ${limits.dataDepth} levels`, {
      finding: `nests more than ${limits.dataDepth} arrays and objects`,
    });
  }
  const members = readable(path, value, () => (isPlain(value) ? Object.keys(value) : undefined));
  if (members === undefined) {
    const advice = value instanceof Date ? "pass its toISOString()" : undefined;
    throw new InvalidOptionsError(path, value, "plain objects, not instances of a class", { advice });
  }
  for (const name of members) {
    const inner = `${path}.${name}`;
    checkJson(inner, memberOf(value, name, inner), [...ancestors, value]);
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}
