/** Tables of other accounts and regions, and grants to other accounts. */
import {
  type ILeaseTable,
  LeasedWorkflow,
  LeaseHeartbeat,
  LeaseTable,
  type LeaseTableProps,
  LeaseWakeup,
  SingletonJob,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { ManualClock } from "@leasehold/client/testing";
import { App, Fn, Stack } from "aws-cdk-lib";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { TableEncryptionV2 } from "aws-cdk-lib/aws-dynamodb";
import { AccountPrincipal, ArnPrincipal, type IGrantable, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import {
  env,
  everyFiveMinutes,
  functionIn,
  newStack,
  only,
  type Statement,
  statementsIn,
} from "../support/constructs.ts";
import { definitionsIn, problemsIn } from "../support/definitions.ts";
import { StepFunctions } from "../support/step-functions.ts";

const theirs = { account: "444455556666", region: "eu-west-1" };
const arn = (account: string, region: string): string => `arn:aws:dynamodb:${region}:${account}:table/leases`;
const ofAnotherAccount = arn(theirs.account, theirs.region);
const ofAnotherRegion = arn(env.account, "us-east-1");

/** Everything that uses a table without waiting. */
function useEverywhere(stack: Stack, table: ILeaseTable): Template {
  new LeasedWorkflow(stack, "Import", { table, key: "import", work: new Pass(stack, "Nothing") });
  for (const [id, target] of [
    ["Locking", SingletonJobTarget.lambda(functionIn(stack, "Close"))],
    ["Locked", SingletonJobTarget.lockedLambda(functionIn(stack, "Report"))],
  ] as const) {
    new SingletonJob(stack, id, { table, target, schedule: everyFiveMinutes });
  }
  return Template.fromStack(stack);
}

/** Every table that a state of a template's machines sends a request to. */
function tablesAskedIn(template: Template): unknown[] {
  const text = JSON.stringify(Object.values(definitionsIn(template)));
  return [...text.matchAll(/"TableName":("[^"]+")/g)].map(([, name]) => JSON.parse(String(name)));
}

function variablesOf(template: Template): Record<string, unknown> {
  const hasVariables = { Properties: { Environment: Match.anyValue() } };
  return only(template.findResources("AWS::Lambda::Function", hasVariables)).Properties.Environment.Variables;
}

describe("a table of another account", () => {
  test("is addressed by its ARN in every request, variable and metric, for by its name the own one would be taken", () => {
    const stack = newStack();
    const table = LeaseTable.fromLeaseTableArn(stack, "Leases", ofAnotherAccount);
    const template = useEverywhere(stack, table);
    const asked = tablesAskedIn(template);
    expect(asked.length).toBeGreaterThan(20);
    expect(new Set(asked)).toEqual(new Set([ofAnotherAccount]));
    expect(variablesOf(template).LEASEHOLD_TABLE_NAME).toBe(ofAnotherAccount);
    const alarms = JSON.stringify(template.findResources("AWS::CloudWatch::Alarm"));
    expect(alarms).toContain(`{"Name":"Table","Value":"${ofAnotherAccount}"}`);
    expect(alarms).not.toContain('"Value":"leases"');
    expect(table.metricAcquired().dimensions).toEqual({ Table: ofAnotherAccount });
    const asksTheTable = ({ Action }: Statement): boolean => [Action].flat().includes("dynamodb:UpdateItem");
    const on = statementsIn(template)
      .filter(asksTheTable)
      .map(({ Resource }) => Resource);
    expect(new Set(on)).toEqual(new Set([ofAnotherAccount]));
  });

  test("gives definitions without fault, whose keeper takes its own workflow's lease for its table's", async () => {
    const stack = newStack();
    const template = useEverywhere(stack, LeaseTable.fromLeaseTableArn(stack, "Leases", ofAnotherAccount));
    expect(problemsIn(template)).toEqual([]);
    const clock = new ManualClock();
    const steps = new StepFunctions(clock);
    const stateMachineArn = steps.deploy(template)("ImportStateMachine");
    const { executionArn } = steps.machines.start({ stateMachineArn, input: {} });
    await clock.advance(120_000);
    expect(steps.machines.describe(executionArn).status).toBe("SUCCEEDED");
    const keepers = steps.machines.executions().filter((one) => one.executionArn !== executionArn);
    expect(keepers.map(({ status }) => status)).toEqual(["SUCCEEDED"]);
  });

  test("has no LeaseWakeup here, for a waiting workflow can be woken in its own account only", () => {
    const stack = newStack();
    const tableStreamArn = `${ofAnotherAccount}/stream/1`;
    const table = LeaseTable.fromLeaseTableAttributes(stack, "Leases", {
      tableArn: ofAnotherAccount,
      tableStreamArn,
    });
    expect(() => new LeaseWakeup(stack, "Wakeup", { table, handler: functionIn(stack, "Wake") })).toThrow(
      "the table Test/Leases is of the account 444455556666, and nobody in 111122223333 can wake what waits there: define " +
        'the LeaseWakeup, and the workflows that wait, in 444455556666; here, use what does not wait ("skip", "fail")',
    );
  });

  test("is recognised where it is defined in another stack of the same app", () => {
    const app = new App();
    const owner = new Stack(app, "Owner", { env: theirs });
    const table = new LeaseTable(owner, "Leases", { tableName: "leases" });
    const stack = new Stack(app, "Test", { env });
    new LeaseHeartbeat(stack, "Heartbeat", { table });
    const asked = tablesAskedIn(Template.fromStack(stack));
    expect(new Set(asked)).toEqual(new Set([ofAnotherAccount]));
  });
});

describe("a table of another region", () => {
  const message = (user: string): string =>
    `the table Test/Leases is in us-east-1, and ${user} can use tables of its own region (eu-west-1) only: use a table of ` +
    "eu-west-1, or define it in a stack of us-east-1";

  test.each<[string, (stack: Stack, table: ReturnType<typeof LeaseTable.fromLeaseTableArn>) => unknown]>([
    ["Test/Heartbeat", (stack, table) => new LeaseHeartbeat(stack, "Heartbeat", { table })],
    [
      "Test/Import",
      (stack, table) => new LeasedWorkflow(stack, "Import", { table, work: new Pass(stack, "Nothing") }),
    ],
    [
      "Test/Wakeup",
      (stack, table) => new LeaseWakeup(stack, "Wakeup", { table, handler: functionIn(stack, "Wake") }),
    ],
    [
      "Test/Close",
      (stack, table) => {
        const target = SingletonJobTarget.lambda(functionIn(stack, "Close"));
        new SingletonJob(stack, "Job", { table, target, schedule: everyFiveMinutes });
      },
    ],
  ])("is refused to %s, whose requests never leave its region", (user, use) => {
    const stack = newStack();
    const table = LeaseTable.fromLeaseTableArn(stack, "Leases", ofAnotherRegion);
    expect(() => use(stack, table)).toThrow(message(user));
  });

  test("can be granted to a function that has a client of that region", () => {
    const stack = newStack();
    const table = LeaseTable.fromLeaseTableArn(stack, "Leases", ofAnotherRegion);
    table.grants.useLeases(functionIn(stack, "Worker"));
    expect(table.nameFor(stack)).toBe(ofAnotherRegion);
  });
});

test.each<[string, (stack: Stack, tableArn: string) => ILeaseTable]>([
  ["where it is made", (stack) => new LeaseTable(stack, "Leases", { tableName: "leases" })],
  ["where it is imported by its name", (stack) => LeaseTable.fromLeaseTableName(stack, "Leases", "leases")],
  [
    "where it is imported by its ARN",
    (stack, tableArn) => LeaseTable.fromLeaseTableArn(stack, "Leases", tableArn),
  ],
  ["by the deprecated name of the first", (stack) => LeaseTable.fromTableName(stack, "Leases", "leases")],
  ["by that of the second", (stack, tableArn) => LeaseTable.fromTableArn(stack, "Leases", tableArn)],
  ["by its attributes", (stack, tableArn) => LeaseTable.fromTableAttributes(stack, "Leases", { tableArn })],
])(
  "a table of this account and region is addressed by its name %s, also in a stack for any account",
  (_, make) => {
    for (const stack of [newStack(), newStack({})]) {
      const ofItsOwn = stack.formatArn({ service: "dynamodb", resource: "table", resourceName: "leases" });
      const table = make(stack, ofItsOwn);
      expect(stack.resolve(table.nameFor(stack))).toEqual(stack.resolve(table.tableName));
    }
    const known = newStack();
    expect(make(known, arn(env.account, env.region)).nameFor(known)).not.toContain("arn:");
  },
);

test("a table whose account only a deployment knows is addressed by its ARN, which means the same everywhere", () => {
  const stack = newStack();
  const table = LeaseTable.fromLeaseTableArn(stack, "Leases", Fn.importValue("LeaseTableArn"));
  useEverywhere(stack, table);
  expect(stack.resolve(table.nameFor(stack))).toEqual({ "Fn::ImportValue": "LeaseTableArn" });
  const open = newStack({});
  const other = LeaseTable.fromLeaseTableArn(open, "Leases", ofAnotherAccount);
  expect(other.nameFor(open)).toBe(ofAnotherAccount);
});

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
  const table = only(Template.fromStack(owner).findResources("AWS::DynamoDB::GlobalTable"));
  return table.Properties.Replicas[0].ResourcePolicy?.PolicyDocument.Statement ?? [];
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
    const key = only(Template.fromStack(owner).findResources("AWS::KMS::Key"));
    const statements: { Principal: unknown; Action: unknown }[] = key.Properties.KeyPolicy.Statement;
    const permitted = statements.filter(({ Principal }) =>
      JSON.stringify(Principal).includes(theirs.account),
    );
    expect(permitted.map(({ Action }) => Action)).toEqual([
      expect.arrayContaining(["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey*"]),
    ]);
  });

  test("says whose the other half is: the other account's, or that of the table's owner", () => {
    const { owner, table } = newWorld();
    table.grants.useLeases(Role.fromRoleArn(owner, "Worker", theirRole));
    const ofRole =
      "the table permits Owner/Worker, whose account has to permit it as well, by a policy of that role or user";
    Annotations.fromStack(owner).hasInfo("/Owner/Leases", Match.stringLikeRegexp(ofRole));
    const stack = newStack({ env }, new App(), "Team");
    LeaseTable.fromLeaseTableArn(stack, "Leases", ofAnotherAccount).grants.useLeases(newRole(stack));
    const ofTable =
      "the table is of the account 444455556666, whose owner has to permit the account 111122223333";
    Annotations.fromStack(stack).hasInfo("/Team/Leases", Match.stringLikeRegexp(ofTable));
  });
});

