import { InvalidOptionsError, LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { admit } from "../../functions/admit-tickets/admission.ts";
import { type CleaningReport, cleanDesks } from "../../functions/admit-tickets/cleaner.ts";
import { departmentLimits } from "../../functions/admit-tickets/schema.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const rules = { mostWaiting: 3, limits: new Map<string, number>(), silenceMs: 60_000 };

let clock: ManualClock;
let store: ScriptedStore;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

/** Every event comes to a process of its own. */
const leases = (): LeaseClient => new LeaseClient({ store, clock, owner: "admission" });
const ask = (action: string, ticket?: string, department = "loans"): Promise<unknown> =>
  admit({ leases: leases(), rules }, { action, department, ...(ticket === undefined ? {} : { ticket }) });
const serving = (ticket: string): object => ({ state: "serving", ticket, fencingToken: expect.any(Number) });
const waiting = (ticket: string, position: number): object => ({
  state: "waiting",
  ticket,
  position,
  estimatedWaitMs: undefined,
});
const refused = (most: number, estimatedWaitMs?: number): object => ({
  state: "refused",
  waiting: most,
  mostWaiting: most,
  estimatedWaitMs,
});
const absent = (ticket: string): object => ({ state: "absent", ticket });

describe("the admission of tickets", () => {
  test("the first is served, the next wait in the order in which they came", async () => {
    expect(await ask("enter", "a")).toEqual(serving("a"));
    expect(await ask("enter", "b")).toEqual(waiting("b", 1));
    expect(await ask("enter", "c")).toEqual(waiting("c", 2));
  });

  test("of eight that come at once one is served, three wait, four are refused and told the queue's length", async () => {
    const names = Array.from({ length: 8 }, (_, index) => `t${index}`);
    const answers = (await Promise.all(names.map((name) => ask("enter", name)))) as { state: string }[];
    const states = answers.map(({ state }) => state).sort();
    expect(states).toEqual([...Array(4).fill("refused"), "serving", ...Array(3).fill("waiting")]);
    expect(answers).toContainEqual(refused(3));
  });

  test("a refusal tells when there is room, by the usual time of a service, and 0 when that is over", async () => {
    const usual = { ...rules, mostWaiting: 1, usualServiceMs: 20_000 };
    const enter = (ticket: string): Promise<unknown> =>
      admit(
        { leases: leases(), rules: usual, now: () => clock.now() },
        { action: "enter", department: "loans", ticket },
      );
    await enter("a");
    await clock.advance(5_000);
    await enter("b");
    expect(await enter("c")).toEqual(refused(1, 15_000));
    await clock.advance(20_000);
    expect(await enter("c")).toEqual(refused(1, 0));
  });

  test("the desk calls the next, who is in service from then on, once however often it calls", async () => {
    for (const name of ["a", "b", "c"]) await ask("enter", name);
    expect(await ask("next", "a")).toEqual({ serving: "b", waiting: 1 });
    expect(await ask("next", "a")).toEqual({ serving: "b", waiting: 1 });
    expect(await ask("heartbeat", "b")).toEqual(serving("b"));
    expect(await ask("next", "b")).toEqual({ serving: "c", waiting: 0 });
    expect(await ask("next", "c")).toEqual({ serving: undefined, waiting: 0 });
    expect(await ask("next")).toEqual({ serving: undefined, waiting: 0 });
  });

  test("a ticket that leaves service makes room for the next, which finds out by its heartbeat", async () => {
    for (const name of ["a", "b", "c"]) await ask("enter", name);
    expect(await ask("leave", "a")).toEqual(absent("a"));
    expect(await ask("heartbeat", "c")).toMatchObject({ state: "waiting", position: 2 });
    expect(await ask("heartbeat", "b")).toEqual(serving("b"));
    expect(await ask("leave", "a")).toEqual(absent("a"));
  });

  test("a ticket that comes again keeps its place, also where the queue is full", async () => {
    for (const name of ["a", "b", "c", "d"]) await ask("enter", name);
    expect(await ask("enter", "b")).toEqual(waiting("b", 1));
    expect(await ask("enter", "a")).toEqual(serving("a"));
    expect(await ask("enter", "e")).toMatchObject({ state: "refused", waiting: 3 });
  });

  test("a heartbeat does not bring back a ticket that is gone", async () => {
    await ask("enter", "a");
    expect(await ask("heartbeat", "b")).toEqual(absent("b"));
    await ask("leave", "a");
    expect(await ask("heartbeat", "a")).toEqual(absent("a"));
  });

  test("waiters that died do not block those behind them", async () => {
    for (const name of ["a", "dead", "c", "d"]) await ask("enter", name);
    await clock.advance(40_000);
    for (const name of ["a", "c", "d"]) await ask("heartbeat", name);
    await clock.advance(22_000);
    expect(await ask("next", "a")).toEqual({ serving: "c", waiting: 1 });
    expect(await ask("heartbeat", "dead")).toEqual(absent("dead"));
  });

  test("one that dies in service is replaced by the next in line, and its token by a larger one", async () => {
    const dead = (await ask("enter", "dead")) as { fencingToken: number };
    await ask("enter", "b");
    await clock.advance(40_000);
    expect(await ask("heartbeat", "b")).toMatchObject({ state: "waiting" });
    await clock.advance(22_000);
    const next = (await ask("heartbeat", "b")) as { state: string; fencingToken: number };
    expect(next.state).toBe("serving");
    expect(next.fencingToken).toBeGreaterThan(dead.fencingToken);
  });

  test("departments do not wait for one another", async () => {
    expect(await ask("enter", "a", "loans")).toEqual(serving("a"));
    expect(await ask("enter", "a", "savings")).toEqual(serving("a"));
  });

  test("whatever happens, one is in service, the queue is bounded and in order, and nobody is there twice", async () => {
    const name = fc.constantFrom("a", "b", "c", "d", "e", "constructor", "__proto__");
    const action = fc.constantFrom("enter", "enter", "heartbeat", "leave", "next");
    const step = fc.record({ action, name, afterMs: fc.nat(30_000) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        store = new ScriptedStore();
        const entered: string[] = [];
        const heard = new Map<string, number>();
        for (const { action: what, name: ticket, afterMs } of steps) {
          await clock.advance(afterMs);
          const answer = (await ask(what, ticket)) as { state?: string; position?: number };
          if (what === "next") continue;
          if (answer.state === "waiting") {
            const position = answer.position ?? 0;
            const silentMs = clock.now() - (heard.get(ticket) ?? clock.now());
            const before = entered.indexOf(ticket);
            // One that was silent for too long has lost its place, and is one at the end.
            if (before !== -1 && position > before + 1 && silentMs > rules.silenceMs)
              entered.splice(before, 1);
            if (!entered.includes(ticket)) entered.push(ticket);
            heard.set(ticket, clock.now());
            expect(answer.position).toBeLessThanOrEqual(rules.mostWaiting);
            // Nobody stands before one that came earlier.
            expect(answer.position).toBeLessThanOrEqual(entered.indexOf(ticket) + 1);
          } else if (answer.state !== "refused" && entered.includes(ticket)) {
            entered.splice(entered.indexOf(ticket), 1);
          }
        }
      }),
      {
        numRuns: 60,
        examples: [
          // A ticket that falls silent for a minute in the queue, and comes back.
          [
            [
              { action: "enter", name: "d", afterMs: 0 },
              { action: "enter", name: "a", afterMs: 0 },
              { action: "enter", name: "b", afterMs: 19_573 },
              { action: "enter", name: "c", afterMs: 18_085 },
              { action: "next", name: "d", afterMs: 23_343 },
              { action: "enter", name: "a", afterMs: 0 },
            ],
          ],
        ],
      },
    );
  });

  test.each([
    undefined,
    "enter",
    [],
    {},
    { action: "push", department: "loans", ticket: "a" },
    { action: "clean", department: "loans" },
    { action: "enter", ticket: "a" },
    { action: "enter", department: "", ticket: "a" },
    { action: "enter", department: "loans" },
    { action: "enter", department: "loans", ticket: "" },
    { action: "enter", department: "loans", ticket: "x".repeat(65) },
    { action: "enter", department: "loans", ticket: "\u{1f600}".repeat(17) },
    { action: "enter", department: "loans", ticket: "\ud800" },
    { action: "enter", department: "loans", ticket: "a", owner: "b" },
    { action: "next", department: "loans", ticket: 7 },
    { action: "look" },
    { action: "look", department: "loans", ticket: "a" },
  ])("%j is refused before anything is sent", async (event) => {
    await expect(admit({ leases: leases(), rules }, event)).rejects.toThrow(InvalidOptionsError);
    expect(store.calls).toHaveLength(0);
  });
});

