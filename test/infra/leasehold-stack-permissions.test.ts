import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { acceptanceJobKey, acceptanceWorkflowKey } from "../../functions/acceptance/schema.ts";
import { departmentKeyPrefix } from "../../functions/admit-tickets/schema.ts";
import { taskKeyPrefix } from "../../functions/claim-tasks/schema.ts";
import { closeUnpaidOrdersKey } from "../../functions/close-unpaid-orders/job.ts";
import { transferKey } from "../../functions/import-orders/schema.ts";
import { cacheKeyPrefix } from "../../functions/resource-cache/schema.ts";
import { sharedKeyPrefix } from "../../infra/lease-functions.ts";
import { referenceTo, resourcesOf } from "../support/cloudformation.ts";
import { leaseholdTemplate } from "../support/cloudformation-app.ts";

const { json } = leaseholdTemplate();

interface Statement {
  readonly Effect: string;
  readonly Action: string | string[];
  readonly Resource: unknown;
  readonly Condition?: Record<string, Record<string, unknown>>;
}

/** All that the policies permit to a role, by the role's logical id. */
const permitted = new Map<string, Statement[]>();
for (const [, { Properties }] of resourcesOf(json, "AWS::IAM::Policy")) {
  const { Statement } = Properties.PolicyDocument as { Statement: Statement[] };
  for (const role of Properties.Roles as unknown[]) {
    const id = referenceTo(role) ?? "";
    permitted.set(id, [...(permitted.get(id) ?? []), ...Statement]);
  }
}

function listed(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [value];
}

/** What the role of a function or a state machine may do, by the name that its logical id begins with. */
function statementsOf(name: string): Statement[] {
  const [resource] = Object.entries(json.Resources).filter(
    ([id, { Type }]) => id.startsWith(name) && /::(Function|StateMachine)$/.test(Type),
  );
  const { Role, RoleArn } = resource?.[1].Properties ?? {};
  return permitted.get(referenceTo(Role ?? RoleArn) ?? "") ?? [];
}

/** Actions on tables, by the table's logical id; streams aside. */
function onTables(name: string): Record<string, string[]> {
  const actions: Record<string, string[]> = {};
  for (const { Action, Resource } of statementsOf(name)) {
    for (const target of listed(Resource)) {
      const id = referenceTo(target) ?? "";
      const attribute = (target as { "Fn::GetAtt"?: string[] })["Fn::GetAtt"]?.[1];
      if (json.Resources[id]?.Type !== "AWS::DynamoDB::GlobalTable" || attribute === "StreamArn") continue;
      actions[id] = [...(actions[id] ?? []), ...(listed(Action) as string[])].sort();
    }
  }
  return actions;
}

function tableNamed(name: string): string {
  const [id] = resourcesOf(json, "AWS::DynamoDB::GlobalTable").find(([it]) => it.startsWith(name)) ?? [];
  return id ?? `no table ${name}`;
}

const use = ["ConditionCheckItem", "GetItem", "PartiQLUpdate", "UpdateItem"].map((it) => `dynamodb:${it}`);
const usePrimitives = [...use, "dynamodb:DeleteItem", "dynamodb:Query"].sort();
const leases = tableNamed("Leases");

interface System {
  readonly name: string;
  readonly folder: string;
  /** Its file in the folder. @default "handler.ts" */
  readonly entry?: string;
  /** Its own; none where the lease table has all. */
  readonly table?: string;
  readonly keys: string;
  readonly onLeases: string[];
}

const systems: System[] = [
  { name: "AcceptanceRun", folder: "acceptance", keys: acceptanceJobKey, onLeases: use },
  {
    name: "UnpaidOrdersClose",
    folder: "close-unpaid-orders",
    table: "UnpaidOrders",
    keys: closeUnpaidOrdersKey,
    onLeases: use,
  },
  {
    name: "UnpaidOrdersReport",
    folder: "close-unpaid-orders",
    entry: "report.ts",
    table: "UnpaidOrders",
    keys: closeUnpaidOrdersKey,
    onLeases: usePrimitives,
  },
  { name: "ImportsTransfer", folder: "import-orders", table: "Imports", keys: transferKey, onLeases: use },
  {
    name: "StockLevels",
    folder: "resource-cache",
    table: "StockLevels",
    keys: `${cacheKeyPrefix}*`,
    onLeases: usePrimitives,
  },
  {
    name: "TasksWorker",
    folder: "claim-tasks",
    table: "TasksRegister",
    keys: `${taskKeyPrefix}*`,
    onLeases: usePrimitives,
  },
  {
    name: "TasksRestart",
    folder: "claim-tasks",
    entry: "restart.ts",
    table: "TasksRegister",
    keys: `${taskKeyPrefix}*`,
    onLeases: usePrimitives,
  },
  { name: "TicketsAdmission", folder: "admit-tickets", keys: `${departmentKeyPrefix}*`, onLeases: use },
  {
    name: "TicketsCleaner",
    folder: "admit-tickets",
    entry: "cleaner.ts",
    keys: `${departmentKeyPrefix}*`,
    // To find the desks that are held it lists the leases, which no key can limit.
    // It has a run history of its own, under another key.
    onLeases: [...use, ...usePrimitives, "dynamodb:Scan"].sort(),
  },
];

