import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import { describe, expect, test } from "vitest";
import { leaseholdTemplate } from "../support/cloudformation-app.ts";
import { type Bindings, evaluateDefinition } from "../support/cloudformation-expressions.ts";
import { definitionsIn } from "../support/definitions.ts";

const definitions = definitionsIn(leaseholdTemplate().template);

const now = Date.now();
const tableName = Object.keys(definitions).length > 0 ? tableNameIn(definitions) : "";
const execution = "arn:aws:states:us-east-1:123456789012:execution:import:one";
const lease = {
  tableName,
  key: "import-orders",
  owner: `workflow:${execution}`,
  token: "mine",
  version: 3,
  fencingToken: 7,
  acquiredAt: now - 20_000,
  expiresAt: now + 60_000,
  leaseDurationMs: 180_000,
};

/** The lease item as DynamoDB's API gives it. */
function item(differences: Partial<typeof lease> = {}, more: Record<string, string> = {}): object {
  const { owner, token, version, fencingToken, acquiredAt, expiresAt, leaseDurationMs } = {
    ...lease,
    ...differences,
  };
  const texts = { owner, token, ...more };
  const timeToLive = Math.ceil(expiresAt / 1000);
  const numbers = { version, fence: fencingToken, acquiredAt, expiresAt, leaseDurationMs, timeToLive };
  const named = (values: Record<string, unknown>, type: "S" | "N"): [string, object][] =>
    Object.entries(values).map(([name, value]) => [
      attributeNames[name as keyof typeof attributeNames],
      { [type]: String(value) },
    ]);
  return Object.fromEntries([...named(texts, "S"), ...named(numbers, "N")]);
}

function released(by: string): object {
  const { [attributeNames.token]: _, ...free } = item({}, { releasedToken: by }) as Record<string, unknown>;
  return free;
}

/** Whatever may be in the table: ours, somebody else's, dead, asked to stop, let go by us or by another, gone. */
const records: readonly object[] = [
  item(),
  item({ token: "theirs" }),
  item({ token: "closed:mine" }),
  item({ owner: "somebody else" }),
  item({ token: "theirs", expiresAt: now - 60_000 }),
  item({}, { revocation: "replaced" }),
  released("mine"),
  released("theirs"),
  {},
];

const variables = {
  key: lease.key,
  token: lease.token,
  version: lease.version,
  fence: lease.fencingToken,
  owner: lease.owner,
  reason: "held",
  cooldownUntil: now,
  waitingSince: now,
  waitUntil: now + 3_600_000,
  parks: 0,
  watched: { token: lease.token, version: lease.version, since: now },
  lease,
  record: item(),
  failure: { Error: "States.TaskFailed", Cause: "it broke" },
  leaseDurationMs: lease.leaseDurationMs,
  expiresAt: lease.expiresAt,
  pause: 60,
  beat: 60,
  generation: 0,
  taskToken: "",
  events: 40,
  handOverAt: 12_000,
  handOvers: 0,
  answers: 0,
  troubles: 0,
  blindLooks: 0,
  deniedLooks: 0,
  lookAt: now + 60_000,
  stops: 1,
  denied: false,
  problem: "none",
  begun: true,
  isStopping: false,
  isHeld: true,
  isRevoked: false,
  loss: "nothing",
  execution,
  guarded: execution,
  ended: execution,
  replaced: 0,
  hasKept: true,
  sortKey: leaseSortKey,
  mayBePermit: false,
  seat: "",
  timeToLive: Math.ceil(lease.expiresAt / 1000),
  until: now + 3_600_000,
  status: "RUNNING",
  handle: lease,
  chunksLeft: 3,
  executions: 2,
};