describe("a look at the queue", () => {
  const look = (department = "loans"): Promise<unknown> =>
    admit({ leases: leases(), rules, now: () => clock.now() }, { action: "look", department });

  test("shows who is served, who waits and how many may, in 1 read, and changes nothing", async () => {
    for (const name of ["a", "b", "c"]) await ask("enter", name);
    store.calls.length = 0;
    expect(await look()).toEqual({ serving: "a", waiting: ["b", "c"], mostWaiting: 3 });
    expect(store.calls.map(({ method }) => method)).toEqual(["get"]);
    expect(await ask("enter", "d")).toMatchObject({ state: "waiting", position: 3 });
    expect(await look("savings")).toEqual({ serving: undefined, waiting: [], mostWaiting: 3 });
  });

  test("is no heartbeat: whoever only looks, is gone after a minute's silence", async () => {
    for (const name of ["a", "b", "c"]) await ask("enter", name);
    await clock.advance(40_000);
    for (const name of ["a", "c"]) await ask("heartbeat", name);
    expect(await look()).toMatchObject({ serving: "a", waiting: ["b", "c"] });
    await clock.advance(22_000);
    expect(await look()).toMatchObject({ serving: "a", waiting: ["c"] });
    expect(await ask("next", "a")).toEqual({ serving: "c", waiting: 0 });
  });

  test("does not name a ticket that has fallen silent in service: its desk is free for the next", async () => {
    await ask("enter", "dead");
    await clock.advance(62_000);
    expect(await look()).toEqual({ serving: undefined, waiting: [], mostWaiting: 3 });
  });
});

