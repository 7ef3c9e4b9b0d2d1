// Patterns of event source mappings and of EventBridge's rules, compiled once.

import type { Json, JsonObject } from "../assembly/types.ts";

/** A filter pattern uses an operator that is not known here; the message lists the known ones. */
export class UnsupportedFilterError extends Error {
  constructor(pattern: string, problem: string) {
    super(
      `${problem}, in the filter pattern ${pattern}. Known are ${operators.join(", ")} and lists of values.`,
    );
    this.name = "UnsupportedFilterError";
  }
}

/** Tells whether an event passes a filter. */
export type Filter = (event: unknown) => boolean;

type Test = (value: unknown) => boolean;

const operators = ["exists", "prefix", "numeric"] as const;

/**
 * Compiles the filters of an event source mapping, or the pattern of an EventBridge rule: one of the patterns must
 * match; no patterns let everything pass.
 *
 * Throws UnsupportedFilterError for an operator that is not known here, before any event is judged.
 */
export function compileFilters(patterns: readonly JsonObject[]): Filter {
  const filters = patterns.map((pattern) => compileObject(pattern, JSON.stringify(pattern)));
  return (event) => filters.length === 0 || filters.some((filter) => filter(event));
}

function compileObject(pattern: JsonObject, source: string): Filter {
  const parts = Object.entries(pattern).map(([name, rule]) => compileField(name, rule, source));
  return (event) => parts.every((part) => part(event));
}

function compileField(name: string, rule: Json, source: string): Filter {
  if (Array.isArray(rule)) {
    const tests = rule.map((one: Json) => compileTest(one, source));
    return (event) => valuesOf(fieldOf(event, name)).some((value) => tests.some((test) => test(value)));
  }
  const inner = compileObject(objectOf(rule, source), source);
  return (event) => inner(fieldOf(event, name));
}

/** A list matches where one of its elements does; a missing field is tested as undefined. */
function valuesOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function compileTest(rule: Json, source: string): Test {
  if (rule === null || typeof rule !== "object") return (value) => value === rule;
  const [entry, ...others] = Object.entries(objectOf(rule, source));
  if (entry === undefined || others.length > 0) {
    throw new UnsupportedFilterError(source, "a test must have one operator");
  }
  const [operator, operand] = entry;
  switch (operator) {
    case "exists":
      return (value) => isLeaf(value) === operand;
    case "prefix":
      return prefix(operand, source);
    case "numeric":
      return numeric(operand, source);
  }
  throw new UnsupportedFilterError(source, `the operator ${operator} is not known here`);
}

/** `exists` is about leaves: an object has none of its own. */
function isLeaf(value: unknown): boolean {
  return value !== undefined && (value === null || typeof value !== "object");
}

function prefix(operand: Json, source: string): Test {
  if (typeof operand !== "string") throw new UnsupportedFilterError(source, "a text is wanted");
  return (value) => typeof value === "string" && value.startsWith(operand);
}

function numeric(operand: Json, source: string): Test {
  const [sign, bound] = Array.isArray(operand) ? (operand as readonly Json[]) : [];
  if (!Array.isArray(operand) || operand.length !== 2 || sign !== ">" || typeof bound !== "number") {
    throw new UnsupportedFilterError(source, `numeric knows no comparison ${JSON.stringify(operand)}`);
  }
  // As on AWS, it never matches a number of DynamoDB's: in the wire form that is a text.
  return (value) => typeof value === "number" && value > bound;
}

function fieldOf(event: unknown, name: string): unknown {
  return typeof event === "object" && event !== null && Object.hasOwn(event, name)
    ? (event as Record<string, unknown>)[name]
    : undefined;
}

function objectOf(value: Json, source: string): JsonObject {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return value as JsonObject;
  throw new UnsupportedFilterError(source, "a field needs a list of tests or an object");
}
