import { createHash } from "node:crypto";
import { Names, Stack } from "aws-cdk-lib";
import { CfnRole, type IGrantable, type IPrincipal, type IRole, Policy, Role } from "aws-cdk-lib/aws-iam";
import type { Construct, IConstruct } from "constructs";

/**
 * Returns a role as a grantee whose permissions belong to the stack of `user`. A role that this stack defines is
 * returned unchanged.
 *
 * Otherwise a permission that names a part of `user` would make the role's stack depend on that of `user`.
 */
export function roleInStackOf(user: IConstruct, role: IRole): IGrantable {
  const stack = Stack.of(user);
  const isDefinedThere = Stack.of(role) === stack && role.node.defaultChild instanceof CfnRole;
  return isDefinedThere ? role : granteeBy(role, () => policyIn(stack, role));
}

/**
 * Returns a role whose permissions belong to the stack of `user`, for a construct of the library that adds some. A role
 * that another stack of the app defines is returned as if it were imported, any other role unchanged.
 */
export function roleForUse(user: Construct, id: string, role: IRole): IRole {
  const isElsewhere = Role.isRole(role) && Stack.of(role) !== Stack.of(user);
  return isElsewhere ? Role.fromRoleArn(user, id, role.roleArn) : role;
}

/** Returns a role as a grantee whose permissions go into a separate policy. */
export function granteeBy(role: IRole, policy: () => Policy): IGrantable {
  const { assumeRoleAction, policyFragment, principalAccount } = role;
  const principal: IPrincipal = {
    get grantPrincipal() {
      return principal;
    },
    assumeRoleAction,
    policyFragment,
    ...(principalAccount === undefined ? {} : { principalAccount }),
    addToPrincipalPolicy(statement) {
      const policyDependable = policy();
      policyDependable.addStatements(statement);
      return { statementAdded: true, policyDependable };
    },
  };
  return principal;
}

function policyIn(stack: Stack, role: IRole): Policy {
  const id = `Leasehold${Names.nodeUniqueId(role.node)}`;
  const existing = stack.node.tryFindChild(id);
  if (existing instanceof Policy) return existing;
  return new Policy(stack, id, { policyName: policyName(stack, id), roles: [role] });
}

/** Unique among the policies that many stacks add to one role: two policies of one name would replace each other. */
function policyName(stack: Stack, id: string): string {
  let outermost = stack;
  while (outermost.nestedStackParent !== undefined) outermost = outermost.nestedStackParent;
  const hash = createHash("sha256").update(`${outermost.stackName}/${stack.node.path}/${id}`).digest("hex");
  return `Leasehold-${outermost.stackName.slice(0, 90)}-${hash.slice(0, 12)}`;
}

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
