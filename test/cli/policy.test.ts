import { type ILeaseTable, LeaseTable } from "@leasehold/cdk";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { describe, expect, it } from "vitest";
import { leasehold } from "../support/command-line.ts";

const tableArn = "arn:aws:dynamodb:eu-central-1:123456789012:table/leases";

/** The statement that a grant of the constructs makes. */
function granted(grant: (table: ILeaseTable, role: Role) => unknown): object {
  const stack = new Stack();
  const role = new Role(stack, "Role", { assumedBy: new ServicePrincipal("lambda.amazonaws.com") });
  grant(LeaseTable.fromLeaseTableArn(stack, "Table", tableArn), role);
  const [policy] = Object.values(Template.fromStack(stack).findResources("AWS::IAM::Policy"));
  const { Action, Effect, Condition } = policy?.Properties.PolicyDocument.Statement[0] ?? {};
  return { Action: new Set(Action), Effect, Condition };
}

async function printed(...args: string[]): Promise<object> {
  const { code, stdout, stderr } = await leasehold(["table", "policy", "-t", tableArn, ...args]);
  expect([code, stderr]).toEqual([0, ""]);
  const { Action, Effect, Condition, Resource } = JSON.parse(stdout).Statement[0];
  expect(Resource).toBe(tableArn);
  return { Action: new Set(Action), Effect, Condition };
}

const grants = {
  use: (table, role, scope) => table.grants.useLeases(role, scope),
  primitives: (table, role, scope) => table.grants.usePrimitives(role, scope),
  operate: (table, role, scope) => table.grants.operate(role, scope),
  read: (table, role, scope) => table.grants.read(role, scope),
} satisfies Record<string, (table: ILeaseTable, role: Role, scope: { keyPrefixes?: string[] }) => unknown>;

describe("leasehold table policy", () => {
  it.each(Object.entries(grants))("permits for %s what the CDK's grant permits", async (kind, grant) => {
    expect(await printed(kind)).toEqual(granted((table, role) => grant(table, role, {})));
    const keyPrefixes = ["orders/", "a*b?c$d"];
    const prefixes = keyPrefixes.flatMap((prefix) => ["--prefix", prefix]);
    expect(await printed(kind, ...prefixes)).toEqual(
      granted((table, role) => grant(table, role, { keyPrefixes })),
    );
  });

  it("writes the table's ARN from what is known, and placeholders for the rest", async () => {
    const resource = async (args: string[], env: NodeJS.ProcessEnv = {}) => {
      const { stdout } = await leasehold(["table", "policy", "use", ...args], {
        env: { LEASEHOLD_TABLE_NAME: "", ...env },
      });
      return JSON.parse(stdout).Statement[0].Resource;
    };
    expect(await resource([])).toBe("arn:aws:dynamodb:REGION:ACCOUNT:table/TABLE");
    expect(await resource(["-t", "locks", "--account", "1"], { AWS_REGION: "cn-north-1" })).toBe(
      "arn:aws-cn:dynamodb:cn-north-1:1:table/locks",
    );
  });

  it("refuses a prefix that is longer than a key may be", async () => {
    const { code, stderr } = await leasehold(["table", "policy", "use", "--prefix", "x".repeat(3_000)]);
    expect([code, stderr]).toEqual([64, expect.stringContaining("longer than a key may be")]);
  });
});
