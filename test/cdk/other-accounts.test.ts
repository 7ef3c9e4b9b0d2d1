import { LeaseTable, type LeaseTableProps } from "@leasehold/cdk";
import { App, Stack } from "aws-cdk-lib";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { TableEncryptionV2 } from "aws-cdk-lib/aws-dynamodb";
import { AccountPrincipal, ArnPrincipal, type IGrantable, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { describe, expect, test } from "vitest";

const env = { account: "111122223333", region: "eu-west-1" };
const theirs = { account: "444455556666", region: "eu-west-1" };
const theirRole = "arn:aws:iam::444455556666:role/worker";
const scope = { keyPrefixes: ["reports/"] };

function newWorld(props: (stack: Stack) => LeaseTableProps = () => ({})) {
  const app = new App();
  const owner = new Stack(app, "Owner", { env });
  const table = new LeaseTable(owner, "Leases", { tableName: "leases", ...props(owner) });
  return { app, owner, table, team: new Stack(app, "Team", { env: theirs }) };
}

/** The statements of the table's own policy. */
function policyOfTable(owner: Stack): Record<string, unknown>[] {
  const [table] = Object.values(Template.fromStack(owner).findResources("AWS::DynamoDB::GlobalTable"));
  return table?.Properties.Replicas[0].ResourcePolicy?.PolicyDocument.Statement ?? [];
}

const newRole = (stack: Stack): Role =>
  new Role(stack, "Worker", { assumedBy: new ServicePrincipal("lambda.amazonaws.com") });

describe("a grant to another account", () => {
  test.each<[string, (owner: Stack) => IGrantable, string | object]>([
    ["a role by its ARN", (owner) => Role.fromRoleArn(owner, "Worker", theirRole), theirRole],
    ["a principal by its ARN", () => new ArnPrincipal(theirRole), theirRole],
    [
      "the account",
      () => new AccountPrincipal(theirs.account),
      { "Fn::Join": ["", ["arn:", { Ref: "AWS::Partition" }, ":iam::444455556666:root"]] },
    ],
  ])("is written into the table's own policy, for %s", (_, granteeIn, AWS) => {
    const { owner, table } = newWorld();
    table.grants.useLeases(granteeIn(owner), scope);
    expect(policyOfTable(owner)).toEqual([
      {
        Effect: "Allow",
        Principal: { AWS },
        Resource: "*",
        Action: expect.arrayContaining(["dynamodb:UpdateItem", "dynamodb:GetItem"]),
        Condition: {
          "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["reports/*"] },
          Null: { "dynamodb:LeadingKeys": "false" },
        },
      },
    ]);
  });

  test("says that the other account has to permit its role as well", () => {
    const { owner, table } = newWorld();
    table.grants.useLeases(Role.fromRoleArn(owner, "Worker", theirRole));
    Annotations.fromStack(owner).hasInfo(
      "/Owner/Leases",
      Match.stringLikeRegexp(
        "the table permits Owner/Worker, whose account has to permit it as well, by a policy of that role or user",
      ),
    );
  });

  test("to a role of another stack is written into both policies, and the table can be deployed first", () => {
    const { owner, table, team } = newWorld();
    table.grants.useLeases(newRole(team), scope);
    expect(JSON.stringify(policyOfTable(owner))).toContain(":iam::444455556666:root");
    Template.fromStack(team).hasResourceProperties("AWS::IAM::Policy", {
      PolicyDocument: {
        Statement: [Match.objectLike({ Action: Match.arrayWith(["dynamodb:UpdateItem"]) })],
      },
    });
    expect(owner.dependencies).toEqual([]);
  });

  test("to read the stream is written into the stream's policy", () => {
    const { owner, table } = newWorld(() => ({ stream: true }));
    table.grants.readStream(Role.fromRoleArn(owner, "Reader", theirRole));
    const text = JSON.stringify(Template.fromStack(owner).findResources("AWS::DynamoDB::GlobalTable"));
    expect(text).toMatch(/"ReplicaStreamSpecification":\{"ResourcePolicy":.*dynamodb:GetRecords/);
  });

  test.each<[string, (team: Stack) => IGrantable]>([
    ["of another stack", newRole],
    ["by its ARN", (team) => Role.fromRoleArn(team.node.root.node.findChild("Owner"), "Worker", theirRole)],
  ])("permits the table's key, to a role %s", (_, granteeIn) => {
    const { owner, table, team } = newWorld((stack) => ({
      encryption: TableEncryptionV2.customerManagedKey(new Key(stack, "Key")),
    }));
    table.grants.useLeases(granteeIn(team));
    const [key] = Object.values(Template.fromStack(owner).findResources("AWS::KMS::Key"));
    const statements: { Principal: unknown; Action: unknown }[] = key?.Properties.KeyPolicy.Statement;
    const permitted = statements.filter(({ Principal }) =>
      JSON.stringify(Principal).includes(theirs.account),
    );
    expect(permitted.map(({ Action }) => Action)).toEqual([
      expect.arrayContaining(["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey*"]),
    ]);
  });

  test("is refused where neither the grantee nor the table is of this app", () => {
    const stack = new Stack(new App(), "Team", { env });
    const arn = "arn:aws:dynamodb:eu-west-1:444455556666:table/leases";
    const table = LeaseTable.fromLeaseTableArn(stack, "Leases", arn);
    for (const grantee of [
      Role.fromRoleArn(stack, "Worker", theirRole),
      new AccountPrincipal(theirs.account),
    ]) {
      expect(() => table.grants.useLeases(grantee)).toThrow(
        /cannot be permitted to use Team\/Leases: this app defines neither the principal nor the table, .*: grant it in|grant/,
      );
    }
  });

  test("on a table of another app is this account's half, and says whose the other half is", () => {
    const stack = new Stack(new App(), "Team", { env });
    const arn = "arn:aws:dynamodb:eu-west-1:444455556666:table/leases";
    LeaseTable.fromLeaseTableArn(stack, "Leases", arn).grants.useLeases(newRole(stack));
    Annotations.fromStack(stack).hasInfo(
      "/Team/Leases",
      Match.stringLikeRegexp(
        "the table is of the account 444455556666, whose owner has to permit the account 111122223333",
      ),
    );
  });

  test("is refused on a table with the key aws/dynamodb, which cannot be shared", () => {
    const { owner, table } = newWorld(() => ({ encryption: TableEncryptionV2.awsManagedKey() }));
    expect(() => table.grants.inspect(Role.fromRoleArn(owner, "Worker", theirRole))).toThrow(
      "Owner/Leases is encrypted with the key aws/dynamodb, which Owner/Worker of another account cannot use: encrypt the " +
        "table with TableEncryptionV2.customerManagedKey(), or leave encryption out",
    );
  });
});

describe("a grant within the account", () => {
  test("leaves the table's own policy alone", () => {
    const { owner, table } = newWorld();
    table.grants.useLeases(newRole(owner));
    table.grants.inspect(Role.fromRoleArn(owner, "Imported", "arn:aws:iam::111122223333:role/own"));
    expect(policyOfTable(owner)).toEqual([]);
    Annotations.fromStack(owner).hasNoInfo("*", Match.anyValue());
  });

  test("is refused to a service, which acts by a role", () => {
    const { table } = newWorld();
    expect(() => table.grants.read(new ServicePrincipal("lambda.amazonaws.com"))).toThrow(
      "is a service of AWS, which acts by a role: grant to that role",
    );
  });

  test("leaves a mistake in the grantee's own policy fragment as it is", () => {
    const { table, owner } = newWorld();
    const mistaken = Object.defineProperty(new AccountPrincipal(owner.account), "policyFragment", {
      get: () => {
        throw new TypeError("the account is not known yet");
      },
    });
    expect(() => table.grants.read(mistaken)).toThrow(new TypeError("the account is not known yet"));
  });

  test("is not given to an imported function whose role nobody knows, and the CDK warns of it", () => {
    const { table, owner } = newWorld();
    const functionArn = "arn:aws:lambda:eu-west-1:111122223333:function:imported";
    table.grants.read(LambdaFunction.fromFunctionArn(owner, "Imported", functionArn));
    expect(policyOfTable(owner)).toEqual([]);
    Annotations.fromStack(owner).hasWarning(
      "*",
      Match.stringLikeRegexp("Add statement to this resource's role"),
    );
  });

  test("permits the keys of the table and of its replicas, and to describe them, as DynamoDB does for its callers", () => {
    const replicaKey = "arn:aws:kms:eu-central-1:111122223333:key/replica";
    const { owner, table } = newWorld((stack) => ({
      replicas: [{ region: "eu-central-1" }],
      encryption: TableEncryptionV2.customerManagedKey(new Key(stack, "Key"), { "eu-central-1": replicaKey }),
    }));
    table.grants.read(newRole(owner));
    const [policy] = Object.values(Template.fromStack(owner).findResources("AWS::IAM::Policy"));
    const text = JSON.stringify(policy?.Properties.PolicyDocument);
    expect(text).toContain('["kms:Decrypt","kms:DescribeKey"]');
    expect(text).toContain(replicaKey);
    expect(text).not.toContain("kms:Encrypt");
  });
});