/** Turns that executions take. */
const turns: readonly Partial<typeof variables>[] = [
  {},
  ...records.flatMap((record) => [{ record }, { record, guarded: "nobody" }]),
  { parks: 40, record: item({ token: "theirs", expiresAt: now - 60_000 }) },
  { waitUntil: now - 1, record: item({ token: "theirs" }) },
  { status: "SUCCEEDED" },
  { status: "GONE" },
  { begun: false },
  { begun: false, denied: true },
  { begun: false, guarded: "nobody" },
  { taskToken: "task-token" },
  { answers: 5 },
  { isStopping: true },
  { isRevoked: true },
  { isHeld: false },
  { isHeld: false, stops: 0 },
  { isRevoked: true, events: 13_000 },
  { status: "STOPPED", isHeld: true, stops: 0 },
  { status: "STOPPED", isHeld: true, isRevoked: true },
  { status: "STOPPED", isHeld: true, stops: 1 },
  { status: "STOPPED", isHeld: false, stops: 0 },
  { status: "STOPPED", isHeld: false, stops: 1 },
  { status: "PENDING_REDRIVE" },
  { deniedLooks: 6 },
  { blindLooks: 1 },
  { blindLooks: 3, lookAt: now - 1 },
  { blindLooks: 3, troubles: 5 },
  { troubles: 5 },
  { events: 12_000 },
  { events: 18_000 },
  { events: 18_000, guarded: "nobody" },
  { events: 24_500 },
  { until: now - 1 },
  { replaced: 20 },
  { hasKept: false, record: item({ token: "theirs" }) },
  { chunksLeft: 0 },
  { expiresAt: now - 1 },
  { expiresAt: now - 1, guarded: "nobody" },
  { guarded: "nobody" },
];

const inputs: readonly object[] = [
  { kind: "import", result: "transferred", isDone: false, lease, guarded: execution, execution },
  {
    kind: "import",
    result: "nothingLeft",
    isDone: true,
    lease,
    until: now + 60_000,
    generation: 2,
    execution,
  },
  {
    kind: "import",
    result: "",
    isDone: false,
    lease,
    guarded: execution,
    taskToken: "task-token",
    generation: 1,
    execution,
  },
  { result: "nothing that a keeper knows", isDone: false, lease, execution },
  {
    key: lease.key,
    result: "",
    isDone: false,
    lease,
    detail: { executionArn: execution, status: "FAILED" },
    execution,
  },
  {
    result: "",
    isDone: false,
    lease,
    detail: { executionArn: execution, status: "FAILED", input: JSON.stringify(lease) },
    execution,
  },
  ...[
    { lease, guarded: execution },
    { lease, guarded: execution, generation: 2, replaced: 3 },
    { lease, until: now + 60_000 },
    {},
  ].map((kept) => ({
    result: "",
    isDone: false,
    lease,
    detail: {
      executionArn: execution,
      stateMachineArn: keeperArnIn(definitions),
      status: "ABORTED",
      input: JSON.stringify(kept),
      error: null,
    },
    execution,
  })),
];

/** What a state's service answers; several things where the states behind it go several ways. */
function answersOf({ Type, Resource }: Readonly<Record<string, unknown>>): readonly unknown[] {
  const action = String(Resource).split(":").slice(5).join(":").replace(/^:/, "");
  if (Type !== "Task") return [[{ result: "nothingLeft" }]];
  switch (action) {
    case "aws-sdk:dynamodb:updateItem":
      return [{ Attributes: item() }, { Attributes: item({}, { revocation: "replaced" }) }];
    case "aws-sdk:dynamodb:getItem":
      return [{ Item: item() }, {}];
    case "aws-sdk:dynamodb:transactWriteItems.waitForTaskToken":
      return [{ key: lease.key }];
    case "aws-sdk:sfn:describeExecution":
      return [{ ExecutionArn: execution, Status: "RUNNING" }];
    case "aws-sdk:sfn:startExecution.waitForTaskToken":
    case "aws-sdk:sfn:sendTaskSuccess":
    case "aws-sdk:sfn:sendTaskFailure":
      return [{}];
    case "aws-sdk:sfn:startExecution":
      return [{ ExecutionArn: execution, StartDate: new Date(now).toISOString() }];
    case "aws-sdk:sfn:stopExecution":
      return [{ StopDate: new Date(now).toISOString() }];
    case "states:startExecution.sync:2":
      return [{ ExecutionArn: execution, Output: { isDone: false } }];
    case "lambda:invoke":
      return [{ StatusCode: 200, Payload: { result: "transferred", chunk: "2026-03-01/7" } }];
    default:
      throw new Error(`no answer of ${action}: give one, so that its expressions can be evaluated`);
  }
}

/** A lock that nobody holds is not taken over: JudgeHolder has seen to that. */
function canTake(name: string, { record = variables.record }: Partial<typeof variables>): boolean {
  return !name.endsWith("TakeOver") || attributeNames.token in record;
}

