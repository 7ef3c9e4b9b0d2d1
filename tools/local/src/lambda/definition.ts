// Checks a function's definition and fills in the defaults.

import { statSync } from "node:fs";
import { resolve } from "node:path";
import { InvalidOptionsError } from "@leasehold/client";
import { defaultVariables, reservedVariables } from "./process-environment.ts";
import type { FunctionDefinition } from "./types.ts";

/** A definition whose every default is filled in. */
export type CheckedFunction = Required<Omit<FunctionDefinition, "reservedConcurrency" | "onAsyncFailure">> &
  Pick<FunctionDefinition, "reservedConcurrency" | "onAsyncFailure">;

const known: readonly (keyof FunctionDefinition)[] = [
  "name",
  "codeDir",
  "handler",
  "environment",
  "timeoutMs",
  "memoryMb",
  "reservedConcurrency",
  "retries",
  "retryDelayMs",
  "maxEventAgeMs",
  "onAsyncFailure",
  "arn",
];

const sixHoursMs = 21_600_000;

/** Fills the defaults in and refuses what cannot work with an InvalidOptionsError. */
export function checkFunction(
  definition: FunctionDefinition,
  baseEnvironment: Readonly<Record<string, string>>,
): CheckedFunction {
  checkOptions(definition, known, "define");
  const { name, handler, environment = {}, reservedConcurrency, onAsyncFailure } = definition;
  checkName(name);
  if (typeof handler !== "string" || handler === "") {
    throw new InvalidOptionsError("handler", handler, "file and export, such as index.handler");
  }
  checkVariables("environment", environment);
  for (const variable of reservedVariables) {
    if (variable in environment) {
      throw new InvalidOptionsError(
        `environment.${variable}`,
        environment[variable],
        "variables that Lambda does not set itself",
      );
    }
  }
  if (onAsyncFailure !== undefined && typeof onAsyncFailure !== "function") {
    throw new InvalidOptionsError("onAsyncFailure", onAsyncFailure, "a function");
  }
  const region = environment.AWS_REGION ?? baseEnvironment.AWS_REGION ?? defaultVariables.AWS_REGION;
  return {
    name,
    codeDir: checkDirectory(definition.codeDir),
    handler,
    environment: { ...environment },
    timeoutMs: wholeNumber("timeoutMs", definition.timeoutMs, 1, 900_000),
    memoryMb: wholeNumber("memoryMb", definition.memoryMb ?? 128, 128, 10_240),
    retries: wholeNumber("retries", definition.retries ?? 2, 0, 2),
    retryDelayMs: wholeNumber("retryDelayMs", definition.retryDelayMs ?? 60_000, 0, sixHoursMs),
    maxEventAgeMs: wholeNumber("maxEventAgeMs", definition.maxEventAgeMs ?? sixHoursMs, 1, sixHoursMs),
    arn: definition.arn ?? `arn:aws:lambda:${region}:000000000000:function:${name}`,
    ...(reservedConcurrency === undefined
      ? {}
      : { reservedConcurrency: wholeNumber("reservedConcurrency", reservedConcurrency, 0, 1_000) }),
    ...(onAsyncFailure === undefined ? {} : { onAsyncFailure }),
  };
}

/** Refuses unknown options. */
export function checkOptions(options: object, names: readonly string[], where: string): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new InvalidOptionsError(where, options, "an object");
  }
  for (const [option, value] of Object.entries(options)) {
    if (!names.includes(option)) {
      throw new InvalidOptionsError(`${where}.${option}`, value, `one of the options ${names.join(", ")}`);
    }
  }
}

/** An environment holds texts and nothing else: a number or an unresolved reference is an error in the template. */
export function checkVariables(option: string, variables: unknown): void {
  if (typeof variables !== "object" || variables === null || Array.isArray(variables)) {
    throw new InvalidOptionsError(option, variables, "an object of strings");
  }
  for (const [name, value] of Object.entries(variables)) {
    if (typeof value !== "string") throw new InvalidOptionsError(`${option}.${name}`, value, "a string");
  }
}

function checkName(name: unknown): void {
  if (typeof name !== "string" || !/^[\w-]{1,255}$/.test(name)) {
    throw new InvalidOptionsError("name", name, "1 to 255 letters, digits, hyphens and underscores");
  }
}

function checkDirectory(codeDir: unknown): string {
  const isDirectory =
    typeof codeDir === "string" && statSync(codeDir, { throwIfNoEntry: false })?.isDirectory();
  if (!isDirectory)
    throw new InvalidOptionsError("codeDir", codeDir, "a directory with the function's bundle");
  return resolve(codeDir as string);
}

function wholeNumber(option: string, value: unknown, min: number, max: number): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < min || value > max) {
    throw new InvalidOptionsError(option, value, `a whole number from ${min} to ${max}`);
  }
  return value;
}
