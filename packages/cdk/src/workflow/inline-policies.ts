import { Stack } from "aws-cdk-lib";
import { Policy } from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";

/** IAM's limit for the characters of all inline policies of a role together. */
const most = 10_240;

/** The length of a value that only the deployment knows: a name that CloudFormation makes has at most 64 characters. */
const standIn = "x".repeat(64);

/** Refuses, at synthesis, policies that IAM would refuse at deployment. */
export function checkInlinePolicies(
  scope: Construct,
  policies: () => readonly Policy[],
  advice: string,
): void {
  scope.node.addValidation({
    validate: () => {
      const stack = Stack.of(scope);
      const characters = policies()
        .map(({ document }) => JSON.stringify(deployed(stack.resolve(document))).length)
        .reduce((sum, length) => sum + length, 0);
      if (characters <= most) return [];
      return [
        `the role of ${scope.node.path} has inline policies of ${characters} characters, and IAM takes ${most}: ${advice}`,
      ];
    },
  });
}

/** The inline policies among the parts of a construct. */
export function policiesIn(scope: Construct): readonly Policy[] {
  return scope.node.findAll().filter((part) => part instanceof Policy);
}

function deployed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(deployed);
  if (typeof value !== "object" || value === null) return value;
  const { "Fn::Join": join } = value as { readonly "Fn::Join"?: readonly [string, readonly unknown[]] };
  if (join !== undefined) return join[1].map((part) => String(deployed(part))).join(join[0]);
  const fields = Object.entries(value);
  const isKnownLater = fields.some(([name]) => name === "Ref" || name.startsWith("Fn::"));
  if (isKnownLater)
    return "Ref" in value && String(value.Ref).startsWith("AWS::") ? "ap-southeast-2" : standIn;
  return Object.fromEntries(fields.map(([name, field]) => [name, deployed(field)]));
}
