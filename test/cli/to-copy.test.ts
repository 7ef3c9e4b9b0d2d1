// Texts to copy: definitions of a table, and policies for it. They say what the constructs make.
import { type ILeaseTable, LeaseTable } from "@leasehold/cdk";
import { attributeNames } from "@leasehold/client/schema";
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { leasehold } from "../support/command-line.ts";

const { partitionKey, sortKey, timeToLive } = attributeNames;

async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await leasehold(["table", ...args], { env: { LEASEHOLD_TABLE_NAME: "" } });
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

/** The table that the construct makes, as properties of AWS::DynamoDB::Table. */
function constructed(props: { readonly tableName: string; readonly stream?: boolean }): object {
  const stack = new Stack(new App(), "Stack", { env: { region: "eu-central-1" } });
  new LeaseTable(stack, "LeaseTable", props);
  const [resource] = Object.values(Template.fromStack(stack).findResources("AWS::DynamoDB::GlobalTable"));
  const { Replicas, SSESpecification: _, ...shared } = resource?.Properties ?? {};
  const { Region: __, ...own } = Replicas[0];
  const { DeletionPolicy, UpdateReplacePolicy } = resource as Record<string, unknown>;
  return { DeletionPolicy, UpdateReplacePolicy, Properties: { ...shared, ...own } };
}

describe("leasehold table cfn, terraform, cdk", () => {
  it.each([[[]], [["--stream"]]])("prints for CloudFormation what the construct makes, %j", async (args) => {
    const customTags = [{ tag: "!Ref", resolve: (name: string) => name }];
    const { Resources } = parse(await printed("cfn", "leases", ...args), { customTags });
    const { Type, ...definition } = Resources.LeaseTable;
    expect(Type).toBe("AWS::DynamoDB::Table");
    expect(definition.Properties.Tags).toEqual([{ Key: "leasehold", Value: "true" }]);
    expect(definition).toEqual(constructed({ tableName: "leases", stream: args.length > 0 }));
  });

  it("prints for Terraform the same names and settings", async () => {
    const text = await printed("terraform", "locks", "--stream");
    const settings = Object.fromEntries(
      [...text.matchAll(/^ +(\w+) += "?([^"\n]*)"?$/gm)].map(([, name, value]) => [name, value]),
    );
    expect(settings).toMatchObject({
      billing_mode: "PAY_PER_REQUEST",
      hash_key: partitionKey,
      range_key: sortKey,
      attribute_name: timeToLive,
      deletion_protection_enabled: "true",
      stream_view_type: "NEW_AND_OLD_IMAGES",
      prevent_destroy: "true",
      leasehold: "true",
    });
    expect(text).toMatch(/^ {2}name +=[ ]"locks"$/m);
    expect([...text.matchAll(/name = "(\w+)"\n {4}type = "S"/g)].map(([, name]) => name)).toEqual([
      partitionKey,
      sortKey,
    ]);
  });

  it("leaves out what is not wanted", async () => {
    const text = await printed("cfn", "--no-pitr", "--no-deletion-protection");
    expect(text).toContain("PointInTimeRecoveryEnabled: false");
    expect(text).toContain("DeletionProtectionEnabled: false");
    expect(await printed("cdk", "--no-pitr")).toContain(
      '{ tableName: "leases", pointInTimeRecovery: false }',
    );
  });

  it("refuses a name that would break the definition", async () => {
    const { code, stderr } = await leasehold(["table", "cfn", 'x"\n  y: z']);
    expect([code, stderr]).toEqual([64, expect.stringContaining("is no table's name")]);
  });
});

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

async function policy(...args: string[]): Promise<object> {
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
    expect(await policy(kind)).toEqual(granted((table, role) => grant(table, role, {})));
    const keyPrefixes = ["orders/", "a*b?c$d"];
    const prefixes = keyPrefixes.flatMap((prefix) => ["--prefix", prefix]);
    expect(await policy(kind, ...prefixes)).toEqual(
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