describe("a department's own limit", () => {
  const limited = { ...rules, limits: new Map([["loans", 1]]) };
  const enter = (ticket: string, department: string): Promise<unknown> =>
    admit({ leases: leases(), rules: limited }, { action: "enter", department, ticket });

  test("holds for that department, and the common one for the others", async () => {
    for (const ticket of ["a", "b"]) await enter(ticket, "loans");
    expect(await enter("c", "loans")).toEqual(refused(1));
    for (const ticket of ["a", "b", "c", "d"]) await enter(ticket, "constructor");
    expect(await enter("e", "constructor")).toEqual(refused(3));
  });

  test("is read from the function's settings, and a limit that cannot be is named", () => {
    expect(departmentLimits('{"loans":5,"__proto__":7}')).toEqual(
      new Map([
        ["loans", 5],
        ["__proto__", 7],
      ]),
    );
    for (const [text, named] of [
      ["loans: 5", /loans: 5/],
      ["[5]", /\[5\]/],
      ['{"loans":0}', /loans/],
      ['{"loans":501}', /loans/],
      ['{"loans":"5"}', /loans/],
      ['{"":5}', /department/],
      [JSON.stringify({ ["x".repeat(201)]: 5 }), /department/],
    ] as const) {
      expect(() => departmentLimits(text)).toThrow(named);
    }
  });
});

