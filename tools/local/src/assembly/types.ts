// The raw assembly, and AppSpec: the plain data that it is resolved to.

import type { AttributeDefinition, KeySchemaElement, StreamViewType } from "@aws-sdk/client-dynamodb";
import type { FunctionDefinition } from "../lambda/types.ts";

/** Plain data as it stands in a template. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** A JSON object. */
export type JsonObject = { readonly [name: string]: Json };

/** A resource of a template, with its intrinsics unresolved. */
export interface RawResource {
  readonly Type: string;
  /** The name of the condition on which it is created. */
  readonly Condition?: string;
  readonly Properties?: JsonObject;
}

/** A template, as far as it matters here. */
export interface RawTemplate {
  readonly Resources?: Readonly<Record<string, RawResource>>;
  readonly Outputs?: Readonly<Record<string, JsonObject>>;
}

/** One stack of a cloud assembly. */
export interface RawStack {
  /** Its name in CloudFormation. */
  readonly name: string;
  readonly template: RawTemplate;
  /** Files and directories of assets by the object key that templates name. */
  readonly assets: ReadonlyMap<string, string>;
  /** Construct paths by logical id. */
  readonly paths: ReadonlyMap<string, string>;
}

/** What a resource is called: people may use any of these, as long as it is unique. */
export interface ResourceName {
  readonly stack: string;
  readonly logicalId: string;
  /** The construct's path, without the `Resource` at its end. */
  readonly path: string | undefined;
  /** The physical name. */
  readonly name: string;
  readonly arn: string;
}

/** A table to create. */
export interface TableSpec extends ResourceName {
  /** As in the template, where they are named as in a request. */
  readonly properties: TableProperties;
  /** The stream's ARN as functions see it. */
  readonly streamArn: string | undefined;
}

/** What is looked at of a table. */
export interface TableProperties {
  readonly AttributeDefinitions: AttributeDefinition[];
  readonly KeySchema: KeySchemaElement[];
  readonly StreamSpecification?: { readonly StreamViewType: StreamViewType };
  readonly TimeToLiveSpecification?: { readonly AttributeName: string };
}

/** A function to run. */
export interface FunctionSpec
  extends ResourceName,
    Omit<FunctionDefinition, "name" | "arn" | "codeDir" | "retryDelayMs"> {
  /** The directory of its code; undefined for inline code. */
  readonly codeDir: string | undefined;
  readonly inlineCode: string | undefined;
}

/** A table's stream that feeds a function. */
export interface StreamMappingSpec extends ResourceName {
  readonly streamArn: string;
  readonly tableName: string;
  readonly functionName: string;
  readonly enabled: boolean;
  readonly batchSize: number;
  readonly startingPosition: "TRIM_HORIZON" | "LATEST";
  /** Patterns of which one must match; empty for all records. */
  readonly filters: readonly JsonObject[];
  /** Undefined for as long as the record lives. */
  readonly retries: number | undefined;
  readonly reportsItemFailures: boolean;
  readonly onFailureArn: string | undefined;
}

/** A schedule of EventBridge Scheduler. When it fires is nothing that is looked at here. */
export interface ScheduleSpec extends ResourceName {
  readonly targetArn: string;
  /** The text of the target's input. */
  readonly input: string | undefined;
}

/** A rule of EventBridge that matches events of the default bus. */
export interface RuleSpec extends ResourceName {
  readonly pattern: JsonObject;
  readonly targets: readonly RuleTargetSpec[];
}

/** What a rule starts, and with what: the event itself, unless there is a template. */
export interface RuleTargetSpec {
  readonly arn: string;
  readonly template: string | undefined;
  /** What the template's placeholders stand for. */
  readonly paths: Readonly<Record<string, string>>;
}

/** A state machine. */
export interface StateMachineSpec extends ResourceName {
  /** The definition, as JSON text. */
  readonly definition: string;
}

/** What an assembly amounts to on this machine. */
export interface AppSpec {
  readonly tables: readonly TableSpec[];
  readonly functions: readonly FunctionSpec[];
  readonly streamMappings: readonly StreamMappingSpec[];
  readonly schedules: readonly ScheduleSpec[];
  readonly rules: readonly RuleSpec[];
  readonly stateMachines: readonly StateMachineSpec[];
  readonly queues: readonly ResourceName[];
  /** By `<stack>.<output>`. */
  readonly outputs: Readonly<Record<string, Json>>;
}
