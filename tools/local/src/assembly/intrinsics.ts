// CloudFormation's intrinsic functions. One that is not known here is an error, never left as it stands.

import { UnsupportedIntrinsicError } from "./errors.ts";
import type { Json, JsonObject } from "./types.ts";

/** What the names in a template stand for. Every method throws UnsupportedIntrinsicError for a name without a value. */
export interface Scope {
  ref(name: string, where: string): string;
  attribute(resource: string, attribute: string, where: string): string;
}

type Intrinsic = (argument: Json, scope: Scope, where: string) => string;

/** Resolves every intrinsic function in a value of a template. */
export function resolveIntrinsics(value: Json, scope: Scope, where: string): Json {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) {
    return value.map((element: Json, index) => resolveIntrinsics(element, scope, `${where}[${index}]`));
  }
  const members = Object.entries(value as JsonObject);
  const [call, ...others] = members;
  // An object is a call when it has one member, and that is called like a function; `{ "Condition": … }` is not.
  if (call !== undefined && others.length === 0 && (call[0] === "Ref" || call[0].startsWith("Fn::"))) {
    const [name, argument] = call;
    const intrinsic = intrinsics.get(name);
    if (intrinsic !== undefined) return intrinsic(argument, scope, where);
    const known = [...intrinsics.keys()].join(", ");
    throw new UnsupportedIntrinsicError(where, `${name} has no value here; known are ${known}`);
  }
  return Object.fromEntries(
    members.map(([name, member]) => [name, resolveIntrinsics(member, scope, `${where}.${name}`)]),
  );
}

const intrinsics: ReadonlyMap<string, Intrinsic> = new Map<string, Intrinsic>([
  ["Ref", (argument, scope, where) => scope.ref(scalar(argument, where), where)],
  ["Fn::GetAtt", getAtt],
  ["Fn::Join", join],
  ["Fn::Sub", substitute],
]);

function getAtt(argument: Json, scope: Scope, where: string): string {
  const [resource, attribute] = list(argument, where);
  return scope.attribute(scalar(resource, where), scalar(attribute, where), where);
}

function join(argument: Json, scope: Scope, where: string): string {
  const [separator, parts] = list(argument, where);
  const resolved = list(resolveIntrinsics(parts ?? null, scope, where), where);
  return resolved.map((part) => scalar(part, where)).join(scalar(separator, where));
}

function substitute(argument: Json, scope: Scope, where: string): string {
  return scalar(argument, where).replace(/\$\{([^}]*)\}/g, (_match, name: string) => {
    const [resource = "", ...attribute] = name.split(".");
    return attribute.length === 0
      ? scope.ref(resource, where)
      : scope.attribute(resource, attribute.join("."), where);
  });
}

function list(value: Json, where: string): readonly Json[] {
  if (!Array.isArray(value)) throw new UnsupportedIntrinsicError(where, "a list is wanted");
  return value as readonly Json[];
}

function scalar(value: Json | undefined, where: string): string {
  if (value === undefined || value === null || typeof value === "object") {
    throw new UnsupportedIntrinsicError(where, "a string, a number or a boolean is wanted");
  }
  return String(value);
}
