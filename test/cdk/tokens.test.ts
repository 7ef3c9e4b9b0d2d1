import {
  LeasedWorkflow,
  type LeasedWorkflowProps,
  LeaseHeartbeat,
  LeaseTable,
  type LeaseTableProps,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { Aws, CfnParameter, Duration, Lazy, type Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { TableEncryptionV2 } from "aws-cdk-lib/aws-dynamodb";
import { Key } from "aws-cdk-lib/aws-kms";
import { Pass, Result } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import { newStack } from "../support/constructs.ts";
import { definitionsIn, problemsIn } from "../support/definitions.ts";
import { JobWorld } from "../support/jobs.ts";

function newWorld() {
  const stack = newStack({});
  return { stack, table: new LeaseTable(stack, "Leases") };
}

/** What the states named Values give. */
function resultsIn(definition: unknown): unknown[] {
  if (typeof definition !== "object" || definition === null) return [];
  return Object.entries(definition).flatMap(([name, value]) =>
    name === "Values" ? [(value as { Result: unknown }).Result] : resultsIn(value),
  );
}

const later = (): number => Lazy.number({ produce: () => 60_000 });

test.each<Partial<LeasedWorkflowProps>>([
  { leaseDuration: Duration.seconds(later()) },
  { lockAtLeastFor: Duration.millis(later()) },
  { clockSkew: Duration.millis(later()) },
  { retention: Duration.seconds(later()) },
])(
  "a duration known at deployment only is refused to a workflow and to a heartbeat, by its name (%#)",
  (props) => {
    const { stack, table } = newWorld();
    const { retention } = props;
    const message = `${Object.keys(props)[0]} is known at deployment only, and a state machine's definition is made of it`;
    const work = new Pass(stack, "Nothing");
    expect(() => new LeasedWorkflow(stack, "Import", { table, work, ...props })).toThrow(message);
    if (retention)
      expect(() => new LeaseHeartbeat(stack, "Heartbeat", { table, retention })).toThrow(message);
  },
);

describe("a value in a workflow's own work that is known at deployment only", () => {
  test("stays the number, the list or the text that it will be", () => {
    const { stack, table } = newWorld();
    const count = new CfnParameter(stack, "Count", { type: "Number" });
    // The stand-in for its value is its name.
    count.overrideLogicalId("42");
    const later = Lazy.string({ produce: () => 'with "quotes"' });
    const values = {
      count: count.valueAsNumber,
      produced: Lazy.number({ produce: () => 5 }),
      list: Lazy.list({ produce: () => ["a", "b"] }),
      object: Lazy.any({ produce: () => ({ inside: true }) }),
      text: `before ${later} after`,
      stackName: Aws.STACK_NAME,
    };
    const work = new Pass(stack, "Values", { result: Result.fromObject(values) });
    new LeasedWorkflow(stack, "Import", { table, key: "import", work });
    expect(Object.values(definitionsIn(Template.fromStack(stack))).flatMap(resultsIn)).toEqual([
      {
        count: 42,
        produced: 5,
        list: ["a", "b"],
        object: { inside: true },
        text: 'before with "quotes" after',
        stackName: "AWS::StackName",
      },
    ]);
  });
});

describe("a key or a name that is known later", () => {
  test.each(["lambda", "lockedLambda"] as const)("can be a job's, of the target %s", (kind) => {
    for (const props of [{ key: Aws.STACK_NAME }, { jobName: Aws.STACK_NAME }]) {
      const world = new JobWorld();
      const target = SingletonJobTarget[kind](world.fn);
      const text = JSON.stringify(world.templateOf({ target, ...props }).toJSON());
      expect(text).toContain('"dynamodb:LeadingKeys":[{"Ref":"AWS::StackName"}]');
    }
  });

  test.each(["plain", 'with "quotes" and a\\b', "`c` 'd'\ne"])(
    "can be a workflow's, whatever is in it: %j",
    (key) => {
      const definitions = ["now", "later"].map((when) => {
        const { stack, table } = newWorld();
        const given = when === "now" ? key : Lazy.string({ produce: () => key });
        new LeasedWorkflow(stack, "Import", { table, key: given, work: new Pass(stack, "Nothing") });
        return definitionsIn(Template.fromStack(stack));
      });
      expect(definitions[1]).toEqual(definitions[0]);
    },
  );

  test("can be the table's", () => {
    const { stack } = newWorld();
    const tableName = new CfnParameter(stack, "Name").valueAsString;
    const table = new LeaseTable(stack, "Named", { tableName });
    new LeasedWorkflow(stack, "Import", { table, key: "import", work: new Pass(stack, "Nothing") });
    expect(problemsIn(Template.fromStack(stack))).toEqual([]);
  });
});

describe("a table in a stack that leaves its region open", () => {
  test.each<[string, (stack: Stack) => LeaseTableProps]>([
    ["encryption", (stack) => ({ encryption: TableEncryptionV2.customerManagedKey(new Key(stack, "Key")) })],
    ["encryption", () => ({ encryption: TableEncryptionV2.awsManagedKey() })],
    ["replicas", () => ({ replicas: [{ region: "us-east-1" }] })],
    ["witnessRegion", () => ({ witnessRegion: "us-east-1" })],
  ])("cannot have %s, which needs it, and says what to set (%#)", (prop, propsIn) => {
    const stack = newStack({ env: { account: "111122223333" } });
    expect(() => new LeaseTable(stack, "Leases", propsIn(stack))).toThrow(
      `${prop} of Test/Leases needs to know the region, which the stack Test leaves open: set env.region of the stack, ` +
        'as in { env: { region: "eu-west-1" } }',
    );
  });

  test("can have the key that AWS owns", () => {
    const stack = newStack({});
    new LeaseTable(stack, "Leases", { encryption: TableEncryptionV2.dynamoOwnedKey(), replicas: [] });
    Template.fromStack(stack).resourceCountIs("AWS::DynamoDB::GlobalTable", 1);
  });
});
