import type { Properties } from "./properties.ts";
import type { JsonObject, ResourceName, RuleSpec, RuleTargetSpec } from "./types.ts";

/** Reads AWS::Events::Rule where it has a pattern; undefined for one that is a schedule, which is not run here. */
export function ruleSpec(name: ResourceName, properties: Properties): RuleSpec | undefined {
  if (!properties.has("EventPattern")) return undefined;
  const pattern = properties.raw("EventPattern");
  return {
    ...name,
    pattern: (typeof pattern === "string" ? JSON.parse(pattern) : pattern) as JsonObject,
    busName: (properties.optionalText("EventBusName") ?? "default").replace(/^.*event-bus\//, ""),
    enabled: !(properties.optionalText("State") ?? "ENABLED").startsWith("DISABLED"),
    targets: properties.objects("Targets").map(targetSpec),
  };
}

function targetSpec(target: Properties): RuleTargetSpec {
  const transformer = target.object("InputTransformer");
  const paths = transformer.object("InputPathsMap");
  const names = Object.keys((transformer.raw("InputPathsMap") ?? {}) as JsonObject);
  return {
    arn: target.text("Arn"),
    input: target.optionalText("Input"),
    inputPath: target.optionalText("InputPath"),
    template: transformer.optionalText("InputTemplate"),
    paths: Object.fromEntries(names.map((name) => [name, paths.text(name)])),
  };
}
