// CloudFormation's intrinsic functions. One that is not known here is an error, never left as it stands.

import { UnsupportedIntrinsicError } from "./errors.ts";
import type { Json, JsonObject } from "./types.ts";

/** What the names in a template stand for. Every method throws UnsupportedIntrinsicError for a name without a value. */
export interface Scope {
  /** `undefined` stands for AWS::NoValue. */
  ref(name: string, where: string): Json | undefined;
  attribute(resource: string, attribute: string, where: string): Json;
}

type Intrinsic = (argument: Json, scope: Scope, where: string) => Json | undefined;

/**
 * Resolves every intrinsic function in a value of a template.
 *
 * Gives undefined for AWS::NoValue; a property or an element that resolves to it is left out.
 */
export function resolveIntrinsics(value: Json, scope: Scope, where: string): Json | undefined {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) {
    return value
      .map((element: Json, index) => resolveIntrinsics(element, scope, `${where}[${index}]`))
      .filter((element) => element !== undefined);
  }
  const object = value as JsonObject;
  const call = intrinsicOf(object);
  if (call !== undefined) {
    const intrinsic = intrinsics.get(call.name);
    if (intrinsic === undefined) {
      const known = [...intrinsics.keys()].join(", ");
      throw new UnsupportedIntrinsicError(where, `${call.name} has no value here; known are ${known}`);
    }
    return intrinsic(call.argument, scope, where);
  }
  const resolved: Record<string, Json> = {};
  for (const [name, member] of Object.entries(object)) {
    const result = resolveIntrinsics(member, scope, `${where}.${name}`);
    if (result !== undefined) resolved[name] = result;
  }
  return resolved;
}

/** An object is a call when it has one member, and that is called like a function; `{ "Condition": … }` is not. */
function intrinsicOf(object: JsonObject): { readonly name: string; readonly argument: Json } | undefined {
  const [entry, ...others] = Object.entries(object);
  if (entry === undefined || others.length > 0) return undefined;
  const [name, argument] = entry;
  return name === "Ref" || name.startsWith("Fn::") ? { name, argument } : undefined;
}

const intrinsics: ReadonlyMap<string, Intrinsic> = new Map<string, Intrinsic>([
  ["Ref", (argument, scope, where) => scope.ref(text(argument, where), where)],
  ["Fn::GetAtt", getAtt],
  ["Fn::Join", join],
  ["Fn::Sub", substitute],
  ["Fn::Select", select],
  ["Fn::Split", split],
]);

function getAtt(argument: Json, scope: Scope, where: string): Json {
  const [resource, ...attribute] =
    typeof argument === "string" ? argument.split(".") : strings(argument, scope, where);
  return scope.attribute(resource ?? "", attribute.join("."), where);
}

function join(argument: Json, scope: Scope, where: string): Json {
  const [separator, parts] = list(argument, where);
  return strings(parts ?? null, scope, where).join(text(separator ?? null, where));
}

function substitute(argument: Json, scope: Scope, where: string): Json {
  const [template, variables] = typeof argument === "string" ? [argument, {}] : list(argument, where);
  const own = object(resolveIntrinsics(variables ?? {}, scope, where) ?? {}, where);
  return text(template ?? null, where).replace(
    /\$\{(!?)([^}]*)\}/g,
    (_match, literal: string, name: string) => {
      if (literal) return `\${${name}}`;
      if (Object.hasOwn(own, name)) return scalar(own[name], where);
      const [resource, ...attribute] = name.trim().split(".");
      const value =
        attribute.length === 0
          ? scope.ref(resource ?? "", where)
          : scope.attribute(resource ?? "", attribute.join("."), where);
      return scalar(value, where);
    },
  );
}

function select(argument: Json, scope: Scope, where: string): Json {
  const [index, choices] = list(argument, where);
  const from = list(resolveIntrinsics(choices ?? null, scope, where) ?? null, where);
  const chosen = from[Number(resolveIntrinsics(index ?? null, scope, where))];
  if (chosen === undefined) {
    throw new UnsupportedIntrinsicError(where, `Fn::Select has no element ${String(index)} to take`);
  }
  return chosen;
}

function split(argument: Json, scope: Scope, where: string): Json {
  const [separator, value] = list(argument, where);
  return string(value ?? null, scope, where).split(text(separator ?? null, where));
}

function list(value: Json, where: string): readonly Json[] {
  if (!Array.isArray(value)) throw new UnsupportedIntrinsicError(where, "a list is wanted");
  return value as readonly Json[];
}

function object(value: Json, where: string): JsonObject {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new UnsupportedIntrinsicError(where, "an object is wanted");
  }
  return value as JsonObject;
}

function text(value: Json, where: string): string {
  if (typeof value !== "string") throw new UnsupportedIntrinsicError(where, "a string is wanted");
  return value;
}

function scalar(value: Json | undefined, where: string): string {
  if (value === undefined || value === null || typeof value === "object") {
    throw new UnsupportedIntrinsicError(where, "a string, a number or a boolean is wanted");
  }
  return String(value);
}

function string(value: Json, scope: Scope, where: string): string {
  return scalar(resolveIntrinsics(value, scope, where), where);
}

function strings(value: Json, scope: Scope, where: string): string[] {
  const resolved = list(resolveIntrinsics(value, scope, where) ?? null, where);
  return resolved.map((element) => scalar(element, where));
}
