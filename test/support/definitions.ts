import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { definitionProblems } from "@leasehold/local/definitions";
import type { Template } from "aws-cdk-lib/assertions";
import { withStandIns } from "./cloudformation.ts";

type Json = unknown;

/** Every state machine of a template, with stand-ins for what only a deployment knows. */
export function definitionsIn(template: Template): Record<string, Json> {
  const machines = template.findResources("AWS::StepFunctions::StateMachine");
  const ids = new Set(Object.keys(machines));
  return Object.fromEntries(
    Object.entries(machines).map(([id, { Properties }]) => [id, JSON.parse(definitionText(Properties, ids))]),
  );
}

const judged = new Map<string, readonly string[]>();

/** What a validator finds in the state machines of a template. Each definition is asked about once: it takes 0.1 s. */
export function problemsIn(template: Template): string[] {
  return Object.values(definitionsIn(template)).flatMap((definition) => {
    const text = JSON.stringify(definition);
    const problems = judged.get(text) ?? definitionProblems(definition);
    judged.set(text, problems);
    return problems;
  });
}

/** The text of a definition, in the template or among the files of an app in a temporary folder. */
function definitionText(properties: Fields, machines: ReadonlySet<string>): string {
  const text = properties.DefinitionString ?? { "Fn::Join": ["", definitionParts(properties)] };
  return String(
    withStandIns(text, (id, attribute) => {
      if (attribute !== undefined) return arn("lambda", `function:${id}`);
      if (id === "AWS::Partition") return "aws";
      return machines.has(id) ? arn("states", `stateMachine:${id}`) : id;
    }),
  );
}

/** The resources of a template as they would be with the definitions of state machines inside. */
export function withDefinitions<Resources extends Record<string, ResourceOf | undefined>>(
  resources: Resources,
  folder?: string,
): Resources {
  const inside = Object.entries(resources).map(([id, resource]) => {
    if (resource?.Properties.DefinitionS3Location === undefined) return [id, resource];
    const { DefinitionS3Location, DefinitionSubstitutions, ...Properties } = resource.Properties;
    const parts = definitionParts({ DefinitionS3Location, DefinitionSubstitutions }, folder);
    return [
      id,
      { ...resource, Properties: { ...Properties, DefinitionString: { "Fn::Join": ["", parts] } } },
    ];
  });
  return Object.fromEntries(inside);
}

interface ResourceOf {
  readonly Type: string;
  readonly Properties: Record<string, unknown>;
}

/** The text of a definition's file, and what the template says of its placeholders between it. */
function definitionParts(
  { DefinitionS3Location, DefinitionSubstitutions = {} }: Fields,
  folder?: string,
): Json[] {
  const values = DefinitionSubstitutions as Record<string, Json>;
  const text = definitionFile((DefinitionS3Location as { readonly Key: string }).Key, folder);
  return text
    .split(/\$\{(\w+)\}/)
    .map((part, index) => (index % 2 === 0 ? part : (values[part] ?? `\${${part}}`)));
}

const files = new Map<string, string>();

/** Its name is the hash of what it contains: a file of that name has it, whatever app has written it. */
function definitionFile(key: string, folder?: string): string {
  const known = files.get(key);
  if (known !== undefined) return known;
  const folders = folder === undefined ? readdirSync(tmpdir()).map((name) => join(tmpdir(), name)) : [folder];
  const path = folders.map((name) => join(name, `asset.${key}`)).find((name) => existsSync(name));
  if (path === undefined) throw new Error(`no app in ${folder ?? tmpdir()} has the file ${key}`);
  const text = readFileSync(path, "utf8");
  files.set(key, text);
  return text;
}

function arn(service: string, resource: string): string {
  return `arn:aws:${service}:us-east-1:123456789012:${resource}`;
}

type Fields = Readonly<Record<string, Json>>;

/** The first state of that name, however deep. */
export function stateNamed(name: string, value: Json): Json {
  if (typeof value !== "object" || value === null) return undefined;
  const inside = Object.values(value).map((one) => stateNamed(name, one));
  return (value as Fields)[name] ?? inside.find((found) => found !== undefined);
}
