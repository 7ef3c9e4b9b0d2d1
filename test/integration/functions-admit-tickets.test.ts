import { afterAll, beforeAll, expect, test } from "vitest";
import { admit } from "../../functions/admit-tickets/handler.ts";
import { makeSystemTables, type SystemTables } from "./functions-tables.ts";

let system: SystemTables;

beforeAll(async () => {
  system = await makeSystemTables();
});
afterAll(() => system?.close());

test("of eight tickets that come at once one is served, three wait, four are refused and told the queue's length", async () => {
  const { leases: table, documents } = system;
  const rules = { mostWaiting: 3, limits: new Map(), agents: new Map(), silenceMs: 60_000 };
  const enter = (ticket: string): Promise<unknown> => {
    // Every event comes to an instance of its own.
    const leases = table.client({ dynamodb: documents });
    const event = { action: "enter", department: "loans", ticket };
    return admit({ leases, tableName: table.tableName, rules }, event);
  };
  const answers = (await Promise.all(Array.from({ length: 8 }, (_, index) => enter(`t${index}`)))) as {
    readonly state: string;
    readonly position?: number;
  }[];
  const states = answers.map(({ state }) => state).sort();
  expect(states).toEqual([...Array(4).fill("refused"), "serving", ...Array(3).fill("waiting")]);
  expect(answers).toContainEqual({ state: "refused", waiting: 3, mostWaiting: 3 });
  const positions = answers.flatMap(({ position }) => (position === undefined ? [] : [position]));
  expect(positions.sort()).toEqual([1, 2, 3]);
});
