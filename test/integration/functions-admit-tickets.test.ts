import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Admission, admit } from "../../functions/admit-tickets/admission.ts";
import { DeskBook } from "../../functions/admit-tickets/desk-book.ts";
import { makeSystemTables, type SystemTables } from "./functions-tables.ts";

let system: SystemTables;
let desks: DeskBook;
let now = 1_000_000;
let department: string;
let departments = 0;

beforeAll(async () => {
  system = await makeSystemTables();
  desks = new DeskBook(system.documents, system.tableName);
});
beforeEach(() => {
  department = `department-${++departments}`;
});
afterAll(() => system?.close());

function admission(options: Partial<Admission> = {}): Admission {
  return {
    leases: system.leases.client({ dynamodb: system.documents }),
    desks,
    rules: { mostWaiting: 3, silenceMs: 60_000 },
    now: () => now,
    remainingMs: () => 60_000,
    ...options,
  };
}

function ask(action: string, ticket?: string, options: Partial<Admission> = {}): Promise<unknown> {
  return admit(admission(options), { action, department, ...(ticket === undefined ? {} : { ticket }) });
}

describe("the admission of tickets", () => {
  test("of eight that come at once one is served, three wait, four are refused and told the queue's length", async () => {
    const names = Array.from({ length: 8 }, (_, index) => `t${index}`);
    const answers = await Promise.all(names.map((name) => ask("enter", name)));
    const states = answers.map((answer) => (answer as { state: string }).state).sort();
    expect(states).toEqual([...Array(4).fill("refused"), "serving", ...Array(3).fill("waiting")]);
    expect(answers).toContainEqual({ state: "refused", waiting: 3, mostWaiting: 3 });
    const positions = answers.map((answer) => (answer as { position?: number }).position).filter(Boolean);
    expect(positions.sort()).toEqual([1, 2, 3]);
  });

  test("first come, first served, and the desk is told who is next", async () => {
    for (const name of ["a", "b", "c"]) await ask("enter", name);
    expect(await ask("next", "a")).toEqual({ serving: "b", waiting: 1 });
    expect(await ask("next", "a")).toEqual({ serving: "b", waiting: 1 });
    expect(await ask("leave", "b")).toEqual({ state: "absent", ticket: "b" });
    expect(await ask("heartbeat", "c")).toEqual({ state: "serving", ticket: "c" });
    expect(await ask("next", "c")).toEqual({ serving: undefined, waiting: 0 });
    expect(await ask("next")).toEqual({ serving: undefined, waiting: 0 });
  });

  test("an owner that comes again keeps its place", async () => {
    for (const name of ["a", "b", "c"]) await ask("enter", name);
    const again = { action: "enter", department, ticket: "b2", owner: "b" };
    expect(await admit(admission(), again)).toEqual({ state: "waiting", ticket: "b", position: 1 });
    expect(await ask("heartbeat", "b2")).toEqual({ state: "absent", ticket: "b2" });
  });

  test("waiters that stopped are passed over, and the cleaner takes them off", async () => {
    for (const name of ["a", "b", "c", "d"]) await ask("enter", name);
    now += 50_000;
    for (const name of ["a", "c", "d"]) await ask("heartbeat", name);
    now += 20_000;
    expect(await ask("next", "a")).toEqual({ serving: "c", waiting: 1 });
    expect(await ask("heartbeat", "b")).toEqual({ state: "absent", ticket: "b" });

    now += 70_000;
    expect(await ask("clean")).toEqual({ departments: 1, removed: 2 });
    expect(await ask("enter", "e")).toEqual({ state: "serving", ticket: "e" });
    const report = (await admit(admission(), { action: "clean" })) as { departments: number };
    expect(report.departments).toBeGreaterThanOrEqual(3);
  });

  test("a heartbeat that comes while the desk is being changed is not overlooked", async () => {
    for (const name of ["a", "b"]) await ask("enter", name);
    now += 70_000;
    let isFirst = true;
    const racing: Admission["desks"] = {
      departments: () => desks.departments(),
      read: async (name) => {
        const reading = await desks.read(name);
        // Between this change's reading and its writing both are heard of.
        if (isFirst) for (const ticket of ["a", "b"]) await desks.heartbeat(name, ticket, now);
        isFirst = false;
        return reading;
      },
      write: (...desk) => desks.write(...desk),
      heartbeat: (...beat) => desks.heartbeat(...beat),
    };
    expect(await ask("clean", undefined, { desks: racing })).toEqual({ departments: 1, removed: 0 });
    expect(await ask("heartbeat", "b")).toEqual({ state: "waiting", ticket: "b", position: 1 });
  });

  test("an instance that died over a change keeps the department closed no longer than its lease", async () => {
    await system.leases.deadLease(`admit-tickets/${department}`);
    expect(await ask("enter", "a")).toEqual({ state: "serving", ticket: "a" });
  });

  test("one that was frozen beyond its lease cannot write its old desk over the new one", async () => {
    await ask("enter", "a");
    const client = system.leases.client({ dynamodb: system.documents });
    const frozen = await client.acquire(`admit-tickets/${department}`);
    const reading = await desks.read(department);
    await client.forceRelease(frozen.key, { token: frozen.token });
    await ask("leave", "a");
    // Even where the version were the same again, the fence would tell.
    const current = await desks.read(department);
    expect(await desks.write(department, reading, frozen)).toBe("changed");
    expect(await desks.write(department, current, frozen)).toBe("changed");
    expect(await desks.read(department)).toEqual(current);
  });

  test("departments do not wait for one another", async () => {
    const client = system.leases.client({ dynamodb: system.documents });
    await using _busy = await client.acquire("admit-tickets/another");
    expect(await ask("enter", "a")).toMatchObject({ state: "serving" });
  });

  test("a change that alters nothing writes nothing", async () => {
    await ask("leave", "nobody");
    expect((await desks.read(department)).version).toBe(0);
  });
});
