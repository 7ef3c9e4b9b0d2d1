/**
 * Definitions as files of the assembly. Ten inline definitions of a leased workflow exceed CloudFormation's limit for a
 * template.
 *
 * A value that only the deployment knows is `${Leasehold_1}` in the file, and the template gives the value.
 * CloudFormation replaces these texts before it reads the file as JSON. So workflows with the same settings share one
 * file.
 */
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type IResolveContext, Lazy, Stack, Stage, Token, Tokenization } from "aws-cdk-lib";
import type { Construct } from "constructs";
import type { Definition, Json } from "./asl.ts";

/** A definition in a file, and the values of its placeholders. */
export interface DefinitionFile {
  readonly path: string;
  readonly substitutions: Record<string, string>;
}

/**
 * Returns a text that becomes a placeholder in a definition's file: definitions that differ only in it share one file.
 */
export function leftOpen(text: string): string {
  return Lazy.uncachedString({ produce: () => text });
}

/** Writes a definition to a file of the assembly; the same text is one file. */
export function definitionFile(scope: Construct, definition: Definition): DefinitionFile {
  const { text, substitutions } = withPlaceholders(Stack.of(scope), definition);
  const folder = join(Stage.of(scope)?.assetOutdir ?? "cdk.out", "leasehold-definitions");
  const path = join(folder, `${createHash("sha256").update(text).digest("hex")}.json`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, text);
  return { path, substitutions };
}

function withPlaceholders(
  stack: Stack,
  definition: Definition,
): { readonly text: string; readonly substitutions: Record<string, string> } {
  const substitutions: Record<string, string> = {};
  const names = new Map<unknown, string>();
  /** Names are numbers in the order of appearance, so that the text does not depend on the values. */
  const placeholder = (value: unknown, written: () => string): string => {
    const name = names.get(value) ?? `Leasehold_${names.size + 1}`;
    if (!names.has(value)) {
      names.set(value, name);
      substitutions[name] = written();
    }
    return `\${${name}}`;
  };
  const wholly = (value: unknown): string => placeholder(value, () => stack.toJsonString(value));
  const withinText = (value: string): string => placeholder(value, () => insideQuotes(stack, value));
  const text = (value: string): string => {
    if (!Token.isUnresolved(value)) return JSON.stringify(value);
    const fragments = Tokenization.reverseString(value);
    if (fragments.length === 1 && !isText(stack.resolve(value))) return wholly(value);
    const named = fragments.mapTokens({ mapToken: (token) => withinText(token.toString()) });
    return JSON.stringify(named.join({ join: (left, right) => `${left ?? ""}${right ?? ""}` }));
  };
  const write = (value: unknown): string => {
    if (typeof value === "string") return text(value);
    // A number, a list or an object that only the deployment knows.
    if (Token.isUnresolved(value)) return wholly(value);
    if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
    if (typeof value !== "object" || value === null) return JSON.stringify(value);
    const fields = Object.entries(value).filter(([, field]) => field !== undefined);
    return `{${fields.map(([name, field]) => `${text(name)}:${write(field)}`).join(",")}}`;
  };
  return { text: write(definition), substitutions };
}

/** Whether a token resolves to a text; inside a definition, one of CloudFormation's functions does. */
function isText(resolved: unknown): boolean {
  if (typeof resolved !== "object" || resolved === null) return typeof resolved === "string";
  return Object.keys(resolved).some((name) => name === "Ref" || name.startsWith("Fn::"));
}

/** The value of a token inside a JSON text: escaped, without the quotes. */
function insideQuotes(stack: Stack, token: string): string {
  const produce = (context: IResolveContext): unknown => {
    const written: unknown = context.resolve(stack.toJsonString(token));
    if (typeof written === "string") return written.slice(1, -1);
    const [separator, parts] = (written as { readonly "Fn::Join": [string, readonly Json[]] })["Fn::Join"];
    const inside = parts
      .map((part, index) => (index === 0 && typeof part === "string" ? part.slice(1) : part))
      .map((part, index) =>
        index === parts.length - 1 && typeof part === "string" ? part.slice(0, -1) : part,
      )
      .filter((part) => part !== "");
    return inside.length === 1 ? inside[0] : { "Fn::Join": [separator, inside] };
  };
  return Token.asString(Lazy.uncachedAny({ produce }));
}
