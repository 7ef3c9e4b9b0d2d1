import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { cleanDesks } from "../../functions/admit-tickets/cleaner.ts";
import { admit } from "../../functions/admit-tickets/handler.ts";
import { agentKey } from "../../functions/admit-tickets/schema.ts";
import { makeSystemTables, type SystemTables } from "./functions-tables.ts";

/** Every department has one agent, but for those of several. */
const rules = {
  mostWaiting: 3,
  limits: new Map<string, number>(),
  agents: new Map([["several", 3]]),
  silenceMs: 60_000,
};

let system: SystemTables;
let department: string;
let departments = 0;

beforeAll(async () => {
  system = await makeSystemTables();
});
beforeEach(() => {
  department = `department-${++departments}`;
});
afterAll(() => system?.close());

/** Every event comes to an instance of its own. */
function ask(action: string, ticket?: string, more: object = {}): Promise<unknown> {
  const leases = system.leases.client({ dynamodb: system.documents });
  const event = { action, department, ...(ticket === undefined ? {} : { ticket }), ...more };
  return admit({ leases, tableName: system.leases.tableName, rules }, event);
}

describe("the admission of tickets", () => {
  test("of eight that come at once one is served, three wait, four are refused and told the queue's length", async () => {
    const names = Array.from({ length: 8 }, (_, index) => `t${index}`);
    const answers = (await Promise.all(names.map((name) => ask("enter", name)))) as {
      readonly state: string;
      readonly position?: number;
    }[];
    const states = answers.map(({ state }) => state).sort();
    expect(states).toEqual([...Array(4).fill("refused"), "serving", ...Array(3).fill("waiting")]);
    expect(answers).toContainEqual({ state: "refused", waiting: 3, mostWaiting: 3 });
    const positions = answers.flatMap(({ position }) => (position === undefined ? [] : [position]));
    expect(positions.sort()).toEqual([1, 2, 3]);
  });

  test("a ticket whose event is delivered many times at once has one place", async () => {
    await ask("enter", "a");
    await Promise.all(Array.from({ length: 6 }, () => ask("enter", "b")));
    expect(await ask("enter", "c")).toMatchObject({ state: "waiting", position: 2 });
    expect(await ask("next", "a")).toEqual({ serving: "b", waiting: 1 });
  });

  test("the desk's call, repeated many times at once, ends one service and calls one ticket", async () => {
    for (const name of ["a", "b", "c"]) await ask("enter", name);
    await Promise.all(Array.from({ length: 6 }, () => ask("next", "a")));
    expect(await ask("next")).toEqual({ serving: "b", waiting: 1 });
    expect(await ask("heartbeat", "c")).toMatchObject({ state: "waiting", position: 1 });
  });

  test("three agents that call at once, again and again, each get one ticket, in the order of the lines", async () => {
    department = "several";
    for (const name of ["a", "b", "c", "w1", "w2", "w3"]) await ask("enter", name);
    for (const name of ["p1", "p2"]) await ask("enter", name, { appointment: true });
    const calls = ["a", "b", "c"].flatMap((done, index) =>
      [1, 2].map(() => ask("next", done, { agent: index + 1 })),
    );
    await Promise.all([...calls, ...["w1", "p1", "w3"].map((name) => ask("heartbeat", name))]);
    const called = await Promise.all([1, 2, 3].map((agent) => ask("next", undefined, { agent })));
    const serving = (called as { serving: string }[]).map((answer) => answer.serving).sort();
    expect(serving).toEqual(["p1", "p2", "w1"]);
    expect(await ask("look")).toMatchObject({ waiting: ["w2", "w3"] });
    for (const name of serving) expect(await ask("heartbeat", name)).toMatchObject({ state: "serving" });
  });

  test("a dead ticket in service is replaced by the one that waits, and by the cleaner where nobody does", async () => {
    const key = agentKey(department, 1);
    await system.leases.deadLease(key);
    const leases = system.leases.client({ dynamodb: system.documents });
    const { removed } = await cleanDesks({ leases, remainingMs: () => 60_000 });
    expect(removed).toBeGreaterThanOrEqual(1);
    expect(await leases.inspect(key)).toBeUndefined();

    await system.leases.deadLease(key);
    expect(await ask("enter", "b")).toMatchObject({ state: "serving", ticket: "b" });
  });
});
