import { createRequire } from "node:module";
import validate from "asl-validator";
import type { Template } from "aws-cdk-lib/assertions";
import jsonata from "jsonata";

type Json = unknown;

interface SchemaValidator {
  validate(this: SchemaValidator, schema: string, value: Json): boolean;
  errors: unknown;
}

/**
 * asl-validator compiles its schemas anew for every definition, which takes a third of a second. They are always the same
 * ones: those that it has compiled for the first definition judge the others.
 */
const { prototype } = createRequire(createRequire(import.meta.url).resolve("asl-validator"))("ajv")
  .default as { prototype: SchemaValidator };
const { validate: compileAndValidate } = prototype;
let compiled: SchemaValidator | undefined;
prototype.validate = function (schema, value) {
  compiled ??= this;
  const isValid = compileAndValidate.call(compiled, schema, value);
  this.errors = compiled.errors;
  return isValid;
};

/** Every state machine of a template, with stand-ins for what only a deployment knows. */
export function definitionsIn(template: Template): Record<string, Json> {
  const machines = template.findResources("AWS::StepFunctions::StateMachine");
  return Object.fromEntries(
    Object.entries(machines).map(([id, { Properties }]) => [
      id,
      JSON.parse(resolved(Properties.DefinitionString)),
    ]),
  );
}

function resolved(value: Json): string {
  if (typeof value === "string") return value;
  const {
    Ref,
    "Fn::Join": join,
    "Fn::GetAtt": attribute,
  } = value as {
    Ref?: string;
    "Fn::Join"?: [string, Json[]];
    "Fn::GetAtt"?: [string, string];
  };
  if (join !== undefined) return join[1].map(resolved).join(join[0]);
  if (Ref === "AWS::Partition") return "aws";
  if (Ref !== undefined) return Ref.includes("StateMachine") ? arn("states", `stateMachine:${Ref}`) : Ref;
  if (attribute !== undefined) return arn("lambda", `function:${attribute[0]}`);
  throw new Error(`no stand-in for ${JSON.stringify(value)}`);
}

function arn(service: string, resource: string): string {
  return `arn:aws:${service}:us-east-1:123456789012:${resource}`;
}

/** What an independent validator, and the real JSONata parser, find wrong with a definition. */
export function problemsOf(definition: Json): string[] {
  const { isValid, errors } = validate(structuredClone(definition));
  return [
    ...(isValid ? [] : errors.map((error) => JSON.stringify(error))),
    ...jsonataProblems(definition, ""),
  ];
}

function jsonataProblems(value: Json, path: string): string[] {
  if (typeof value === "string") return expressionProblems(value, path);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => jsonataProblems(member, `${path}/${name}`));
}

function expressionProblems(text: string, path: string): string[] {
  const source = /^\{%(.*)%\}$/s.exec(text)?.[1];
  if (source === undefined) return text.includes("{%") ? [`${path}: JSONata inside of text`] : [];
  try {
    jsonata(source);
  } catch (error) {
    return [`${path}: ${(error as Error).message}`];
  }
  // Step Functions refuses what JSONata has gained since.
  return source.includes("??") || source.includes("?:")
    ? [`${path}: an operator that Step Functions refuses`]
    : [];
}

type Fields = Readonly<Record<string, Json>>;

/**
 * What Step Functions refuses about names: two states of one name, wherever they are, and an inner scope that assigns a
 * variable of an outer one. Also names that are too long, or that keep a state out of CloudWatch Logs.
 */
export function nameProblemsOf(definition: Json): string[] {
  return namesIn(definition, new Set(), new Set());
}

function namesIn(graph: Json, names: Set<string>, outer: ReadonlySet<string>): string[] {
  const states = Object.entries((graph as { States: Record<string, Fields> }).States);
  const scope = new Set(outer);
  for (const [, state] of states) for (const variable of assignedBy(state)) scope.add(variable);
  return states.flatMap(([name, state]) => {
    const problems = [
      ...(names.has(name) ? [`two states are called ${name}`] : []),
      ...(/^[\w-]{1,80}$/.test(name) ? [] : [`the state's name ${name} cannot be logged`]),
      ...assignedBy(state)
        .filter((variable) => outer.has(variable))
        .map((variable) => `${name} assigns $${variable} of an outer scope`),
    ];
    names.add(name);
    const inner = [...((state.Branches as Json[] | undefined) ?? []), state.ItemProcessor, state.Iterator];
    return [
      ...problems,
      ...inner.filter((each) => each !== undefined).flatMap((each) => namesIn(each, names, scope)),
    ];
  });
}

function assignedBy(state: Fields): string[] {
  const exits = [state, ...[state.Choices, state.Catch].filter(Array.isArray).flat()] as Fields[];
  return exits.flatMap(({ Assign }) =>
    Object.keys((Assign as Fields) ?? {}).map((name) => name.replace(/\.\$$/, "")),
  );
}
