import { LeaseTable, TaskTrigger, type TaskTriggerProps } from "@leasehold/cdk";
import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { TaskSet } from "@leasehold/jobs";
import type { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { functionIn, newStack, only, permitted } from "../support/constructs.ts";
import { StreamedStore } from "../support/streamed-store.ts";

type Given = Partial<TaskTriggerProps>;

function templateOf(given: Given = {}): Template {
  const stack = newStack();
  const table = new LeaseTable(stack, "Leases", { stream: true });
  new TaskTrigger(stack, "Trigger", { table, worker: functionIn(stack), ...given });
  return Template.fromStack(stack);
}

const mappingOf = (template: Template) =>
  only(template.findResources("AWS::Lambda::EventSourceMapping")).Properties;

/** The changes of some calls on a set: what each has changed, and whether it starts the worker. */
async function starts(given: Given, setName: string, calls: (tasks: TaskSet) => Promise<unknown>) {
  const store = new StreamedStore(templateOf(given));
  await calls(new TaskSet(new LeaseClient({ store, clock: new ManualClock(), owner: "a" }), setName));
  return store.look();
}

describe("a trigger of task workers", () => {
  test("starts a worker for a new task and for a requeued one, and for no other change", async () => {
    const events = await starts({ keys: ["letters"] }, "letters", async (tasks) => {
      await tasks.add([{ id: "1", serialKey: "customer-42" }]);
      await (await tasks.claim())?.fail("no address", { final: true });
      await tasks.requeue("1");
    });
    expect(events).toEqual([
      ["task", true],
      ["task", false],
      ["serial", false],
      ["task", false],
      ["done", false],
      ["done", false],
      ["task", true],
    ]);
  });

  test.each<[string, Given, string, boolean]>([
    ["of a set that it names", { keys: ["a", "b"] }, "b", true],
    ["of another set", { keys: ["a", "b"] }, "c", false],
    ["of a set whose name begins so", { keys: ["a"], keyPrefixes: ["import/"] }, "import/1", true],
    ["of a set whose name begins otherwise", { keyPrefixes: ["import/"] }, "export/1", false],
    ["of any set, where it names none", {}, "any", true],
  ])("hears of a task %s: %s", async (_, given, setName, isHeard) => {
    expect(await starts(given, setName, (tasks) => tasks.add([{ id: "1" }]))).toEqual([["task", isHeard]]);
  });

  test("gives up a start that fails, and starts as many workers as it is told", () => {
    expect(mappingOf(templateOf({ parallelizationFactor: 4 }))).toMatchObject({
      BatchSize: 100,
      MaximumRetryAttempts: 2,
      MaximumRecordAgeInSeconds: 300,
      ParallelizationFactor: 4,
      StartingPosition: "LATEST",
    });
  });

  test("permits the worker to use these sets, and to read the stream", () => {
    const statements = permitted(templateOf({ keys: ["letters"] }), /^Work/);
    const use = statements.filter((one) => one.includes("UpdateItem"));
    expect(use).toEqual([expect.stringMatching(/ConditionCheckItem.*DeleteItem.*\["letters"\]$/)]);
    expect(statements.some((one) => one.includes("dynamodb:GetRecords"))).toBe(true);
  });

  test.each<[string, (stack: Stack, table: LeaseTable) => Given, RegExp]>([
    ["no set at all", () => ({ keys: [] }), /keys and keyPrefixes are empty/],
    ["an empty name", () => ({ keys: [""] }), /keys has an empty key/],
    ["a table without a stream", (stack) => ({ table: new LeaseTable(stack, "Other") }), /has no stream/],
    ["a worker that is none", () => ({ worker: "fn" as never }), /worker/],
    ["more workers than Lambda starts", () => ({ parallelizationFactor: 11 }), /parallelizationFactor/],
    [
      "a worker of another region",
      () => ({ worker: functionIn(newStack({ env: { account: "111122223333", region: "us-east-1" } })) }),
      /start workers of its own region/,
    ],
  ])("refuses %s", (_, given, message) => {
    const stack = newStack();
    const table = new LeaseTable(stack, "Leases", { stream: true });
    const props = { table, worker: functionIn(stack), ...given(stack, table) };
    expect(() => new TaskTrigger(stack, "Trigger", props)).toThrow(message);
  });
});
