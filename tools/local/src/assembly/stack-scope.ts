// What the names in one stack's template stand for, in this and in the other stacks.

import { UnsupportedIntrinsicError } from "./errors.ts";
import { type Identity, namingOf, type StackEnv } from "./identity.ts";
import { resolveIntrinsics, type Scope } from "./intrinsics.ts";
import type { Json, JsonObject, RawResource, RawStack, ResourceName } from "./types.ts";

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

  /** Whether a resource is there under a condition only. */
  isConditional(logicalId: string): boolean {
    return this.stack.template.Resources?.[logicalId]?.Condition !== undefined;
  }

  /** A resource's properties, resolved. */
  properties(logicalId: string): JsonObject {
    const properties = this.#resource(logicalId, logicalId).Properties ?? {};
    return (resolveIntrinsics(properties, this, this.label(logicalId)) ?? {}) as JsonObject;
  }

  /** All names of a resource. */
  nameOf(logicalId: string): ResourceName {
    const { arn } = this.identity(logicalId, logicalId);
    return {
      stack: this.stack.name,
      logicalId,
      path: this.stack.paths.get(logicalId),
      name: this.#physicalName(logicalId, this.#resource(logicalId, logicalId)),
      arn,
    };
  }

  label(logicalId: string): string {
    return `${this.stack.name}/${logicalId}`;
  }

  /** An output's value. */
  output(name: string): Json | undefined {
    const output = this.stack.template.Outputs?.[name];
    if (output?.Value === undefined) return undefined;
    return resolveIntrinsics(output.Value, this, `${this.stack.name}.Outputs.${name}`);
  }

  identity(logicalId: string, where: string): Identity {
    const resource = this.#resource(logicalId, where);
    if (resource.Type === "AWS::Lambda::Version" || resource.Type === "AWS::Lambda::Alias") {
      return this.#qualifiedFunction(resource, where);
    }
    return namingOf(resource.Type).identify(this.#physicalName(logicalId, resource), this.#env);
  }

  ref(name: string, where: string): Json | undefined {
    const { partition, region, accountId } = this.#env;
    switch (name) {
      case "AWS::NoValue":
        return undefined;
      case "AWS::Region":
        return region;
      case "AWS::AccountId":
        return accountId;
      case "AWS::Partition":
        return partition;
      case "AWS::URLSuffix":
        return "amazonaws.com";
      case "AWS::StackName":
        return this.stack.name;
      case "AWS::StackId":
        return `arn:${partition}:cloudformation:${region}:${accountId}:stack/${this.stack.name}/local`;
      case "AWS::NotificationARNs":
        return [];
    }
    const parameter = this.stack.template.Parameters?.[name];
    if (parameter === undefined) return this.identity(name, where).ref;
    if (parameter.Default === undefined) {
      throw new UnsupportedIntrinsicError(
        where,
        `the parameter ${name} has no default, and there is no way to set it here`,
      );
    }
    return /^(CommaDelimitedList|List<)/.test(String(parameter.Type))
      ? String(parameter.Default)
          .split(",")
          .map((part) => part.trim())
      : parameter.Default;
  }

  attribute(resource: string, attribute: string, where: string): Json {
    const { arn, attributes } = this.identity(resource, where);
    const value = attribute === "Arn" ? arn : attributes?.[attribute];
    if (value !== undefined) return value;
    const type = this.#resource(resource, where).Type;
    throw new UnsupportedIntrinsicError(
      where,
      `the attribute ${attribute} of ${resource} (${type}) is not known here`,
    );
  }

  #resource(logicalId: string, where: string): RawResource {
    const resource = this.stack.template.Resources?.[logicalId];
    if (resource === undefined) {
      throw new UnsupportedIntrinsicError(
        where,
        `${logicalId} is neither a resource, a parameter nor a pseudo parameter`,
      );
    }
    return resource;
  }

  #physicalName(logicalId: string, resource: RawResource): string {
    const property = namingOf(resource.Type).nameProperty;
    const given = property === undefined ? undefined : resource.Properties?.[property];
    const resolved =
      given === undefined
        ? undefined
        : resolveIntrinsics(given, this, `${this.label(logicalId)}.${property}`);
    const name = typeof resolved === "string" ? resolved : `${this.stack.name}-${logicalId}`;
    return resource.Type.startsWith("AWS::DynamoDB::") ? `${name}${this.#tableSuffix}` : name;
  }

  /** A version or an alias runs the same code here: there is just the one. */
  #qualifiedFunction(resource: RawResource, where: string): Identity {
    const properties = resource.Properties ?? {};
    const target = String(resolveIntrinsics(properties.FunctionName ?? "", this, where));
    const { partition, region, accountId } = this.#env;
    const prefix = `arn:${partition}:lambda:${region}:${accountId}:function:`;
    const functionArn = target.startsWith("arn:") ? target : `${prefix}${target}`;
    const alias = resource.Type === "AWS::Lambda::Alias";
    const qualifier = alias ? String(resolveIntrinsics(properties.Name ?? "live", this, where)) : "1";
    const arn = `${functionArn}:${qualifier}`;
    return { ref: arn, arn, attributes: { AliasArn: arn, FunctionArn: arn, Version: "1" } };
  }
}
