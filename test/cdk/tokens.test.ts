import {
  LeasedWorkflow,
  type LeasedWorkflowProps,
  LeaseHeartbeat,
  LeaseTable,
  type LeaseTableProps,
  SingletonJob,
  type SingletonJobProps,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { Aws, CfnParameter, Duration, Lazy, type Stack } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import { TableEncryptionV2 } from "aws-cdk-lib/aws-dynamodb";
import { Key } from "aws-cdk-lib/aws-kms";
import { Pass, Result } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import { everyFiveMinutes, functionIn, newStack } from "../support/constructs.ts";
import { definitionsIn, problemsIn } from "../support/definitions.ts";

function newWorld() {
  const stack = newStack({});
  return { stack, table: new LeaseTable(stack, "Leases"), fn: functionIn(stack) };
}

type Kind = "lambda" | "lockedLambda";

function templateOf(kind: Kind, props: Partial<SingletonJobProps>): Template {
  const { stack, table, fn } = newWorld();
  const target = SingletonJobTarget[kind](fn);
  new SingletonJob(stack, "Job", {
    table,
    target,
    schedule: everyFiveMinutes,
    ...props,
  });
  return Template.fromStack(stack);
}

/** What the states named Values give. */
function resultsIn(definition: unknown): unknown[] {
  if (typeof definition !== "object" || definition === null) return [];
  return Object.entries(definition).flatMap(([name, value]) =>
    name === "Values" ? [(value as { Result: unknown }).Result] : resultsIn(value),
  );
}

const number = (): number => Lazy.number({ produce: () => 60_000 });
const seconds = (): Duration => Duration.seconds(number());
const millis = (): Duration => Duration.millis(number());

describe("a duration that is known at deployment only", () => {
  test.each([
    ["lockAtMostFor", "LEASEHOLD_LOCK_AT_MOST_FOR_MS", { heartbeat: Duration.minutes(1) }],
    ["lockAtLeastFor", "LEASEHOLD_LOCK_AT_LEAST_FOR_MS", { lockAtMostFor: Duration.minutes(3) }],
    ["heartbeat", "LEASEHOLD_HEARTBEAT_MS", { lockAtMostFor: Duration.minutes(3) }],
  ])("reaches a function that reads %s as it is, in milliseconds", (prop, variable, more) => {
    templateOf("lambda", { [prop]: millis(), ...more }).hasResourceProperties("AWS::Lambda::Function", {
      Environment: { Variables: Match.objectLike({ [variable]: "60000" }) },
    });
    expect(() => templateOf("lambda", { [prop]: seconds(), ...more })).toThrow(
      `${prop} is known at deployment only, in seconds, and CloudFormation cannot convert it to the milliseconds that the ` +
        "function reads: give it as Duration.millis(...), or as a plain number",
    );
  });

  test.each<[Kind, Partial<SingletonJobProps>, string]>([
    ["lockedLambda", { lockAtMostFor: seconds() }, ", and a state machine's"],
    ["lockedLambda", { lockAtLeastFor: millis() }, ", and a state machine's"],
    ["lambda", { maxEventAge: seconds() }, ", and how often to try again"],
    ["lambda", { maxInterval: seconds() }, ", and the alarms' periods"],
    ["lambda", { retryAttempts: number() }, ": set a whole number from 0"],
    ["lambda", { skipsInARow: number() }, ": set a whole number above 0"],
  ])("is refused to %s where something is worked out from it, by its name (%#)", (kind, props, why) => {
    const message = `${Object.keys(props)[0]} is known at deployment only${why}`;
    expect(() => templateOf(kind, props)).toThrow(message);
  });

  test.each<Partial<LeasedWorkflowProps>>([
    { leaseDuration: seconds() },
    { lockAtLeastFor: millis() },
    { clockSkew: millis() },
    { retention: seconds() },
  ])("is refused to a workflow and to a heartbeat, by its name (%#)", (props) => {
    const { stack, table } = newWorld();
    const [name = ""] = Object.keys(props);
    const message = `${name} is known at deployment only, and a state machine's definition is made of it`;
    const work = new Pass(stack, "Nothing");
    expect(() => new LeasedWorkflow(stack, "Import", { table, work, ...props })).toThrow(message);
    if (props.retention) {
      expect(() => new LeaseHeartbeat(stack, "Heartbeat", { table, retention: seconds() })).toThrow(message);
    }
  });

  test("may be a function's timeout: then a call that may still run is waited for by Lambda's own limit", () => {
    const { stack, table } = newWorld();
    const timeout = Duration.seconds(Lazy.number({ produce: () => 60 }));
    const target = SingletonJobTarget.lockedLambda(functionIn(stack, "Slow", { timeout }));
    new SingletonJob(stack, "Job", { table, target, schedule: everyFiveMinutes });
    expect(JSON.stringify(definitionsIn(Template.fromStack(stack)))).toMatch(/"TimeoutSeconds":[^,]*960/);
  });
});

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
  test.each<Kind>(["lambda", "lockedLambda"])("can be a job's, of the target %s", (kind) => {
    for (const props of [{ key: Aws.STACK_NAME }, { jobName: Aws.STACK_NAME }]) {
      const text = JSON.stringify(templateOf(kind, props).toJSON());
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
