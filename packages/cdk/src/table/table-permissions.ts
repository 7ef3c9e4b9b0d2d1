import { Annotations, Stack, Token, TokenComparison } from "aws-cdk-lib";
import { TableEncryption } from "aws-cdk-lib/aws-dynamodb";
import {
  AccountPrincipal,
  type AddToResourcePolicyResult,
  Grant,
  type IGrantable,
  type IPrincipal,
  PolicyStatement,
  PrincipalBase,
  UnknownPrincipal,
} from "aws-cdk-lib/aws-iam";
import { Construct, type IConstruct } from "constructs";
import { acceptFinding } from "../accepted-findings.ts";
import type { PolicyConditions } from "./leading-keys.ts";
import type { ILeaseTableRef } from "./table-place.ts";

/** DynamoDB's requests to KMS on behalf of a caller that reads, and of one that writes. */
const readKey = ["kms:Decrypt", "kms:DescribeKey"];
const keyActions: Readonly<Record<"read" | "write", string[]>> = {
  read: readKey,
  write: [...readKey, "kms:Encrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"],
};

/** Permits what a caller's requests need of the encryption keys of a table and its replicas. */
export function permitKeys(table: ILeaseTableRef, grantee: IGrantable, access: "read" | "write"): void {
  const actions = keyActions[access];
  const key = table.encryptionKey;
  const principal = grantee.grantPrincipal;
  if (key !== undefined && access === "write" && Construct.isConstruct(principal))
    acceptKeyActions(principal);
  if (key !== undefined && differ(principal.principalAccount, key.env.account) && isAttachedTo(principal)) {
    // A key has no name by which another account's stack could know its ARN.
    Grant.addToPrincipal({ grantee, actions, resourceArns: [isDefinedHere(key) ? "*" : key.keyArn] });
    const principals = [new AccountPrincipal(principal.principalAccount)];
    key.addToResourcePolicy(new PolicyStatement({ actions, principals, resources: ["*"] }), true);
  } else {
    key?.grant(grantee, ...actions);
  }
  const resourceArns = Object.values(table.encryption?.replicaKeyArns ?? {});
  if (resourceArns.length > 0) Grant.addToPrincipal({ grantee, actions, resourceArns });
}

function acceptKeyActions(principal: Construct): void {
  const reason =
    "DynamoDB needs all forms of these actions of KMS on behalf of a caller that writes, on the table's key.";
  const wide = keyActions.write.filter((action) => action.endsWith("*"));
  for (const action of wide) acceptFinding(principal, `IAM5[Action::${action}]`, reason);
}

/** A permission on a table or its stream. */
export interface Permission {
  readonly grantee: IGrantable;
  readonly actions: string[];
  readonly resourceArns: string[];
  readonly conditions?: PolicyConditions | undefined;
  /** The method of the table that adds to the resource's own policy. */
  readonly policyMethod: "addToResourcePolicy" | "addToStreamResourcePolicy";
}

type WithPolicies = Partial<
  Record<Permission["policyMethod"], (statement: PolicyStatement) => AddToResourcePolicyResult>
>;

/**
 * Permits actions by the grantee's policy. Also by the table's policy if the grantee belongs to another account, or has
 * no policy to extend.
 *
 * Throws if neither policy can be extended.
 */
export function permit(table: ILeaseTableRef, permission: Permission): Grant {
  const { grantee, actions, resourceArns, conditions, policyMethod } = permission;
  const principal = grantee.grantPrincipal;
  if (isService(principal)) {
    throw new Error(
      `${nameOf(principal)} is a service of AWS, which acts by a role: grant to that role, or give the table a ` +
        `statement of your own with ${table.node.path}.table.addToResourcePolicy()`,
    );
  }
  const isForeign = differ(principal.principalAccount, table.table.env.account);
  if (isForeign && table.encryption?.type === TableEncryption.AWS_MANAGED) {
    throw new Error(
      `${table.node.path} is encrypted with the key aws/dynamodb, which ${nameOf(principal)} of another account cannot ` +
        "use: encrypt the table with TableEncryptionV2.customerManagedKey(), or leave encryption out",
    );
  }
  const withConditions = conditions === undefined ? {} : { conditions };
  const grant = Grant.addToPrincipal({ grantee, actions, resourceArns, ...withConditions });
  const isAttached = grant.success && isAttachedTo(principal);
  if (isAttached && !isForeign) return grant;
  const statement = new PolicyStatement({
    actions,
    // A policy on a resource applies to that resource.
    resources: ["*"],
    // The policy of a table that is deployed earlier would refuse a role that does not exist yet.
    principals: [isAttached ? new AccountPrincipal(principal.principalAccount) : principal],
    ...withConditions,
  });
  const { statementAdded } = (table.table as WithPolicies)[policyMethod]?.(statement) ?? {};
  if (statementAdded !== true && !isAttached) {
    throw new Error(
      `${nameOf(principal)} cannot be permitted to use ${table.node.path}: this app defines neither the principal nor the ` +
        "table, so it can add to no policy of theirs; grant it in the app that defines the table, or grant to a role of this app",
    );
  }
  tellOtherHalf(table, principal, isForeign, isAttached);
  return grant;
}

/** This app cannot write another account's half of a permission. */
function tellOtherHalf(
  table: ILeaseTableRef,
  principal: IPrincipal,
  isForeign: boolean,
  isAttached: boolean,
): void {
  const isOfOtherApp = isAttached && !isDefinedHere(table.table);
  if (!isForeign || (isAttached && !isOfOtherApp)) return;
  Annotations.of(table).addInfoV2(
    `@leasehold/cdk:otherAccountPermits:${principal.principalAccount}`,
    isOfOtherApp
      ? `the table is of the account ${table.table.env.account}, whose owner has to permit the account ` +
          `${principal.principalAccount} by a policy on the table`
      : `the table permits ${nameOf(principal)}, whose account has to permit it as well, by a policy of that role or user`,
  );
}

function isDefinedHere({ node }: IConstruct): boolean {
  return node.defaultChild !== undefined;
}

/**
 * Whether permissions are added to a principal's policy. An imported role of another account claims so, but does not
 * add them.
 */
function isAttachedTo(principal: IPrincipal): boolean {
  if (!Construct.isConstruct(principal)) return !(principal instanceof PrincipalBase);
  return !differ(principal.principalAccount, Stack.of(principal).account);
}

function differ(one: string | undefined, other: string): boolean {
  return one !== undefined && Token.compareStrings(one, other) === TokenComparison.DIFFERENT;
}

function isService(principal: IPrincipal): boolean {
  // Of an imported function without a role. It has no fragment, and the CDK itself warns of that.
  if (principal instanceof UnknownPrincipal) return false;
  return "Service" in principal.policyFragment.principalJson;
}

function nameOf(principal: IPrincipal): string {
  return Construct.isConstruct(principal) ? principal.node.path : String(principal);
}
