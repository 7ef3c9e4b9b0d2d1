import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { acceptanceJobKey, acceptanceWorkflowKey } from "../../functions/acceptance/schema.ts";
import { cleaningKey, departmentKeyPrefix } from "../../functions/admit-tickets/schema.ts";
import { taskKeyPrefix } from "../../functions/claim-tasks/schema.ts";
import { closeUnpaidOrdersKey } from "../../functions/close-unpaid-orders/job.ts";
import { transferKey } from "../../functions/import-orders/schema.ts";
import { cacheKeyPrefix } from "../../functions/resource-cache/schema.ts";
import { sharedKeyPrefix } from "../../infra/lease-functions.ts";
import { referenceTo, resourcesOf } from "../support/cloudformation.ts";
import { leaseholdTemplate } from "../support/cloudformation-app.ts";
import { permission, permitted, statementsIn } from "../support/constructs.ts";

const { template, json } = leaseholdTemplate();

/** What the role of a function or a state machine may do on tables, streams aside: actions, table and keys. */
function onTables(name: string): string[] {
  const statements = statementsIn(template, new RegExp(`^${name}\\w*Role`));
  return statements
    .filter(({ Action }) =>
      [Action].flat().every((action) => /^dynamodb:(?!.*Stream|GetRecords)/.test(action)),
    )
    .map((statement) => permission(statement).replaceAll(/dynamodb:|(?<=<\w+)[0-9A-F]{8}(?=\.)/g, ""))
    .sort();
}

const using = (...keys: string[]): string =>
  `ConditionCheckItem,GetItem,PartiQLUpdate,UpdateItem <Leases.Arn> ${JSON.stringify(keys)}`;
const usingPrimitives = (...keys: string[]): string =>
  `ConditionCheckItem,DeleteItem,GetItem,PartiQLUpdate,Query,UpdateItem <Leases.Arn> ${JSON.stringify(keys)}`;
const keeping = (...keys: string[]): string => `GetItem,UpdateItem <Leases.Arn> ${JSON.stringify(keys)}`;

const shared = `${sharedKeyPrefix}*`;
const departments = `${departmentKeyPrefix}*`;
const kept = [transferKey, acceptanceWorkflowKey, shared];

/** The last of a row: what only another function calls of the files that both import. */
test.each<
  [name: string, onLeases: string | string[], file?: string, table?: string, ofOthers?: readonly string[]]
>([
  ["AcceptanceRun", using(acceptanceJobKey), "acceptance/handler.ts"],
  [
    "UnpaidOrdersClose",
    using(closeUnpaidOrdersKey),
    "close-unpaid-orders/handler.ts",
    "UnpaidOrdersShop",
    ["GetItem"],
  ],
  [
    "UnpaidOrdersReport",
    usingPrimitives(closeUnpaidOrdersKey),
    "close-unpaid-orders/report.ts",
    "UnpaidOrdersShop",
  ],
  ["ImportsTransfer", using(transferKey), "import-orders/handler.ts", "ImportsOrders"],
  ["StockLevels", usingPrimitives(`${cacheKeyPrefix}*`), "resource-cache/handler.ts", "StockLevelsMovements"],
  [
    "TasksWorker",
    usingPrimitives(`${taskKeyPrefix}*`),
    "claim-tasks/handler.ts",
    "TasksRegister",
    ["DeleteItem", "Query"],
  ],
  [
    "TasksRestart",
    usingPrimitives(`${taskKeyPrefix}*`),
    "claim-tasks/restart.ts",
    "TasksRegister",
    ["PutItem"],
  ],
  ["TicketsAdmission", using(departments), "admit-tickets/handler.ts"],
  [
    "TicketsCleaner",
    // To find the desks that are held it lists the leases, which no key can limit. Its runs have a history.
    [usingPrimitives(cleaningKey), using(departments), "Scan <Leases.Arn>"],
    "admit-tickets/cleaner.ts",
  ],
  ["HeartbeatStateMachine", keeping(...kept)],
  ["HeartbeatEndedStateMachine", keeping(...kept)],
  ["ImportsWorkflowStateMachine", using(transferKey)],
  ...["Acquire", "Renew", "Release"].map((id): [string, string] => [`LeaseFunctions${id}`, using(shared)]),
  // It finds, wakes and removes waiters, and sees who holds a lock.
  ["LeaseFunctionsWakeup", "DeleteItem,GetItem,Query <Leases.Arn>"],
  ["LeaseFunctionsExpired", []],
])(
  "%s uses its own locks, and on its own table does what its code does and no more",
  (name, onLeases, file, table, ofOthers = []) => {
    const actions = file === undefined ? [] : actionsIn(file);
    expect(actions.length === 0).toBe(table === undefined);
    expect(actions).toEqual(expect.arrayContaining([...ofOthers]));
    const needed = actions.filter((action) => !ofOthers.includes(action));
    const own = table === undefined ? [] : [`${needed} <${table}.Arn>`];
    expect(onTables(name)).toEqual([...own, ...[onLeases].flat()].sort());
  },
);

test("each function has a role of its own", () => {
  const roles = resourcesOf(json, "AWS::Lambda::Function").map(([, { Properties }]) =>
    referenceTo(Properties.Role),
  );
  expect(new Set(roles).size).toBe(roles.length);
});

test("shared keys are none of the app's own", () => {
  const own = [
    acceptanceJobKey,
    closeUnpaidOrdersKey,
    transferKey,
    cacheKeyPrefix,
    taskKeyPrefix,
    departments,
  ];
  expect(own.filter((key) => key.startsWith(sharedKeyPrefix))).toEqual([]);
});

test("Wake wakes the workflows that wait, and no others", () => {
  expect(permitted(template, /^LeaseFunctionsWakeup\w*Role/).at(-1)).toMatch(
    /^states:SendTaskSuccess \["<AcceptanceWorkflowStateMachine\w+>","<ImportsWorkflowStateMachine\w+>"\]$/,
  );
});

/** What the code of a handler, and of whatever it imports from its folder, does with its table. */
function actionsIn(file: string): string[] {
  const seen = new Set<string>();
  const source = (path: string): string => {
    if (seen.has(path)) return "";
    seen.add(path);
    const text = readFileSync(path, "utf8");
    const imported = [...text.matchAll(/from "(\.\/[a-z-]+\.ts)"/g)];
    return [text, ...imported.map(([, name = ""]) => source(join(dirname(path), name)))].join("\n");
  };
  const text = source(join("functions", file));
  const signs: Record<string, RegExp> = {
    BatchGetItem: /\bnew BatchGetCommand/,
    DeleteItem: /\b(new DeleteCommand|Delete: [{\w]|putBack\()/,
    GetItem: /\b(new GetCommand|putBack\()/,
    PutItem: /\b(new PutCommand|Put: \{|putBack\()/,
    Query: /\b(paginateQuery\(|new QueryCommand)/,
    UpdateItem: /\b(new UpdateCommand|Update: [{\w])/,
  };
  return Object.keys(signs).filter((action) => signs[action]?.test(text));
}