const neither =
  /cannot be permitted to use Team\/Leases: this app defines neither the principal nor the table, .*; grant it in the app/;
test.each<[string, (stack: Stack) => IGrantable, RegExp, ((stack: Stack) => ILeaseTable)?]>([
  [
    "a role of another app on a table of another",
    (stack) => Role.fromRoleArn(stack, "Worker", theirRole),
    neither,
  ],
  ["an account on such a table", () => new AccountPrincipal(theirs.account), neither],
  [
    "another account on a table with the key aws/dynamodb, which cannot be shared",
    (stack) => Role.fromRoleArn(stack, "Worker", theirRole),
    /^Team\/Leases is encrypted with the key aws\/dynamodb, which Team\/Worker of another account cannot use: encrypt the table with TableEncryptionV2.customerManagedKey\(\), or leave encryption out$/,
    (stack) => new LeaseTable(stack, "Leases", { encryption: TableEncryptionV2.awsManagedKey() }),
  ],
  [
    "a service, which acts by a role",
    () => new ServicePrincipal("lambda.amazonaws.com"),
    /is a service of AWS, which acts by a role: grant to that role/,
    (stack) => new LeaseTable(stack, "Leases"),
  ],
])("a grant is refused to %s", (_, granteeIn, message, tableIn) => {
  const stack = newStack({ env }, new App(), "Team");
  const table = tableIn?.(stack) ?? LeaseTable.fromLeaseTableArn(stack, "Leases", ofAnotherAccount);
  expect(() => table.grants.useLeases(granteeIn(stack))).toThrow(message);
});

describe("a grant within the account", () => {
  test("leaves the table's own policy alone", () => {
    const { owner, table } = newWorld();
    table.grants.useLeases(newRole(owner));
    table.grants.inspect(Role.fromRoleArn(owner, "Imported", "arn:aws:iam::111122223333:role/own"));
    expect(policyOfTable(owner)).toEqual([]);
    Annotations.fromStack(owner).hasNoInfo("*", Match.anyValue());
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
    const text = JSON.stringify(statementsIn(Template.fromStack(owner)));
    expect(text).toContain('["kms:Decrypt","kms:DescribeKey"]');
    expect(text).toContain(replicaKey);
    expect(text).not.toContain("kms:Encrypt");
  });
});
