// Turns an assembly into plain data. A resource that is not run here is an error, unless it does nothing on one machine.

import { readFileSync } from "node:fs";
import { AssemblyError, inPlace } from "./errors.ts";
import { StackScope } from "./stack-scope.ts";
import type {
  AppSpec,
  FunctionSpec,
  Json,
  JsonObject,
  RawStack,
  ResourceName,
  RuleSpec,
  StreamMappingSpec,
  TableProperties,
  TableSpec,
} from "./types.ts";

/** How an assembly is placed on this machine. */
export interface ResolveOptions {
  /** @default "us-east-1" */
  readonly region?: string;
  /** Added to the name of every table. @default "" */
  readonly tableSuffix?: string;
}

/** A resource, read from its stack. */
interface Located<Properties> {
  readonly type: string;
  readonly name: ResourceName;
  readonly stack: RawStack;
  readonly properties: Properties;
  readonly streamArn: string;
}

/** Reads the resources of a type. */
type Each = <Properties, Spec>(type: string, read: (found: Located<Properties>) => Spec) => Spec[];

/**
 * Resolves an assembly into plain data: what to create, to run, to poll and to fire.
 *
 * Physical names are those of the template, or else `<stack>-<logical id>`, so they are the same in every run. ARNs
 * have AWS's form. Resources without behaviour on one machine, such as roles and alarms, are left out.
 *
 * Throws AssemblyError for what would run differently from what the template says.
 */
export function resolveApp(stacks: readonly RawStack[], options: ResolveOptions = {}): AppSpec {
  const { region = "us-east-1", tableSuffix = "" } = options;
  const scopes = stacks.map(
    (stack) => new StackScope(stack, { region, accountId: "123456789012" }, tableSuffix),
  );
  const located = scopes.flatMap(resourcesIn);
  const each: Each = (type, read) =>
    located
      .filter((found) => found.type === type)
      .map((found) => inPlace(placeOf(found.name), () => read(found as never)));

  const tables = each("AWS::DynamoDB::Table", ({ name, properties, streamArn }: Located<TableProperties>) => {
    return { ...name, properties, streamArn: properties.StreamSpecification && streamArn };
  });
  return {
    tables,
    functions: functionsOf(each),
    streamMappings: each("AWS::Lambda::EventSourceMapping", (found: Located<MappingProperties>) =>
      streamMappingSpec(found, tables),
    ),
    schedules: each("AWS::Scheduler::Schedule", ({ name, properties }: Located<ScheduleProperties>) => {
      const { Arn: targetArn, Input: input } = properties.Target;
      return { ...name, targetArn, input };
    }),
    rules: each("AWS::Events::Rule", ruleSpec),
    stateMachines: each("AWS::StepFunctions::StateMachine", (found: Located<MachineProperties>) => ({
      ...found.name,
      definition: definitionOf(found),
    })),
    queues: each("AWS::SQS::Queue", ({ name }) => name),
    outputs: Object.fromEntries(scopes.flatMap((scope) => scope.outputs())),
  };
}

/** The function's name from whatever names it: the name, an ARN, or an ARN of a version or an alias. */
export function functionNameOf(nameOrArn: string): string {
  const parts = nameOrArn.split(":");
  const at = parts.indexOf("function");
  return (at === -1 ? parts[0] : parts[at + 1]) ?? nameOrArn;
}

/** The resources of a stack that are run here. */
function resourcesIn(scope: StackScope): Located<JsonObject>[] {
  return scope.resources().flatMap(([logicalId, { Type, Condition: condition }]) => {
    if (withoutLocalBehaviour.has(Type)) return [];
    // The two differ in nothing that matters to one region.
    const type = Type.replace("::GlobalTable", "::Table");
    const { stack } = scope;
    return inPlace(placeOf({ stack: stack.name, logicalId }), () => {
      const refused = runHere[type];
      if (refused === undefined) throw new AssemblyError(`${type} cannot be run here`);
      if (condition !== undefined) throw new AssemblyError(`the condition ${condition} is not judged here`);
      const properties = scope.properties(logicalId);
      const found = refused.find((name) => properties[name] !== undefined);
      if (found !== undefined) throw new AssemblyError(`${found} is not done here`);
      const name = scope.nameOf(logicalId);
      return [{ type, name, stack, properties, streamArn: scope.attribute(logicalId, "StreamArn") }];
    });
  });
}

