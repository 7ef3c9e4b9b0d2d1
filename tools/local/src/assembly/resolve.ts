// Turns an assembly into plain data. A resource that is not run here is an error, unless it does nothing on one machine.

import { UnsupportedResourceError } from "./errors.ts";
import {
  functionSpec,
  Properties,
  ruleSpec,
  scheduleSpec,
  stateMachineSpec,
  streamMappingSpec,
  tableSpec,
} from "./resources.ts";
import { StackScope } from "./stack-scope.ts";
import type { AppSpec, Assembly, FunctionSpec, RawStack, ResourceName } from "./types.ts";

/** How an assembly is placed on this machine. */
export interface ResolveOptions {
  /** @default "us-east-1" */
  readonly region?: string;
  /** Added to the name of every table. @default "" */
  readonly tableSuffix?: string;
}

/** A resource, read from its stack. */
interface Located {
  readonly type: string;
  readonly name: ResourceName;
  readonly stack: RawStack;
  readonly properties: Properties;
  /** An attribute of it. */
  readonly attribute: (name: string) => string;
}

/**
 * Resolves an assembly into plain data: what to create, to run, to poll and to fire.
 *
 * Physical names are those of the template, or else `<stack>-<logical id>`, so they are the same in every run. ARNs
 * have AWS's form. Resources without behaviour on one machine, such as roles and alarms, are left out.
 *
 * Throws UnsupportedIntrinsicError and UnsupportedResourceError for what would run differently from what the template
 * says.
 */
export function resolveApp(assembly: Assembly, options: ResolveOptions = {}): AppSpec {
  const { region = "us-east-1", tableSuffix = "" } = options;
  const env = { region, accountId: "123456789012" };
  const scopes = assembly.stacks.map((stack) => new StackScope(stack, env, tableSuffix));
  const located = scopes.flatMap(resourcesIn);
  const each = <Spec>(types: readonly string[], read: (found: Located) => Spec): Spec[] =>
    located.filter(({ type }) => types.includes(type)).map(read);

  const tables = each(["AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"], (found) =>
    tableSpec(found.name, found.properties, found.attribute("StreamArn")),
  );
  return {
    tables,
    functions: functionsOf(each),
    streamMappings: each(["AWS::Lambda::EventSourceMapping"], ({ name, properties }) => {
      const mapping = streamMappingSpec(name, properties, tables);
      return { ...mapping, functionName: functionNameOf(mapping.functionName) };
    }),
    schedules: each(["AWS::Scheduler::Schedule"], ({ name, properties }) => scheduleSpec(name, properties)),
    rules: each(["AWS::Events::Rule"], ({ name, properties }) => ruleSpec(name, properties)),
    stateMachines: each(["AWS::StepFunctions::StateMachine"], ({ name, properties, stack }) =>
      stateMachineSpec(name, properties, stack),
    ),
    queues: each(["AWS::SQS::Queue"], ({ name }) => name),
    outputs: Object.fromEntries(
      scopes.flatMap((scope) =>
        scope.outputs().map(([name, value]) => [`${scope.stack.name}.${name}`, value]),
      ),
    ),
  };
}

/** The function's name from whatever names it: the name, an ARN, or an ARN of a version or an alias. */
export function functionNameOf(nameOrArn: string): string {
  const parts = nameOrArn.split(":");
  const at = parts.indexOf("function");
  return (at === -1 ? parts[0] : parts[at + 1]) ?? nameOrArn;
}

function functionsOf(
  each: <Spec>(types: readonly string[], read: (found: Located) => Spec) => Spec[],
): FunctionSpec[] {
  const retries = new Map(
    each(["AWS::Lambda::EventInvokeConfig"], ({ properties }) => [
      functionNameOf(properties.text("FunctionName")),
      properties.optionalNumber("MaximumRetryAttempts"),
    ]),
  );
  return each(["AWS::Lambda::Function"], ({ name, properties, stack }) =>
    functionSpec(name, properties, stack, retries.get(name.name)),
  );
}

/** The resources of a stack that are run here. */
function resourcesIn(scope: StackScope): Located[] {
  return scope.resources().flatMap(([logicalId, { Type: type, Condition: condition }]) => {
    if (withoutLocalBehaviour.has(type)) return [];
    const label = scope.label(logicalId);
    if (!runHere.has(type)) throw new UnsupportedResourceError(label, `${type} cannot be run here`);
    if (condition !== undefined) {
      throw new UnsupportedResourceError(label, `the condition ${condition} is not judged here`);
    }
    return [
      {
        type,
        name: scope.nameOf(logicalId),
        stack: scope.stack,
        properties: new Properties(label, scope.properties(logicalId)),
        attribute: (name: string) => scope.attribute(logicalId, name, logicalId),
      },
    ];
  });
}

const runHere: ReadonlySet<string> = new Set([
  "AWS::DynamoDB::Table",
  "AWS::DynamoDB::GlobalTable",
  "AWS::Events::Rule",
  "AWS::Lambda::EventInvokeConfig",
  "AWS::Lambda::EventSourceMapping",
  "AWS::Lambda::Function",
  "AWS::SQS::Queue",
  "AWS::Scheduler::Schedule",
  "AWS::StepFunctions::StateMachine",
]);

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
