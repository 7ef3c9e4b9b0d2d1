// What the names in one stack's template stand for. Physical names and ARNs have AWS's form, and are the same in every run.

import { AssemblyError, inPlace } from "./errors.ts";
import { resolveIntrinsics, type Scope } from "./intrinsics.ts";
import type { Json, JsonObject, RawResource, RawStack, ResourceName } from "./types.ts";

/** Where the resources pretend to be. */
export interface StackEnv {
  readonly region: string;
  readonly accountId: string;
}

/** How the resources of one type are named. */
interface Naming {
  /** What the ARN has as its service, and what is before the name in its last part. */
  readonly arn: readonly [service: string, prefix: string];
  /** The property that sets the physical name. */
  readonly property?: string;
}

const table: Naming = { arn: ["dynamodb", "table/"], property: "TableName" };

const namings: Readonly<Record<string, Naming>> = {
  "AWS::DynamoDB::Table": table,
  "AWS::DynamoDB::GlobalTable": table,
  "AWS::Lambda::Function": { arn: ["lambda", "function:"], property: "FunctionName" },
  "AWS::StepFunctions::StateMachine": { arn: ["states", "stateMachine:"], property: "StateMachineName" },
  "AWS::SQS::Queue": { arn: ["sqs", ""], property: "QueueName" },
  "AWS::Scheduler::Schedule": { arn: ["scheduler", "schedule/default/"], property: "Name" },
  "AWS::Events::Rule": { arn: ["events", "rule/"], property: "Name" },
};

/** Every table's stream has the same label: the engine's own would differ from run to run. */
const streamLabel = "2026-01-01T00:00:00.000";

const versions: readonly string[] = ["AWS::Lambda::Version", "AWS::Lambda::Alias"];
/** Their Ref is their ARN. */
const knownByArn: readonly string[] = ["AWS::StepFunctions::StateMachine", ...versions];

/** The names of one stack and what they stand for. */
export class StackScope implements Scope {
  readonly stack: RawStack;
  readonly #env: StackEnv;
  readonly #tableSuffix: string;

  constructor(stack: RawStack, env: StackEnv, tableSuffix: string) {
    this.stack = stack;
    this.#env = env;
    this.#tableSuffix = tableSuffix;
  }

  resources(): [logicalId: string, resource: RawResource][] {
    return Object.entries(this.stack.template.Resources ?? {});
  }

  /** A resource's properties, resolved. */
  properties(logicalId: string): JsonObject {
    return resolveIntrinsics(this.#resource(logicalId).Properties ?? {}, this) as JsonObject;
  }

  /** All names of a resource. */
  nameOf(logicalId: string): ResourceName {
    return {
      stack: this.stack.name,
      logicalId,
      path: this.stack.paths.get(logicalId),
      name: this.#nameOf(logicalId),
      arn: this.attribute(logicalId, "Arn"),
    };
  }

  /** The outputs' values, as `<stack>.<output>`. */
  outputs(): [name: string, value: Json][] {
    return Object.entries(this.stack.template.Outputs ?? {}).map(([name, { Value = null }]) => {
      const full = `${this.stack.name}.${name}`;
      return [full, inPlace(full, () => resolveIntrinsics(Value, this))];
    });
  }

  ref(name: string): string {
    const { region, accountId } = this.#env;
    switch (name) {
      case "AWS::Region":
        return region;
      case "AWS::AccountId":
        return accountId;
      case "AWS::Partition":
        return "aws";
    }
    const { Type } = this.#resource(name);
    if (knownByArn.includes(Type)) return this.attribute(name, "Arn");
    const physicalName = this.#nameOf(name);
    if (Type !== "AWS::SQS::Queue") return physicalName;
    return `https://sqs.${region}.amazonaws.com/${accountId}/${physicalName}`;
  }

  attribute(logicalId: string, attribute: string): string {
    const resource = this.#resource(logicalId);
    if (attribute === "Arn" && versions.includes(resource.Type)) return this.#arnOfVersion(resource);
    const [service, prefix] = namingOf(resource).arn;
    const arn = this.#arn(service, `${prefix}${this.#nameOf(logicalId)}`);
    if (attribute === "Arn") return arn;
    if (attribute === "StreamArn") return `${arn}/stream/${streamLabel}`;
    throw new AssemblyError(
      `the attribute ${attribute} of ${logicalId} (${resource.Type}) is not known here`,
    );
  }

  #resource(logicalId: string): RawResource {
    const resource = this.stack.template.Resources?.[logicalId];
    if (resource !== undefined) return resource;
    throw new AssemblyError(`${logicalId} is no resource, and has no value here`);
  }

  #nameOf(logicalId: string): string {
    const resource = this.#resource(logicalId);
    const { property = "" } = namingOf(resource);
    const given = resource.Properties?.[property];
    const name =
      given === undefined ? `${this.stack.name}-${logicalId}` : String(resolveIntrinsics(given, this));
    return namingOf(resource) === table ? `${name}${this.#tableSuffix}` : name;
  }

  /** A version or an alias runs the same code here: there is just the one. */
  #arnOfVersion({ Type, Properties = {} }: RawResource): string {
    const target = String(resolveIntrinsics(Properties.FunctionName ?? "", this));
    const arn = target.startsWith("arn:") ? target : this.#arn("lambda", `function:${target}`);
    return `${arn}:${Type === "AWS::Lambda::Alias" ? String(Properties.Name) : "1"}`;
  }

  #arn(service: string, resource: string): string {
    return `arn:aws:${service}:${this.#env.region}:${this.#env.accountId}:${resource}`;
  }
}

/** A type that is not known here gets an ARN of the usual form. */
function namingOf({ Type }: RawResource): Naming {
  return namings[Type] ?? { arn: [Type.split("::")[1]?.toLowerCase() ?? "unknown", ""] };
}