function placeOf({ stack, logicalId }: Pick<ResourceName, "stack" | "logicalId">): string {
  return `${stack}/${logicalId}`;
}

/** The types that are run here, each with the properties that would change what happens, and that nothing reads. */
const runHere: Readonly<Record<string, readonly string[]>> = {
  "AWS::DynamoDB::Table": ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"],
  "AWS::Events::Rule": ["ScheduleExpression", "EventBusName"],
  "AWS::Lambda::EventInvokeConfig": [],
  "AWS::Lambda::EventSourceMapping": ["MaximumBatchingWindowInSeconds"],
  "AWS::Lambda::Function": ["Layers"],
  "AWS::SQS::Queue": [],
  "AWS::Scheduler::Schedule": [],
  "AWS::StepFunctions::StateMachine": [],
};

/**
 * Types whose resources do nothing that an app on one machine could miss: permissions, observation, and names for
 * things that are handled elsewhere.
 */
const withoutLocalBehaviour: ReadonlySet<string> = new Set([
  "AWS::CDK::Metadata",
  "AWS::CloudWatch::Alarm",
  "AWS::CloudWatch::Dashboard",
  "AWS::IAM::Policy",
  "AWS::IAM::Role",
  "AWS::Lambda::Alias",
  "AWS::Lambda::Permission",
  "AWS::Lambda::Version",
  "AWS::Logs::LogGroup",
  "AWS::Logs::MetricFilter",
  "AWS::SQS::QueuePolicy",
]);

interface FunctionProperties {
  readonly Runtime?: string;
  readonly Code: { readonly ZipFile?: string; readonly S3Key?: string };
  readonly Handler: string;
  readonly Environment?: { readonly Variables?: JsonObject };
  readonly Timeout?: number;
  readonly MemorySize?: number;
  readonly ReservedConcurrentExecutions?: number;
}

interface InvokeConfigProperties {
  readonly FunctionName: string;
  readonly MaximumRetryAttempts?: number;
}

/** Functions, with Lambda's own defaults. The code must be a directory of the assembly, or inline. */
function functionsOf(each: Each): FunctionSpec[] {
  const retries = new Map(
    each("AWS::Lambda::EventInvokeConfig", ({ properties }: Located<InvokeConfigProperties>) => [
      functionNameOf(properties.FunctionName),
      properties.MaximumRetryAttempts,
    ]),
  );
  return each("AWS::Lambda::Function", ({ name, properties, stack }: Located<FunctionProperties>) => {
    const { Runtime, Code, Handler, Environment, Timeout = 3, MemorySize = 128 } = properties;
    if (!Runtime?.startsWith("nodejs")) {
      throw new AssemblyError(`a function can be run here on Node.js only, not on ${Runtime}`);
    }
    return {
      ...name,
      codeDir: Code.ZipFile === undefined ? assetOf(stack, Code.S3Key) : undefined,
      inlineCode: Code.ZipFile,
      handler: Handler,
      environment: textsOf(Environment?.Variables),
      timeoutMs: Timeout * 1000,
      memoryMb: MemorySize,
      reservedConcurrency: properties.ReservedConcurrentExecutions,
      retries: retries.get(name.name) ?? 2,
    };
  });
}

