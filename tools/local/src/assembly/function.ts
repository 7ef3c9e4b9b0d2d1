// Reads AWS::Lambda::Function, with AWS::Lambda::EventInvokeConfig.

import type { Properties } from "./properties.ts";
import type { FunctionSpec, RawStack, ResourceName } from "./types.ts";

/** Lambda's own defaults. */
const defaults = { timeoutSeconds: 3, memoryMb: 128, asyncRetries: 2 } as const;

/** What AWS::Lambda::EventInvokeConfig says about a function's asynchronous invocations. */
export interface InvokeConfig {
  readonly retries: number | undefined;
  readonly onFailureArn: string | undefined;
}

/** Reads AWS::Lambda::Function. The code must be a directory of the assembly, or inline. */
export function functionSpec(
  name: ResourceName,
  properties: Properties,
  stack: RawStack,
  invokeConfig: InvokeConfig | undefined,
): FunctionSpec {
  const runtime = properties.optionalText("Runtime");
  if (properties.optionalText("PackageType") === "Image" || runtime === undefined) {
    return properties.unsupported("a function from a container image cannot be run here");
  }
  if (!runtime.startsWith("nodejs")) {
    return properties.unsupported(`a function can be run here on Node.js only, not on ${runtime}`);
  }
  if (properties.list("Layers").length > 0) {
    return properties.unsupported("layers are not unpacked here: bundle what the function needs");
  }
  const code = properties.object("Code");
  const variables = properties.object("Environment").object("Variables");
  return {
    ...name,
    codeDir: codeDirectory(properties, code, stack),
    inlineCode: code.optionalText("ZipFile"),
    handler: properties.text("Handler"),
    environment: environmentOf(variables, properties),
    timeoutMs: (properties.optionalNumber("Timeout") ?? defaults.timeoutSeconds) * 1000,
    memoryMb: properties.optionalNumber("MemorySize") ?? defaults.memoryMb,
    reservedConcurrency: properties.optionalNumber("ReservedConcurrentExecutions"),
    retries: invokeConfig?.retries ?? defaults.asyncRetries,
    onFailureArn: invokeConfig?.onFailureArn,
  };
}

/** Reads AWS::Lambda::EventInvokeConfig. */
export function invokeConfigOf(properties: Properties): InvokeConfig {
  return {
    retries: properties.optionalNumber("MaximumRetryAttempts"),
    onFailureArn: properties.onFailureQueue(),
  };
}

function codeDirectory(properties: Properties, code: Properties, stack: RawStack): string | undefined {
  if (code.has("ZipFile")) return undefined;
  const key = code.text("S3Key");
  const directory = stack.assets.get(key);
  if (directory === undefined) {
    return properties.unsupported(`its code ${key} is not among the assets of the assembly`);
  }
  if (directory.endsWith(".zip")) {
    return properties.unsupported(`its code ${key} is an archive; give the asset as a directory`);
  }
  return directory;
}

function environmentOf(variables: Properties, properties: Properties): Record<string, string> {
  const values = properties.object("Environment").raw("Variables") ?? {};
  return Object.fromEntries(Object.keys(values as object).map((name) => [name, variables.text(name)]));
}
