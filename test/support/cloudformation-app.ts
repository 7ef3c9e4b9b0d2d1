import { readFileSync } from "node:fs";
import { App } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { LeaseholdStack, type LeaseholdStackProps } from "../../infra/leasehold-stack.ts";
import type { CloudFormationTemplate } from "./cloudformation.ts";

/** The context that `cdk` gives to the app. */
export const cdkContext: Record<string, unknown> = JSON.parse(readFileSync("cdk.json", "utf8")).context;

/** The app as `cdk` makes it, but for the bundles, which would take seconds. */
export function leaseholdStack(props: LeaseholdStackProps = {}): LeaseholdStack {
  const app = new App({
    context: { ...cdkContext, "aws:cdk:bundling-stacks": [] },
    // The whole app's test has it.
    builtinCloudFormationValidation: false,
  });
  return new LeaseholdStack(app, "Leasehold", props);
}

export function leaseholdTemplate(props: LeaseholdStackProps = {}): {
  template: Template;
  json: CloudFormationTemplate;
} {
  const template = Template.fromStack(leaseholdStack(props));
  return { template, json: template.toJSON() as CloudFormationTemplate };
}
