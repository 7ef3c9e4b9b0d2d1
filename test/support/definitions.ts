import type { Template } from "aws-cdk-lib/assertions";

type Json = unknown;

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

/** The names of all states of a definition, those of branches and iterations included. */
export function stateNamesOf(definition: Json): string[] {
  const { States } = definition as { States: Record<string, Fields> };
  return Object.entries(States).flatMap(([name, { Branches, ItemProcessor, Iterator: iterator }]) => {
    const inner = [...((Branches as Json[] | undefined) ?? []), ItemProcessor, iterator];
    return [name, ...inner.filter((graph) => graph !== undefined).flatMap(stateNamesOf)];
  });
}

type Fields = Readonly<Record<string, Json>>;
