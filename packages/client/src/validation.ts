import { InvalidOptionsError } from "./errors.ts";
import { limits, utf8Bytes } from "./schema.ts";

/** Refuses options that nobody knows, which are nearly always misspelt ones. */
export function checkKnown(options: object, known: readonly string[], where: string): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new InvalidOptionsError(where, options, "an object");
  }
  for (const option of Object.keys(options)) {
    if (!known.includes(option)) {
      const value = (options as Record<string, unknown>)[option];
      throw new InvalidOptionsError(`${where}.${option}`, value, `one of the options ${known.join(", ")}`);
    }
  }
}

/** A duration is a whole number of milliseconds within its range. */
export function checkDuration(
  option: string,
  value: unknown,
  min: number,
  max: number = limits.durationMs,
): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < min || value > max) {
    throw new InvalidOptionsError(option, value, `a whole number of milliseconds from ${min} to ${max}`);
  }
  return value;
}

/** A text that is well-formed, not empty and not longer than DynamoDB, or we, can take. */
export function checkText(option: string, value: unknown, maxBytes: number): string {
  const allowed = `a non-empty, well-formed string of at most ${maxBytes} bytes in UTF-8`;
  // A lone surrogate would be stored as a replacement character, and two keys could become one.
  if (typeof value !== "string" || value === "" || !value.isWellFormed() || utf8Bytes(value) > maxBytes) {
    throw new InvalidOptionsError(option, value, allowed);
  }
  return value;
}

/** A lock's key. */
export function checkKey(key: unknown): string {
  return checkText("key", key, limits.keyBytes);
}

/** A slot: its characters sort the same in every language and in DynamoDB. */
export function checkSlot(option: string, slot: unknown): string {
  const isPlain = typeof slot === "string" && /^[\x20-\x7e]+$/.test(slot) && slot.length <= limits.slotBytes;
  if (isPlain) return slot;
  const allowed = `1 to ${limits.slotBytes} printable ASCII characters that sort in the order of the runs, such as an ISO time`;
  throw new InvalidOptionsError(option, slot, allowed);
}

/** Turns a payload into JSON text, and refuses what JSON would drop, change or fail on. */
export function checkData(data: unknown): string | undefined {
  if (data === undefined) return undefined;
  checkJson("data", data, []);
  const text = JSON.stringify(data);
  const bytes = utf8Bytes(text);
  if (bytes > limits.dataBytes) {
    throw new InvalidOptionsError(
      "data",
      `${bytes} bytes of JSON`,
      `at most ${limits.dataBytes} bytes of JSON`,
    );
  }
  return text;
}

function checkJson(path: string, value: unknown, ancestors: readonly object[]): void {
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "number" && Number.isFinite(value)) return;
  if (typeof value !== "object" || ancestors.includes(value)) {
    const allowed =
      "plain JSON values: null, booleans, finite numbers, strings, arrays and objects without cycles";
    throw new InvalidOptionsError(path, value, allowed);
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) {
    throw new InvalidOptionsError(path, value, "plain objects, not instances of a class");
  }
  for (const [name, member] of Object.entries(value))
    checkJson(`${path}.${name}`, member, [...ancestors, value]);
}