describe("the cleaner", () => {
  const clean = (remainingMs: () => number = () => 60_000): Promise<CleaningReport> =>
    cleanDesks({ leases: leases(), remainingMs, now: () => clock.now() });

  test("frees the desk of a ticket that has stopped, and leaves the others alone", async () => {
    await ask("enter", "dead", "loans");
    await clock.advance(40_000);
    await ask("enter", "alive", "savings");
    await clock.advance(22_000);
    expect(await clean()).toEqual({ departments: 2, removed: 1, isComplete: true });
    expect(await clean()).toEqual({ departments: 1, removed: 0, isComplete: true });
    expect(await ask("heartbeat", "alive", "savings")).toEqual(serving("alive"));
    expect(await ask("heartbeat", "dead", "loans")).toEqual(absent("dead"));
  });

  test("takes dead waiters off with it, and leaves the turn to one that lives", async () => {
    for (const name of ["dead", "dead too"]) await ask("enter", name);
    await clock.advance(62_000);
    expect(await clean()).toEqual({ departments: 1, removed: 1, isComplete: true });
    for (const name of ["dead", "b"]) await ask("enter", name);
    await clock.advance(40_000);
    await ask("heartbeat", "b");
    await clock.advance(22_000);
    expect(await clean()).toEqual({ departments: 1, removed: 0, isComplete: true });
    expect(await ask("heartbeat", "b")).toEqual(serving("b"));
  });

  test("comes back to a desk that it could not free", async () => {
    for (const name of ["a", "b", "c"]) await ask("enter", "dead", name);
    await clock.advance(62_000);
    const update = store.update.bind(store);
    store.update = async (...call) => {
      if (call[0].key.pk.endsWith("b")) store.next("rejected");
      return await update(...call);
    };
    await expect(clean()).rejects.toMatchObject({ code: "LEASE_REQUEST_REJECTED" });
    store.update = update;
    await clock.advance(1_000);
    expect(await clean()).toEqual({ departments: 2, removed: 2, isComplete: true });
  });

  describe("of a table that is larger than one invocation can read", () => {
    const desks = 1_200;
    const names = Array.from({ length: desks }, (_, index) => `d${String(index).padStart(4, "0")}`);

    /** Time for so many desks, and no more. */
    const timeFor = (most: number): (() => number) => {
      let asked = 0;
      return () => (asked++ < most ? 60_000 : 1_000);
    };

    beforeEach(async () => {
      for (const name of names) await ask("enter", "dead", name);
      await clock.advance(62_000);
    });

    test("goes on in the next invocation where it stopped, and begins anew when it is through", async () => {
      const reports = [];
      do {
        reports.push(await clean(timeFor(500)));
        await clock.advance(300_000);
      } while (!reports.at(-1)?.isComplete && reports.length < 9);
      expect(reports.map(({ isComplete }) => isComplete)).toEqual([false, false, true]);
      expect(reports.reduce((sum, { removed }) => sum + removed, 0)).toBe(desks);
      expect(await ask("enter", "b", names[0])).toEqual(serving("b"));
      await clock.advance(62_000);
      expect((await clean()).removed).toBe(1);
    });

    test("goes on after an invocation that died or failed where the one before had stopped", async () => {
      expect(await clean(timeFor(500))).toMatchObject({ departments: 500, isComplete: false });
      await clock.advance(300_000);
      let asked = 0;
      const failing = clean(() => {
        asked += 1;
        if (asked > 3) throw new Error("the instance is gone");
        return 60_000;
      });
      await expect(failing).rejects.toThrow("gone");
      await clock.advance(300_000);
      expect(asked).toBe(4);
      // The one that failed had come three desks further.
      expect(await clean()).toEqual({ departments: desks - 503, removed: desks - 503, isComplete: true });
    });
  });

  test("reads the table in pages as large as DynamoDB gives them, and no more than one page for a small one", async () => {
    await ask("enter", "dead", "loans");
    store.calls.length = 0;
    await clean();
    expect(store.calls.filter(({ method }) => method === "scan")).toHaveLength(1);
  });
});
