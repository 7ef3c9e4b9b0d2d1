import {
  type ILeaseTable,
  LeasedWorkflow,
  LeaseHeartbeat,
  LeaseTable,
  LeaseWakeup,
  SingletonJob,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { ManualClock } from "@leasehold/client/testing";
import { definitionProblems } from "@leasehold/local/definitions";
import { App, Fn, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import {
  env,
  everyFiveMinutes,
  functionIn,
  newStack,
  type Statement,
  statementsIn,
} from "../support/constructs.ts";
import { definitionsIn } from "../support/definitions.ts";
import { machineArn, StepFunctions } from "../support/step-functions.ts";

const arn = (account: string, region: string): string => `arn:aws:dynamodb:${region}:${account}:table/leases`;
const ofAnotherAccount = arn("444455556666", "eu-west-1");
const ofAnotherRegion = arn("111122223333", "us-east-1");

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
  const [fn] = Object.values(template.findResources("AWS::Lambda::Function")).filter(
    ({ Properties }) => Properties.Environment !== undefined,
  );
  return fn?.Properties.Environment.Variables;
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
    const definitions = definitionsIn(
      useEverywhere(stack, LeaseTable.fromLeaseTableArn(stack, "Leases", ofAnotherAccount)),
    );
    const clock = new ManualClock();
    const steps = new StepFunctions(clock);
    for (const [name, definition] of Object.entries(definitions)) {
      expect(definitionProblems(definition)).toEqual([]);
      steps.define(name, definition);
    }
    const name = Object.keys(definitions).find((id) => id.startsWith("ImportStateMachine")) ?? "";
    const { executionArn } = steps.machines.start({ stateMachineArn: machineArn(name), input: {} });
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
    const owner = new Stack(app, "Owner", { env: { ...env, account: "444455556666" } });
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

describe("a table of this account and region is addressed by its name", () => {
  test("where it is made", () => {
    const stack = newStack({});
    const table = new LeaseTable(stack, "Leases");
    expect(table.nameFor(stack)).toBe(table.tableName);
  });

  test("where it is imported, by its name or by an ARN of the stack's own, also in a stack for any account", () => {
    for (const stack of [newStack(), newStack({})]) {
      const ofItsOwn = stack.formatArn({ service: "dynamodb", resource: "table", resourceName: "leases" });
      const imported = [
        LeaseTable.fromLeaseTableName(stack, "Named", "leases"),
        LeaseTable.fromLeaseTableArn(stack, "ByArn", ofItsOwn),
        LeaseTable.fromTableName(stack, "OldNamed", "leases"),
      ];
      expect(imported.map((table) => table.nameFor(stack))).toEqual(["leases", "leases", "leases"]);
    }
  });

  test("where it is imported by its ARN, and the stack knows its own account; also by deprecated names", () => {
    const stack = newStack();
    const tableArn = arn(env.account, env.region);
    const imported = [
      LeaseTable.fromLeaseTableArn(stack, "Leases", tableArn),
      LeaseTable.fromTableArn(stack, "ByArn", tableArn),
      LeaseTable.fromTableAttributes(stack, "ByAttributes", { tableArn }),
    ];
    expect(imported.map((table) => table.nameFor(stack))).toEqual(["leases", "leases", "leases"]);
  });
});

test("a table whose account only a deployment knows is addressed by its ARN, which means the same everywhere", () => {
  const stack = newStack();
  const table = LeaseTable.fromLeaseTableArn(stack, "Leases", Fn.importValue("LeaseTableArn"));
  useEverywhere(stack, table);
  expect(stack.resolve(table.nameFor(stack))).toEqual({ "Fn::ImportValue": "LeaseTableArn" });
  const open = newStack({});
  const other = LeaseTable.fromLeaseTableArn(open, "Leases", ofAnotherAccount);
  expect(other.nameFor(open)).toBe(ofAnotherAccount);
});