test("each function has a role of its own", () => {
  const roles = resourcesOf(json, "AWS::Lambda::Function").map(([, { Properties }]) =>
    referenceTo(Properties.Role),
  );
  expect(new Set(roles).size).toBe(roles.length);
});

describe.each(systems)("the function $name", ({ name, folder, entry, table, keys, onLeases }) => {
  test("touches its own table, if it has one, and the leases, and on its own table does what its code does and no more", () => {
    const own = table === undefined ? {} : { [tableNamed(table)]: actionsIn(folder, entry) };
    expect(onTables(name)).toEqual({ ...own, [leases]: onLeases });
    if (table === undefined) expect(actionsIn(folder, entry)).toEqual([]);
  });

  test("uses the locks of its own keys", () => {
    const statement = statementsOf(name).find(({ Resource }) => referenceTo(Resource) === leases);
    expect(statement?.Condition).toEqual({
      "ForAllValues:StringLike": { "dynamodb:LeadingKeys": [keys] },
      Null: { "dynamodb:LeadingKeys": "false" },
    });
  });
});

test.each([
  ["HeartbeatStateMachine", [transferKey, acceptanceWorkflowKey, `${sharedKeyPrefix}*`]],
  ["HeartbeatEndedStateMachine", [transferKey, acceptanceWorkflowKey, `${sharedKeyPrefix}*`]],
  ["ImportsWorkflowStateMachine", [transferKey]],
])("%s uses the locks of the keys that it has to do with, and no others", (name, keys) => {
  const onLeases = statementsOf(name).filter(({ Resource }) =>
    listed(Resource).some((resource) => referenceTo(resource) === leases),
  );
  expect(onLeases).not.toHaveLength(0);
  for (const { Condition } of onLeases) {
    expect(Condition).toEqual({
      "ForAllValues:StringLike": { "dynamodb:LeadingKeys": keys },
      Null: { "dynamodb:LeadingKeys": "false" },
    });
  }
});

describe("keepers of leases", () => {
  test.each(["HeartbeatStateMachine", "HeartbeatEndedStateMachine"])(
    "%s looks, renews and releases",
    (name) => {
      expect(onTables(name)).toEqual({ [leases]: ["dynamodb:GetItem", "dynamodb:UpdateItem"] });
    },
  );
});

describe("the functions about leases", () => {
  test.each(["Acquire", "Renew", "Release"])("%s uses locks of shared keys, and no others", (name) => {
    expect(onTables(`LeaseFunctions${name}`)).toEqual({ [leases]: use });
    const [, statement] = statementsOf(`LeaseFunctions${name}`);
    expect(statement?.Condition?.["ForAllValues:StringLike"]).toEqual({
      "dynamodb:LeadingKeys": ["shared/*"],
    });
  });

  test("shared keys are none of the app's own", () => {
    for (const { keys } of systems) expect(keys).not.toMatch(/^shared\//);
  });

  test("Wake finds, wakes and removes waiters, and sees who holds a lock", () => {
    const actions = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:Query"];
    expect(onTables("LeaseFunctionsWake")).toEqual({ [leases]: actions });
    const wakes = statementsOf("LeaseFunctionsWake").find(
      ({ Action }) => Action === "states:SendTaskSuccess",
    );
    const woken = listed(wakes?.Resource).map((resource) => referenceTo(resource)?.split("StateMachine")[0]);
    expect(woken.sort()).toEqual(["AcceptanceWorkflow", "ImportsWorkflow"]);
  });

  test("Expired touches no table", () => {
    expect(onTables("LeaseFunctionsExpired")).toEqual({});
  });
});

/** What the code of a handler, and of whatever it imports from its folder, does with its table. */
function actionsIn(folder: string, entry = "handler.ts"): string[] {
  const seen = new Set<string>();
  const source = (file: string): string => {
    if (seen.has(file)) return "";
    seen.add(file);
    const text = readFileSync(join("functions", folder, file), "utf8");
    const imported = [...text.matchAll(/from "\.\/([a-z-]+\.ts)"/g)].map(([, name = ""]) => source(name));
    return [text, ...imported].join("\n");
  };
  const text = source(entry);
  const signs: Record<string, RegExp> = {
    Query: /\b(paginateQuery\(|new QueryCommand)/,
    GetItem: /\b(new GetCommand|putBack\()/,
    BatchGetItem: /\bnew BatchGetCommand/,
    PutItem: /\b(new PutCommand|Put: \{|putBack\()/,
    UpdateItem: /\b(new UpdateCommand|Update: [{\w])/,
    DeleteItem: /\b(new DeleteCommand|Delete: [{\w]|putBack\()/,
  };
  return Object.entries(signs)
    .filter(([, sign]) => sign.test(text))
    .map(([action]) => `dynamodb:${action}`)
    .sort();
}
