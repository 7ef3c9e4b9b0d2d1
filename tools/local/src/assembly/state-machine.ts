import { readFileSync } from "node:fs";
import type { Properties } from "./properties.ts";
import type { RawStack, ResourceName, StateMachineSpec } from "./types.ts";

/** Reads AWS::StepFunctions::StateMachine with its definition from wherever the template keeps it. */
export function stateMachineSpec(
  name: ResourceName,
  properties: Properties,
  stack: RawStack,
): StateMachineSpec {
  const substitutions = properties.object("DefinitionSubstitutions");
  const definition = definitionText(properties, stack).replace(/\$\{(\w+)\}/g, (match, variable: string) =>
    substitutions.has(variable) ? substitutions.text(variable) : match,
  );
  return { ...name, definition };
}

function definitionText(properties: Properties, stack: RawStack): string {
  if (properties.has("DefinitionString")) return properties.text("DefinitionString");
  if (properties.has("Definition")) return JSON.stringify(properties.raw("Definition"));
  const key = properties.object("DefinitionS3Location").text("Key");
  const file = stack.assets.get(key);
  if (file === undefined) {
    return properties.unsupported(`its definition ${key} is not among the assets of the assembly`);
  }
  return readFileSync(file, "utf8");
}