/** The keeper's variables have their plain names, a workflow's a prefix: its work's are beside them. */
function named(values: Record<string, unknown>): Record<string, unknown> {
  const prefixed = Object.entries(values).map(([name, value]) => [`leasehold_${name}`, value]);
  return { ...values, ...Object.fromEntries(prefixed) };
}

function bindingsOf(state: Readonly<Record<string, unknown>>, name: string): Bindings[] {
  const [first] = inputs;
  const context = {
    Execution: {
      Id: execution,
      Name: "one",
      Input: first,
      StartTime: new Date(now).toISOString(),
      RedriveCount: 0,
    },
    StateMachine: { Id: "arn:aws:states:us-east-1:123456789012:stateMachine:import", Name: "import" },
    State: { Name: "S", EnteredTime: new Date(now).toISOString(), RetryCount: 0 },
    Task: { Token: "task-token" },
  };
  const errorOutput = { Error: "States.TaskFailed", Cause: "it broke" };
  const rest = { context, errorOutput };
  return [
    ...turns
      .filter((turn) => canTake(name, turn))
      .map((turn) => ({
        ...rest,
        input: first,
        result: answersOf(state)[0],
        variables: named({ ...variables, ...turn }),
      })),
    ...inputs.map((input) => ({ ...rest, input, result: answersOf(state)[0], variables: named(variables) })),
    ...answersOf(state).map((result) => ({ ...rest, input: first, result, variables: named(variables) })),
  ];
}

/** The table's name as the definitions have it: they compare a lease's with it. */
function tableNameIn(all: Record<string, unknown>): string {
  return /"TableName":"([^"]+)"/.exec(JSON.stringify(all))?.[1] ?? "";
}

/** The keeper's ARN as the machine has it that replaces keepers. */
function keeperArnIn(all: Record<string, unknown>): string {
  return /stateMachineArn = '([^']+)'/.exec(JSON.stringify(all))?.[1] ?? "";
}

describe.each(Object.entries(definitions))("the expressions of %s", (_, definition) => {
  test("are evaluated by the real jsonata: none fails, gives nothing, or gives what its field cannot take", async () => {
    const { problems, untouched } = await evaluateDefinition(definition, bindingsOf);
    expect([...problems]).toEqual([]);
    expect(untouched).toEqual([]);
  });
});

describe("an expression is told of that", () => {
  const task = { Type: "Task", Resource: "arn:aws:states:::aws-sdk:dynamodb:updateItem" };
  test.each<[string, Record<string, unknown>, RegExp]>([
    ["fails", { ...task, Arguments: { A: "{% $number('many') %}" } }, /Arguments\/A: Unable to cast/],
    ["gives nothing", { ...task, Arguments: { A: "{% $states.input.nowhere %}" } }, /gives nothing/],
    [
      "reads a result before there is one",
      { ...task, Arguments: { A: "{% $states.result %}" } },
      /gives nothing/,
    ],
    ["is misspelt", { ...task, Assign: { key: "{% $tokn %}" } }, /gives nothing/],
    ["calls what is not there", { ...task, Output: "{% $shout('a') %}" }, /non-function/],
    ["assigns another kind", { ...task, Assign: { version: "{% 'one' %}" } }, /is string, and not number/],
    ["writes a number as a number", { ...task, Arguments: { K: { N: "{% 1 %}" } } }, /no attribute value/],
    ["waits for a fraction", { Type: "Wait", Seconds: "{% 0.5 %}" }, /no whole number/],
    ["decides nothing", { Type: "Choice", Choices: [{ Condition: "{% 'yes' %}" }] }, /no boolean/],
  ])("that %s", async (_, state, problem) => {
    const { problems } = await evaluateDefinition({ States: { S: state } }, bindingsOf);
    expect([...problems].join("\n")).toMatch(problem);
  });

  test("that nothing leads to", async () => {
    const Choices = [{ Condition: "{% true %}" }, { Condition: "{% false %}" }];
    const { untouched } = await evaluateDefinition(
      { States: { S: { Type: "Choice", Choices } } },
      bindingsOf,
    );
    expect(untouched).toEqual(["{% false %}"]);
  });
});
