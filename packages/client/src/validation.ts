import { InvalidOptionsError } from "./errors.ts";
import { limits, utf8Bytes } from "./schema.ts";

/** Refuses a value that is not as it has to be. */
export function check(
  isAllowed: boolean,
  option: string,
  value: unknown,
  allowed: string,
): asserts isAllowed {
  if (!isAllowed) throw new InvalidOptionsError(option, value, allowed);
}

/** Refuses options that nobody knows, which are nearly always misspelt ones. */
export function checkKnown(options: object, known: readonly string[], where: string): void {
  const isObject = typeof options === "object" && options !== null && !Array.isArray(options);
  check(isObject, where, options, "an object");
  for (const [option, value] of Object.entries(options)) {
    if (known.includes(option)) continue;
    throw new InvalidOptionsError(`${where}.${option}`, value, `one of the options ${known.join(", ")}`);
  }
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

/** A slot: its characters sort the same in every language and in DynamoDB. */
export function checkSlot(option: string, slot: unknown): string {
  const isPlain = typeof slot === "string" && /^[\x20-\x7e]+$/.test(slot) && slot.length <= limits.slotBytes;
  const allowed = `1 to ${limits.slotBytes} printable ASCII characters that sort in the order of the runs, such as an ISO time`;
  check(isPlain, option, slot, allowed);
  return slot;
}

/** What is run under a lease. */
export function checkWork(work: unknown): void {
  check(typeof work === "function", "work", work, "a function of the lease");
}

/** Turns a payload into JSON text, and refuses what JSON would drop, change or fail on. */
export function checkData(data: unknown): string | undefined {
  if (data === undefined) return undefined;
  checkJson("data", data, []);
  const text = JSON.stringify(data);
  const bytes = utf8Bytes(text);
  const { dataBytes } = limits;
  check(bytes <= dataBytes, "data", `${bytes} bytes of JSON`, `at most ${dataBytes} bytes of JSON`);
  return text;
}

function checkJson(path: string, value: unknown, ancestors: readonly object[]): void {
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "number" && Number.isFinite(value)) return;
  const isTree = typeof value === "object" && !ancestors.includes(value);
  const allowed =
    "plain JSON values: null, booleans, finite numbers, strings, arrays and objects without cycles";
  check(isTree, path, value, allowed);
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = Array.isArray(value) || prototype === Object.prototype || prototype === null;
  check(isPlain, path, value, "plain objects, not instances of a class");
  for (const [name, member] of Object.entries(value))
    checkJson(`${path}.${name}`, member, [...ancestors, value]);
}
