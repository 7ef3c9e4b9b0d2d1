// Refuses wrong options by name before anything is looked for or started.

import { InvalidEngineOptionError } from "./errors.ts";
import type { EngineOptions } from "./types.ts";

const allowedValues: Readonly<
  Record<keyof EngineOptions, readonly [allowed: string, isAllowed: (value: unknown) => boolean]>
> = {
  engine: ["dynamodb-local, dynoxide", (value) => value === "dynamodb-local" || value === "dynoxide"],
  port: [
    "a whole number from 0 to 65535",
    (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 65_535,
  ],
  dataDir: [
    "the path of a folder",
    (value) => typeof value === "string" && value !== "" && !value.includes("\0"),
  ],
  env: ["an object of environment variables", (value) => typeof value === "object" && value !== null],
  signal: ["an AbortSignal", (value) => value instanceof AbortSignal],
};

/** Returns the options, each read once. Throws InvalidEngineOptionError. */
export function checkEngineOptions(options: EngineOptions): EngineOptions {
  if (typeof options !== "object" || options === null)
    throw new InvalidEngineOptionError("options", "an object");
  const given: Record<string, unknown> = {};
  for (const [name, [allowed, isAllowed]] of Object.entries(allowedValues)) {
    try {
      const value = options[name as keyof EngineOptions];
      if (value === undefined) continue;
      if (!isAllowed(value)) throw new InvalidEngineOptionError(name, allowed);
      given[name] = value;
    } catch (error) {
      if (error instanceof InvalidEngineOptionError) throw error;
      throw new InvalidEngineOptionError(name, allowed, { cause: error });
    }
  }
  return given as EngineOptions;
}
