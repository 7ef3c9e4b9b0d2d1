import { describe, InvalidOptionsError } from "../errors/errors.ts";
import { limits, utf8Bytes } from "../schema.ts";
import { adviceFor } from "./suggestions.ts";

/** Refuses a value that is not as it has to be. */
export function check(
  isAllowed: boolean,
  option: string,
  value: unknown,
  allowed: string,
): asserts isAllowed {
  if (!isAllowed) throw new InvalidOptionsError(option, value, allowed);
}

/**
 * Refuses options that nobody knows, which are nearly always misspelt ones, wherever in the prototype chain they are.
 *
 * Gives the options as they are from now on: each one is read once, so that what was checked is what is used.
 */
export function checkKnown<Options extends object>(
  options: Options,
  known: readonly string[],
  where: string,
): Options {
  const isObject = typeof options === "object" && options !== null && !Array.isArray(options);
  check(isObject, where, options, "an object");
  const given: Record<string, unknown> = {};
  for (const option of namesOf(options, where)) {
    const value = memberOf(options, option, `${where}.${option}`);
    if (!known.includes(option)) {
      const advice = adviceFor(option, known);
      throw new InvalidOptionsError(`${where}.${option}`, value, known.join(", "), {
        finding: "is not an option here",
        advice,
      });
    }
    given[option] = value;
  }
  return given as Options;
}

/** The names of an object's members, those that it has from its class included, but no methods of a class. */
function namesOf(options: object, where: string): ReadonlySet<string> {
  const names = new Set<string>();
  try {
    let holder: object | null = options;
    while (holder !== null && holder !== Object.prototype) {
      for (const [name, { enumerable, get }] of Object.entries(Object.getOwnPropertyDescriptors(holder))) {
        // The getter of this name is every object's own.
        if (enumerable || (get !== undefined && name !== "__proto__")) names.add(name);
      }
      holder = Object.getPrototypeOf(holder);
    }
  } catch (error) {
    throw unreadable(where, options, error);
  }
  return names;
}

/** Reads a member that may be a getter, which may throw. */
function memberOf(holder: object, name: string, path: string): unknown {
  try {
    return (holder as Readonly<Record<string, unknown>>)[name];
  } catch (error) {
    throw unreadable(path, undefined, error);
  }
}

function unreadable(path: string, value: unknown, cause: unknown): InvalidOptionsError {
  const why = cause instanceof Error ? cause.message : describe(cause);
  return new InvalidOptionsError(path, value, "a value that can be read", {
    finding: `cannot be read (${why})`,
    cause,
  });
}

/** Refuses an object that lacks one of the methods that will be called. */
export function checkMethods(option: string, value: unknown, methods: readonly string[]): void {
  const allowed = `an object with the methods ${methods.join(", ")}`;
  check(typeof value === "object" && value !== null, option, value, allowed);
  const missing = methods.filter((name) => typeof memberOf(value, name, `${option}.${name}`) !== "function");
  if (missing.length === 0) return;
  throw new InvalidOptionsError(option, value, allowed, { finding: `lacks ${missing.join(", ")}` });
}

/** Refuses what cannot end a call. */
export function checkSignal(signal: unknown): asserts signal is AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal) return;
  const advice = signal instanceof AbortController ? "pass controller.signal" : undefined;
  throw new InvalidOptionsError("signal", signal, "an AbortSignal", { advice });
}

/** Tells whether a value is a whole number that is not negative, and exact. */
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

/** A text that is well-formed, not empty and not longer than DynamoDB, or we, can take. */
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

/** A slot: its characters sort the same in every language and in DynamoDB. A Date is written as an ISO time in UTC. */
export function checkSlot(option: string, slot: unknown): string {
  const allowed = `a Date, or 1 to ${limits.slotBytes} printable ASCII characters that sort in the order of the runs, such as an ISO time`;
  if (slot instanceof Date) {
    if (!Number.isNaN(slot.getTime())) return slot.toISOString();
    throw new InvalidOptionsError(option, slot, allowed, { finding: "is an invalid Date" });
  }
  const isPlain = typeof slot === "string" && /^[\x20-\x7e]+$/.test(slot) && slot.length <= limits.slotBytes;
  check(isPlain, option, slot, allowed);
  return slot;
}

/** What is run under a lease. */
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
  const text = jsonOf(option, data);
  checkSize(option, utf8Bytes(text), mostBytes);
  return text;
}

function jsonOf(option: string, data: unknown): string {
  try {
    return JSON.stringify(data);
  } catch (error) {
    throw unreadable(option, data, error);
  }
}

function checkJson(path: string, value: unknown, ancestors: readonly object[]): void {
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "number" && Number.isFinite(value)) return;
  const isTree = typeof value === "object" && !ancestors.includes(value);
  const allowed =
    "plain JSON values: null, booleans, finite numbers, strings, arrays and objects without cycles";
  check(isTree, path, value, allowed);
  if (ancestors.length >= limits.dataDepth) {
    const finding = `nests more than ${limits.dataDepth} arrays and objects`;
    throw new InvalidOptionsError(
      path.split(".", 1).join(),
      ancestors.length,
      `at most ${limits.dataDepth} levels`,
      { finding },
    );
  }
  const parents = [...ancestors, value];
  for (const name of membersOf(path, value)) {
    const inner = `${path}.${name}`;
    checkJson(inner, memberOf(value, name, inner), parents);
  }
}

/** The names of what JSON takes of an array or a plain object; refuses every other one. */
function membersOf(path: string, value: object): readonly string[] {
  let members: readonly string[];
  let isPlain: boolean;
  try {
    const prototype: unknown = Object.getPrototypeOf(value);
    isPlain = Array.isArray(value) || prototype === Object.prototype || prototype === null;
    members = Object.keys(value);
  } catch (error) {
    throw unreadable(path, value, error);
  }
  if (isPlain) return members;
  const advice = value instanceof Date ? "pass its toISOString()" : undefined;
  throw new InvalidOptionsError(path, value, "plain objects, not instances of a class", { advice });
}
