/**
 * Findings of cdk-nag about the constructs' resources, accepted here with a reason, so that users need not accept them.
 *
 * Written as the same metadata that the library's `Validations.of(scope).acknowledge()` writes, because older versions
 * of the library have no such method. cdk-nag 3 reads it from the resource and from each construct above it.
 */
import { Stack } from "aws-cdk-lib";
import type { IConstruct } from "constructs";

const metadataKey = "aws:cdk:acknowledged-rules";

/** Accepts a finding about a construct and what is in it. */
export function acceptFinding(scope: IConstruct, finding: string, reason: string): void {
  const id = `Annotation::AwsSolutions-${finding}`;
  const isKnown = scope.node.metadata.some(({ type, data }) => type === metadataKey && id in Object(data));
  if (!isKnown) scope.node.addMetadata(metadataKey, { [id]: reason });
}

/** Accepts a permission on more than one resource, as its ARN says. */
export function acceptResource(scope: IConstruct, arn: string, reason: string): void {
  const text = flattened(Stack.of(scope).resolve(arn));
  if (text.includes("*")) acceptFinding(scope, `IAM5[Resource::${text}]`, reason);
}

/** A text of CloudFormation as cdk-nag writes it in the id of a finding. */
function flattened(value: unknown): string {
  if (typeof value === "string") return value;
  const { "Fn::Join": join, "Fn::GetAtt": attribute, Ref: ref } = Object(value);
  if (join !== undefined) return join[1].map(flattened).join(join[0]);
  if (attribute !== undefined) return `<${attribute.join(".")}>`;
  return ref === undefined ? JSON.stringify(value) : `<${ref}>`;
}
