// CloudFormation's intrinsic functions. One that is not known here is an error, never left as it stands.

import { AssemblyError } from "./errors.ts";
import type { Json, JsonObject } from "./types.ts";

/** What the names in a template stand for. Both throw AssemblyError for a name without a value. */
export interface Scope {
  ref(name: string): string;
  attribute(resource: string, attribute: string): string;
}

/** Resolves every intrinsic function in a value of a template. */
export function resolveIntrinsics(value: Json, scope: Scope): Json {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((element: Json) => resolveIntrinsics(element, scope));
  const members = Object.entries(value as JsonObject);
  const [call, ...others] = members;
  // An object is a call when it has one member, and that is called like a function; `{ "Condition": … }` is not.
  if (call !== undefined && others.length === 0 && (call[0] === "Ref" || call[0].startsWith("Fn::"))) {
    const [name, argument] = call;
    const intrinsic = intrinsics[name];
    if (intrinsic !== undefined) return intrinsic(argument as never, scope);
    const known = Object.keys(intrinsics).join(", ");
    throw new AssemblyError(`${name} has no value here; known are ${known}`);
  }
  return Object.fromEntries(members.map(([name, member]) => [name, resolveIntrinsics(member, scope)]));
}

const intrinsics: Readonly<Record<string, (argument: never, scope: Scope) => string>> = {
  Ref: (name: string, scope) => scope.ref(name),
  "Fn::GetAtt": ([resource, attribute]: readonly [string, string], scope) =>
    scope.attribute(resource, attribute),
  "Fn::Join": ([separator, parts]: readonly [string, Json], scope) =>
    (resolveIntrinsics(parts, scope) as readonly Json[]).map(scalar).join(separator),
  "Fn::Sub": (text: string, scope) =>
    scalar(text).replace(/\$\{([^}]*)\}/g, (_match, name: string) => {
      const [resource = "", ...attribute] = name.split(".");
      return attribute.length === 0 ? scope.ref(resource) : scope.attribute(resource, attribute.join("."));
    }),
};

function scalar(value: Json): string {
  if (value !== null && typeof value !== "object") return String(value);
  throw new AssemblyError("a string, a number or a boolean is wanted");
}
