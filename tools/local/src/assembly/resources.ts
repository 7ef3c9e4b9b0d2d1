// Reads the resources that are run here, each from its resolved properties.

import { readFileSync } from "node:fs";
import { UnsupportedResourceError } from "./errors.ts";
import type {
  FunctionSpec,
  Json,
  JsonObject,
  RawStack,
  ResourceName,
  RuleSpec,
  RuleTargetSpec,
  ScheduleSpec,
  StateMachineSpec,
  StreamMappingSpec,
  TableSpec,
} from "./types.ts";

/** A resource's resolved properties. What is missing, or cannot be done here, is refused with the resource's name. */
export class Properties {
  readonly #label: string;
  readonly #values: JsonObject;

  constructor(label: string, values: JsonObject) {
    this.#label = label;
    this.#values = values;
  }

  names(): string[] {
    return Object.keys(this.#values);
  }

  raw(name: string): Json | undefined {
    return this.#values[name];
  }

  text(name: string): string {
    return this.optionalText(name) ?? this.unsupported(`${name} is missing`);
  }

  optionalText(name: string): string | undefined {
    const value = this.#values[name];
    return value === undefined ? undefined : String(value);
  }

  optionalNumber(name: string): number | undefined {
    const value = this.#values[name];
    return value === undefined ? undefined : Number(value);
  }

  /** A nested object; empty where there is none. */
  object(name: string): Properties {
    return new Properties(this.#label, (this.#values[name] ?? {}) as JsonObject);
  }

  /** A list of nested objects; empty where there is none. */
  objects(name: string): Properties[] {
    return this.list(name).map((value) => new Properties(this.#label, value as JsonObject));
  }

  list(name: string): readonly Json[] {
    return (this.#values[name] ?? []) as readonly Json[];
  }

  /** The ARN of the queue that takes what failed. */
  onFailureQueue(): string | undefined {
    const arn = this.object("DestinationConfig").object("OnFailure").optionalText("Destination");
    if (arn === undefined || arn.includes(":sqs:")) return arn;
    return this.unsupported(`what failed can go to a queue here, not to ${arn}`);
  }

  /** Refuses properties that would change what happens, and that nothing here reads. */
  refuse(...names: readonly string[]): void {
    const found = names.find((name) => this.#values[name] !== undefined);
    if (found !== undefined) this.unsupported(`${found} is not done here`);
  }

  /** Says what cannot be done here. */
  unsupported(problem: string): never {
    throw new UnsupportedResourceError(this.#label, problem);
  }
}

/** Reads AWS::DynamoDB::Table and AWS::DynamoDB::GlobalTable, which differ in nothing that matters to one region. */
export function tableSpec(name: ResourceName, properties: Properties, streamArn: string): TableSpec {
  properties.refuse("GlobalSecondaryIndexes", "LocalSecondaryIndexes");
  const stream = properties.object("StreamSpecification").optionalText("StreamViewType");
  return {
    ...name,
    attributes: properties.objects("AttributeDefinitions").map((attribute) => ({
      name: attribute.text("AttributeName"),
      type: attribute.text("AttributeType") as "S" | "N" | "B",
    })),
    key: properties.objects("KeySchema").map((part) => ({
      name: part.text("AttributeName"),
      type: part.text("KeyType") as "HASH" | "RANGE",
    })),
    streamViewType: stream,
    streamArn: stream === undefined ? undefined : streamArn,
    timeToLiveAttribute: properties.object("TimeToLiveSpecification").optionalText("AttributeName"),
  };
}

/** Lambda's own defaults. */
const defaults = { timeoutSeconds: 3, memoryMb: 128, asyncRetries: 2 } as const;

/**
 * Reads AWS::Lambda::Function. The code must be a directory of the assembly, or inline.
 *
 * @param retries how often a failed asynchronous invocation is tried again
 */
export function functionSpec(
  name: ResourceName,
  properties: Properties,
  stack: RawStack,
  retries: number = defaults.asyncRetries,
): FunctionSpec {
  properties.refuse("Layers");
  const runtime = properties.optionalText("Runtime");
  if (runtime?.startsWith("nodejs") !== true) {
    return properties.unsupported(`a function can be run here on Node.js only, not on ${runtime}`);
  }
  const code = properties.object("Code");
  const inlineCode = code.optionalText("ZipFile");
  const variables = properties.object("Environment").object("Variables");
  return {
    ...name,
    codeDir: inlineCode === undefined ? assetOf(stack, code, "S3Key") : undefined,
    inlineCode,
    handler: properties.text("Handler"),
    environment: textsOf(variables),
    timeoutMs: (properties.optionalNumber("Timeout") ?? defaults.timeoutSeconds) * 1000,
    memoryMb: properties.optionalNumber("MemorySize") ?? defaults.memoryMb,
    reservedConcurrency: properties.optionalNumber("ReservedConcurrentExecutions"),
    retries,
  };
}

const defaultBatchSize = 100;

/** Reads AWS::Lambda::EventSourceMapping; its source must be the stream of one of the tables. */
export function streamMappingSpec(
  name: ResourceName,
  properties: Properties,
  tables: readonly TableSpec[],
): StreamMappingSpec {
  properties.refuse("MaximumBatchingWindowInSeconds");
  const streamArn = properties.text("EventSourceArn");
  const table = tables.find((candidate) => candidate.streamArn === streamArn);
  if (table === undefined) {
    const text = `only the stream of a table of this assembly can feed a function here, not ${streamArn}`;
    return properties.unsupported(text);
  }
  return {
    ...name,
    streamArn,
    tableName: table.name,
    functionName: properties.text("FunctionName"),
    enabled: properties.raw("Enabled") !== false,
    batchSize: properties.optionalNumber("BatchSize") ?? defaultBatchSize,
    startingPosition: properties.text("StartingPosition") as StreamMappingSpec["startingPosition"],
    filters: properties
      .object("FilterCriteria")
      .objects("Filters")
      .map((filter) => JSON.parse(filter.text("Pattern")) as JsonObject),
    retries: properties.optionalNumber("MaximumRetryAttempts"),
    reportsItemFailures: properties.list("FunctionResponseTypes").includes("ReportBatchItemFailures"),
    onFailureArn: properties.onFailureQueue(),
  };
}

/** Reads AWS::Scheduler::Schedule. */
export function scheduleSpec(name: ResourceName, properties: Properties): ScheduleSpec {
  const target = properties.object("Target");
  return {
    ...name,
    targetArn: target.text("Arn"),
    input: target.optionalText("Input"),
  };
}

/** Reads AWS::Events::Rule. Of events those of Step Functions alone come to rules here; a schedule is not run. */
export function ruleSpec(name: ResourceName, properties: Properties): RuleSpec {
  properties.refuse("ScheduleExpression", "EventBusName");
  const sources = properties.object("EventPattern").list("source");
  if (sources.join() !== "aws.states") {
    return properties.unsupported("a rule gets the events of aws.states here, and no others");
  }
  return {
    ...name,
    pattern: properties.raw("EventPattern") as JsonObject,
    // A disabled rule starts nothing.
    targets:
      properties.optionalText("State") === "DISABLED" ? [] : properties.objects("Targets").map(targetSpec),
  };
}

function targetSpec(target: Properties): RuleTargetSpec {
  target.refuse("Input", "InputPath");
  const transformer = target.object("InputTransformer");
  return {
    arn: target.text("Arn"),
    template: transformer.optionalText("InputTemplate"),
    paths: textsOf(transformer.object("InputPathsMap")),
  };
}

/** Reads AWS::StepFunctions::StateMachine with its definition from wherever the template keeps it. */
export function stateMachineSpec(
  name: ResourceName,
  properties: Properties,
  stack: RawStack,
): StateMachineSpec {
  const substitutions = textsOf(properties.object("DefinitionSubstitutions"));
  const text =
    properties.optionalText("DefinitionString") ??
    readFileSync(assetOf(stack, properties.object("DefinitionS3Location"), "Key"), "utf8");
  const definition = text.replace(
    /\$\{(\w+)\}/g,
    (match, variable: string) => substitutions[variable] ?? match,
  );
  return { ...name, definition };
}

/** The file or the directory of an asset. */
function assetOf(stack: RawStack, location: Properties, name: string): string {
  const key = location.text(name);
  return stack.assets.get(key) ?? location.unsupported(`${key} is not among the assets of the assembly`);
}

function textsOf(properties: Properties): Record<string, string> {
  return Object.fromEntries(properties.names().map((name) => [name, properties.text(name)]));
}
