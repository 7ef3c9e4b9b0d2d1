import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App, CloudFormationValidatePlugin } from "aws-cdk-lib";
import { resolveIntrinsics } from "../../tools/local/src/assembly/intrinsics.ts";
import type { Json } from "../../tools/local/src/assembly/types.ts";

/** One resource as a template has it. */
export interface Resource {
  readonly Type: string;
  readonly Properties: Record<string, unknown>;
}

/** A template of CloudFormation, as far as the tests look into it. */
export interface CloudFormationTemplate {
  readonly Resources: Record<string, Resource>;
  readonly Outputs?: Record<string, { readonly Value: unknown }>;
}

/** One engine for all: it takes seconds to start, and a fraction of one to validate. */
let engine: CloudFormationValidatePlugin | undefined;

/**
 * What AWS's own CloudFormation validator finds wrong with a template, warnings included.
 *
 * It knows the schema of every resource type, and checks names, types, required properties, values, references,
 * attributes, policies and cycles. It works offline. Nothing of the app's constructs has a say in it.
 */
export function templateProblems(template: object): string[] {
  engine ??= new CloudFormationValidatePlugin();
  const folder = mkdtempSync(join(tmpdir(), "leasehold-template-"));
  try {
    const templatePath = join(folder, "template.json");
    writeFileSync(templatePath, JSON.stringify(template));
    const { violations } = engine.validate({
      appConstruct: new App(),
      templatePaths: [templatePath],
      stackTemplates: [
        { stackConstructPath: "Template", templatePath, accountId: undefined, region: undefined },
      ],
    });
    return violations.flatMap(({ ruleName, description, violatingResources }) =>
      violatingResources.map(
        ({ resourceLogicalId, locations }) =>
          `${ruleName} ${resourceLogicalId ?? "template"} ${locations.join()}: ${description}`,
      ),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The resources of a type, by logical id. */
export function resourcesOf(template: CloudFormationTemplate, type: string): [string, Resource][] {
  return Object.entries(template.Resources).filter(([, resource]) => resource.Type === type);
}

/** The logical id that a Ref or a Fn::GetAtt is about; undefined for anything else. */
export function referenceTo(value: unknown): string | undefined {
  const { Ref, "Fn::GetAtt": attribute } = value as { Ref?: string; "Fn::GetAtt"?: [string, string] };
  return Ref ?? attribute?.[0];
}

/** A value of a template, with a text for each reference to a resource, or to an attribute of it, as a deployment has. */
export function withStandIns(value: unknown, standIn: (id: string, attribute?: string) => string): unknown {
  const scope = {
    ref: (id: string) => standIn(id),
    attribute: (id: string, attribute: string) => standIn(id, attribute),
  };
  return resolveIntrinsics(value as Json, scope);
}

/** Every text inside a value, however deep. */
export function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