interface MappingProperties {
  readonly EventSourceArn: string;
  readonly FunctionName: string;
  readonly Enabled?: boolean;
  readonly BatchSize?: number;
  readonly StartingPosition: StreamMappingSpec["startingPosition"];
  readonly FilterCriteria?: { readonly Filters?: readonly { readonly Pattern: string }[] };
  readonly MaximumRetryAttempts?: number;
  readonly FunctionResponseTypes?: readonly string[];
  readonly DestinationConfig?: { readonly OnFailure?: { readonly Destination?: string } };
}

/** The source of a mapping must be the stream of one of the tables, and a queue takes what failed. */
function streamMappingSpec(
  { name, properties }: Located<MappingProperties>,
  tables: readonly TableSpec[],
): StreamMappingSpec {
  const { EventSourceArn: streamArn, DestinationConfig, FilterCriteria } = properties;
  const table = tables.find((candidate) => candidate.streamArn === streamArn);
  if (table === undefined) {
    throw new AssemblyError(
      `only the stream of a table of this assembly can feed a function here, not ${streamArn}`,
    );
  }
  return {
    ...name,
    streamArn,
    tableName: table.name,
    functionName: functionNameOf(properties.FunctionName),
    enabled: properties.Enabled !== false,
    batchSize: properties.BatchSize ?? 100,
    startingPosition: properties.StartingPosition,
    filters: (FilterCriteria?.Filters ?? []).map(({ Pattern }) => JSON.parse(Pattern) as JsonObject),
    retries: properties.MaximumRetryAttempts,
    reportsItemFailures: properties.FunctionResponseTypes?.includes("ReportBatchItemFailures") ?? false,
    onFailureArn: DestinationConfig?.OnFailure?.Destination,
  };
}

interface ScheduleProperties {
  readonly Target: { readonly Arn: string; readonly Input: string | undefined };
}

interface RuleProperties {
  readonly EventPattern: JsonObject;
  readonly State?: string;
  readonly Targets: readonly {
    readonly Arn: string;
    readonly Input?: string;
    readonly InputPath?: string;
    readonly InputTransformer?: { readonly InputTemplate: string; readonly InputPathsMap?: JsonObject };
  }[];
}

/** Of events those of Step Functions alone come to rules here; a schedule is not run. A disabled rule starts nothing. */
function ruleSpec({ name, properties }: Located<RuleProperties>): RuleSpec {
  const { EventPattern: pattern, State, Targets } = properties;
  if (String(pattern.source) !== "aws.states") {
    throw new AssemblyError("a rule gets the events of aws.states here, and no others");
  }
  const targets = Targets.map(({ Arn: arn, Input, InputPath, InputTransformer }) => {
    if ((Input ?? InputPath) !== undefined) throw new AssemblyError("Input and InputPath are not done here");
    const { InputTemplate: template, InputPathsMap } = InputTransformer ?? {};
    return { arn, template, paths: textsOf(InputPathsMap) };
  });
  return { ...name, pattern, targets: State === "DISABLED" ? [] : targets };
}

interface MachineProperties {
  readonly DefinitionSubstitutions?: JsonObject;
  readonly DefinitionString?: string;
  readonly DefinitionS3Location?: { readonly Key: string };
}

/** The definition of a state machine, from wherever the template keeps it. */
function definitionOf({ properties, stack }: Located<MachineProperties>): string {
  const substitutions = textsOf(properties.DefinitionSubstitutions);
  const text =
    properties.DefinitionString ?? readFileSync(assetOf(stack, properties.DefinitionS3Location?.Key), "utf8");
  return text.replace(/\$\{(\w+)\}/g, (match, variable: string) => substitutions[variable] ?? match);
}

/** The file or the directory of an asset. */
function assetOf(stack: RawStack, key = ""): string {
  const asset = stack.assets.get(key);
  if (asset !== undefined) return asset;
  throw new AssemblyError(`${key} is not among the assets of the assembly`);
}

function textsOf(values: JsonObject = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]: [string, Json]) => [name, String(value)]),
  );
}
