import { InvalidOptionsError, LeaseClient, type LeaseRecord, LeaseServiceError } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { type CleaningReport, cleanDesks } from "../../functions/admit-tickets/cleaner.ts";
import type { AdmissionRules } from "../../functions/admit-tickets/department.ts";
import { admit } from "../../functions/admit-tickets/handler.ts";
import { departmentAgents, departmentLimits, ticketKey } from "../../functions/admit-tickets/schema.ts";
import { adminOf } from "../support/admin.ts";
import { dieAfter } from "../support/dead-writer.ts";
import { type Fate, ScriptedStore } from "../support/scripted-store.ts";

const rules = { mostWaiting: 3, limits: new Map<string, number>(), silenceMs: 60_000 };

let clock: ManualClock;
let store: ScriptedStore;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

/** Every event comes to a process of its own. */
const leases = (): LeaseClient => new LeaseClient({ store, clock, owner: "admission" });
const send = (event: object, its: AdmissionRules = rules): Promise<unknown> =>
  admit({ leases: leases(), tableName: store.tableName, rules: its, now: () => clock.now() }, event);
const ask = (action: string, ticket?: string, department = "loans"): Promise<unknown> =>
  send({ action, department, ...(ticket === undefined ? {} : { ticket }) });
const serving = (ticket: string, agent = 1): object => ({
  state: "serving",
  ticket,
  agent,
  fencingToken: expect.any(Number),
});
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
  test("of eight tickets that come at once one is served, three wait, four are refused", async () => {
    const tickets = Array.from({ length: 8 }, (_, index) => `t${index}`);
    const answers = (await Promise.all(tickets.map((name) => ask("enter", name)))) as { state: string }[];
    expect(answers.map(({ state }) => state).sort()).toEqual([
      ...["refused", "refused", "refused", "refused"],
      ...["serving", "waiting", "waiting", "waiting"],
    ]);
    expect(answers).toContainEqual(refused(3));
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

  test("a heartbeat keeps the ticket's own lease too, and ends the service where an operator broke that one", async () => {
    await ask("enter", "a");
    await clock.advance(40_000);
    expect(await ask("heartbeat", "a")).toEqual(serving("a"));
    await clock.advance(40_000);
    const own = ticketKey("loans", "a");
    const { token, expiresAt } = (await leases().inspect(own)) as LeaseRecord;
    expect(expiresAt).toBeGreaterThan(clock.now());
    await adminOf(leases()).forceRelease(own, { token });
    expect(await ask("heartbeat", "a")).toEqual(absent("a"));
    expect(await ask("look")).toMatchObject({ serving: [] });
  });

  test("waiters that died do not block those behind them", async () => {
    for (const name of ["a", "dead", "c", "d"]) await ask("enter", name);
    await clock.advance(40_000);
    for (const name of ["a", "c", "d"]) await ask("heartbeat", name);
    await clock.advance(22_000);
    expect(await ask("next", "a")).toEqual({ serving: "c", waiting: 1 });
    expect(await ask("heartbeat", "dead")).toEqual(absent("dead"));
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
    { action: "enter", department: "x".repeat(201), ticket: "a" },
    { action: "enter", department: "loans" },
    { action: "enter", department: "loans", ticket: "" },
    { action: "enter", department: "loans", ticket: "x".repeat(65) },
    { action: "enter", department: "loans", ticket: "\u{1f600}".repeat(17) },
    { action: "enter", department: "loans", ticket: "\ud800" },
    { action: "enter", department: "loans", ticket: "a", owner: "b" },
    { action: "enter", department: "loans", ticket: "a", appointment: "yes" },
    { action: "heartbeat", department: "loans", ticket: "a", appointment: true },
    { action: "next", department: "loans", ticket: 7 },
    { action: "look" },
    { action: "look", department: "loans", ticket: "a" },
  ])("%j is refused before anything is sent", async (event) => {
    await expect(admit({ leases: leases(), tableName: store.tableName, rules }, event)).rejects.toThrow(
      InvalidOptionsError,
    );
    expect(store.calls).toHaveLength(0);
  });
});

describe("a look at the queue", () => {
  const look = (department = "loans"): Promise<unknown> => send({ action: "look", department });

  test("shows who is served, who waits and how many may, in 3 reads, and changes nothing", async () => {
    for (const name of ["a", "b", "c"]) await ask("enter", name);
    store.calls.length = 0;
    expect(await look()).toEqual({
      serving: [{ agent: 1, ticket: "a" }],
      waiting: ["b", "c"],
      mostWaiting: 3,
    });
    expect(store.calls.map(({ method }) => method)).toEqual(["get", "get", "get"]);
    expect(await ask("enter", "d")).toMatchObject({ state: "waiting", position: 3 });
    expect(await look("savings")).toEqual({ serving: [], waiting: [], mostWaiting: 3 });
  });

  test("is no heartbeat: whoever only looks, is gone after a minute's silence", async () => {
    for (const name of ["a", "b", "c"]) await ask("enter", name);
    await clock.advance(40_000);
    for (const name of ["a", "c"]) await ask("heartbeat", name);
    expect(await look()).toMatchObject({ serving: [{ ticket: "a" }], waiting: ["b", "c"] });
    await clock.advance(22_000);
    expect(await look()).toMatchObject({ serving: [{ ticket: "a" }], waiting: ["c"] });
    expect(await ask("next", "a")).toEqual({ serving: "c", waiting: 0 });
  });
});

describe("a department's own limit", () => {
  const limited = { ...rules, limits: new Map([["loans", 1]]) };
  const enter = (ticket: string, department: string): Promise<unknown> =>
    send({ action: "enter", department, ticket }, limited);

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

describe("several agents", () => {
  const its: AdmissionRules = { ...rules, agents: new Map([["loans", 2]]) };
  const at = (event: object): Promise<unknown> => send({ department: "loans", ...event }, its);
  const enter = (ticket: string): Promise<unknown> => at({ action: "enter", ticket });
  const next = (agent: number, done?: string): Promise<unknown> =>
    at({ action: "next", agent, ...(done === undefined ? {} : { ticket: done }) });
  const look = (): Promise<unknown> => at({ action: "look" });

  test("each serve one ticket, and the turn is the first free agent's", async () => {
    const [first, second] = (await Promise.all([enter("a"), enter("b")])) as { agent: number }[];
    expect([first?.agent, second?.agent].sort()).toEqual([1, 2]);
    for (const [index, name] of ["c", "d"].entries())
      expect(await enter(name)).toEqual(waiting(name, index + 1));
    await at({ action: "leave", ticket: "b" });
    expect(await at({ action: "heartbeat", ticket: "d" })).toEqual(waiting("d", 2));
    expect(await at({ action: "heartbeat", ticket: "c" })).toEqual(serving("c", second?.agent));
    expect(await at({ action: "heartbeat", ticket: "d" })).toEqual(waiting("d", 1));
  });

  test("that are free together serve the first two, whichever of them is heard of first", async () => {
    for (const name of ["a", "b", "c", "d", "e"]) await enter(name);
    for (const ticket of ["a", "b"]) await at({ action: "leave", ticket });
    expect(await at({ action: "heartbeat", ticket: "d" })).toMatchObject({ state: "serving" });
    expect(await at({ action: "heartbeat", ticket: "e" })).toEqual(waiting("e", 2));
    expect(await at({ action: "heartbeat", ticket: "c" })).toMatchObject({ state: "serving" });
  });

  test("that call at once get different tickets, and each the same again", async () => {
    for (const name of ["a", "b", "c", "d"]) await enter(name);
    const calls = [next(1, "a"), next(2, "b"), next(1, "a"), next(2, "b"), next(2, "b"), next(1, "a")];
    const called = (await Promise.all(calls)) as { serving: string }[];
    const [one, two] = called.map(({ serving: ticket }) => ticket);
    expect([one, two].sort()).toEqual(["c", "d"]);
    expect(called.map(({ serving: ticket }) => ticket)).toEqual([one, two, one, two, two, one]);
    expect(await next(1, "a")).toEqual({ serving: one, waiting: 0 });
    expect(await look()).toMatchObject({
      serving: [
        { agent: 1, ticket: one },
        { agent: 2, ticket: two },
      ],
      waiting: [],
    });
  });

  test("lose a silent ticket, and keep the one that is heard of", async () => {
    for (const name of ["dead", "b", "c"]) await enter(name);
    await clock.advance(40_000);
    for (const ticket of ["b", "c"]) await at({ action: "heartbeat", ticket });
    await clock.advance(22_000);
    expect(await look()).toMatchObject({ serving: [{ agent: 2, ticket: "b" }], waiting: ["c"] });
    expect(await next(1)).toEqual({ serving: "c", waiting: 0 });
    expect(await at({ action: "heartbeat", ticket: "dead" })).toEqual(absent("dead"));
    expect(await next(2)).toEqual({ serving: "b", waiting: 0 });
  });

  test("are estimated with: the first to be free serves the next, and then the second", async () => {
    const usual = { ...its, usualServiceMs: 20_000 };
    const enters = (ticket: string): Promise<unknown> =>
      send({ action: "enter", department: "loans", ticket }, usual);
    await enters("a");
    await clock.advance(5_000);
    await enters("b");
    const expected = [15_000, 20_000, 35_000];
    for (const [index, estimatedWaitMs] of expected.entries())
      expect(await enters(`t${index}`)).toMatchObject({ position: index + 1, estimatedWaitMs });
    expect(await enters("late")).toEqual(refused(3, 15_000));
  });

  test("are named by their calls, within the department's number", async () => {
    for (const agent of [undefined, 0, 3, 1.5, "1"])
      await expect(at({ action: "next", ...(agent === undefined ? {} : { agent }) })).rejects.toThrow(
        /event\.agent/,
      );
    await expect(ask("next", "a", "savings")).resolves.toEqual({ serving: undefined, waiting: 0 });
    expect(() => departmentAgents('{"loans":21}')).toThrow(/ADMIT_TICKETS_AGENTS .*21.* of "loans"/);
  });

  test("never share a ticket or have two, whatever answers are lost and who acts at once", async () => {
    const name = fc.constantFrom("a", "b", "c", "d", "e");
    const act = fc.record({
      action: fc.constantFrom("enter", "enter", "heartbeat", "heartbeat", "leave", "next", "next", "next"),
      ticket: name,
      agent: fc.integer({ min: 1, max: 2 }),
      appointment: fc.boolean(),
      fates: fc.array(fc.constantFrom(undefined, undefined, "answer lost", "request lost", "throttled"), {
        maxLength: 3,
      }),
    });
    const step = fc.record({ acts: fc.array(act, { minLength: 1, maxLength: 3 }), afterMs: fc.nat(12_000) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
        store = new ScriptedStore();
        const fences = new Map<string, number>();
        let now: { agent: number; ticket: string }[] = [];
        for (const ticket of ["a", "b", "c", "d", "e"]) await enter(ticket);
        for (const { acts, afterMs } of steps) {
          await clock.advance(afterMs);
          store.next(...acts.flatMap(({ fates }) => fates as Fate[]));
          const doing = acts.map(async ({ action, ticket, agent, appointment }) => {
            const done = now.find((service) => service.agent === agent)?.ticket ?? ticket;
            const own = action === "enter" ? { ticket, appointment } : { ticket };
            return await at({ action, ...(action === "next" ? { agent, ticket: done } : own) }).catch(
              (error: unknown) => {
                if (!(error instanceof LeaseServiceError)) throw error;
                return undefined;
              },
            );
          });
          let isDone = false;
          const all = Promise.all(doing).finally(() => {
            isDone = true;
          });
          while (!isDone) await clock.advance(100);
          const served = (
            (await all) as ({ state?: string; ticket: string; fencingToken: number } | undefined)[]
          )
            .filter((answer) => answer !== undefined)
            .filter(({ state }) => state === "serving");
          // Of one ticket, a later service has a larger number.
          for (const { ticket, fencingToken } of served)
            expect(fencingToken).toBeGreaterThanOrEqual(fences.get(ticket) ?? 0);
          for (const { ticket, fencingToken } of served)
            fences.set(ticket, Math.max(fencingToken, fences.get(ticket) ?? 0));
          const seen = (await look()) as { serving: typeof now; waiting: string[] };
          now = seen.serving;
          const tickets = now.map(({ ticket }) => ticket);
          expect(new Set(tickets).size).toBe(tickets.length);
          expect(tickets.filter((ticket) => seen.waiting.includes(ticket))).toEqual([]);
          // Each agent's call, repeated, gives the ticket that it has.
          for (const { agent, ticket } of now)
            expect(await at({ action: "next", agent })).toMatchObject({ serving: ticket });
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe("appointments", () => {
  const enter = (ticket: string, appointment?: boolean): Promise<unknown> =>
    send({
      action: "enter",
      department: "loans",
      ticket,
      ...(appointment === undefined ? {} : { appointment }),
    });

  test("are called before the others, in their own order, and positions say so", async () => {
    await enter("a");
    expect(await enter("w1")).toEqual(waiting("w1", 1));
    expect(await enter("p1", true)).toEqual(waiting("p1", 1));
    expect(await enter("p2", true)).toEqual(waiting("p2", 2));
    expect(await enter("w2", false)).toEqual(waiting("w2", 4));
    expect(await ask("heartbeat", "w1")).toEqual(waiting("w1", 3));
    expect(await ask("look")).toMatchObject({ waiting: ["p1", "p2", "w1", "w2"] });
    expect(await ask("next", "a")).toEqual({ serving: "p1", waiting: 3 });
    expect(await ask("next", "p1")).toEqual({ serving: "p2", waiting: 2 });
    await ask("leave", "p2");
    expect(await enter("p3", true)).toEqual(serving("p3"));
    expect(await ask("next", "p3")).toEqual({ serving: "w1", waiting: 1 });
  });

  test("keep the place where the ticket entered first", async () => {
    for (const name of ["a", "w1", "w2"]) await enter(name);
    expect(await enter("w2", true)).toEqual(waiting("w2", 2));
    expect(await enter("p", true)).toEqual(waiting("p", 1));
    expect(await enter("p")).toEqual(waiting("p", 1));
  });

  test("have a line of their own, as long as that of the others", async () => {
    const usual = { ...rules, mostWaiting: 1, usualServiceMs: 20_000 };
    const at = (ticket: string, appointment: boolean): Promise<unknown> =>
      send({ action: "enter", department: "loans", ticket, appointment }, usual);
    await at("a", false);
    await at("w", false);
    expect(await at("p", true)).toMatchObject({ state: "waiting", position: 1, estimatedWaitMs: 20_000 });
    expect(await at("q", true)).toEqual(refused(1, 20_000));
    // Room for a walk-in is there when the one that waits is served: after the appointment.
    expect(await at("x", false)).toEqual(refused(1, 40_000));
  });
});

describe("an event that ends half-way", () => {
  const its: AdmissionRules = { ...rules, agents: new Map([["loans", 2]]) };
  const at = (event: object): Promise<unknown> => send({ department: "loans", ...event }, its);
  const enter = (ticket: string): object => ({ action: "enter", ticket });
  const four = ["a", "b", "c", "d"].map(enter);
  const leaves = (ticket: string): object => ({ action: "leave", ticket });
  const heartbeat = (ticket: string): object => ({ action: "heartbeat", ticket });

  const prepare = async (before: readonly object[]): Promise<void> => {
    store = new ScriptedStore();
    for (const event of before) await at(event);
  };

  test.each<[string, readonly object[], object]>([
    ["an entry into a free department", [], enter("a")],
    ["an entry into the queue", four.slice(0, 3), enter("d")],
    ["a waiter's heartbeat", four, heartbeat("c")],
    ["a heartbeat in service", four, heartbeat("a")],
    ["the heartbeat that finds its turn", [...four, leaves("a")], heartbeat("c")],
    ["a waiter's leaving", four, leaves("c")],
    ["a leaving from service", four, leaves("a")],
    ["the desk's call", four, { action: "next", agent: 2, ticket: "b" }],
  ])(
    "at any write of %s: it comes again, is answered as the first time, and nobody has two places",
    async (_, before, event) => {
      const outcome = async (): Promise<unknown[]> => {
        const answer = (await at(event)) as object;
        return [{ ...answer, fencingToken: undefined }, await at({ action: "look" })];
      };
      await prepare(before);
      store.calls.length = 0;
      const right = await outcome();
      const writes = store.count("update") + store.count("transact");
      expect(writes).toBeGreaterThan(0);
      const moments = Array.from({ length: writes + 1 }, (_, landed) => [
        { landed, isLate: false },
        { landed, isLate: true },
      ]).flat();
      for (const { landed, isLate } of moments) {
        const moment = `${landed} writes landed, the next one is ${isLate ? "late" : "lost"}`;
        await prepare(before);
        const dead = dieAfter(store, landed);
        void at(event).catch(() => undefined);
        await new Promise(setImmediate);
        dead.bury();
        expect(await outcome(), moment).toEqual(right);
        if (isLate) await dead.land();
        expect(await at({ action: "look" }), moment).toEqual(right[1]);
        // Nothing that is left of a service keeps its ticket out.
        for (const ticket of ["a", "b", "c", "d"]) await at(leaves(ticket));
        for (const ticket of ["a", "c"])
          expect(await at(enter(ticket)), moment).toMatchObject({ state: "serving" });
      }
    },
  );

  test("a ticket whose caller died before it left its line is not called again", async () => {
    await prepare(four);
    const update = store.update.bind(store);
    store.update = async (...call) =>
      call[0].key.pk.includes("/line/") ? await new Promise(() => undefined) : await update(...call);
    void at({ action: "next", agent: 1, ticket: "a" });
    await new Promise(setImmediate);
    store.update = update;
    expect(await at({ action: "look" })).toMatchObject({
      serving: [{ ticket: "c" }, { ticket: "b" }],
      waiting: ["d"],
    });
    expect(await at({ action: "next", agent: 2, ticket: "b" })).toEqual({ serving: "d", waiting: 0 });
    expect(await at({ action: "next", agent: 1, ticket: "c" })).toEqual({ serving: undefined, waiting: 0 });
  });
});

describe("the cleaner", () => {
  const clean = (remainingMs: () => number = () => 60_000): Promise<CleaningReport> =>
    cleanDesks({ leases: leases(), remainingMs, now: () => clock.now() });

  test("frees the desk of a ticket that has stopped, and leaves the others alone, in 1 scan of a small table", async () => {
    await ask("enter", "dead", "loans");
    await clock.advance(40_000);
    await ask("enter", "alive", "savings");
    await clock.advance(22_000);
    store.calls.length = 0;
    expect(await clean()).toEqual({ agents: 2, removed: 1, isComplete: true });
    expect(store.calls.filter(({ method }) => method === "scan")).toHaveLength(1);
    expect(await clean()).toEqual({ agents: 1, removed: 0, isComplete: true });
    expect(await ask("heartbeat", "alive", "savings")).toEqual(serving("alive"));
    expect(await ask("heartbeat", "dead", "loans")).toEqual(absent("dead"));
  });

  test("frees the desk also where others wait: the turn is the first one's that lives", async () => {
    for (const name of ["dead", "dead too"]) await ask("enter", name);
    await clock.advance(62_000);
    expect(await clean()).toEqual({ agents: 1, removed: 1, isComplete: true });
    for (const name of ["dead", "b"]) await ask("enter", name);
    await clock.advance(40_000);
    await ask("heartbeat", "b");
    await clock.advance(22_000);
    expect(await clean()).toEqual({ agents: 1, removed: 1, isComplete: true });
    expect(await ask("enter", "c")).toEqual(waiting("c", 2));
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
    expect(await clean()).toEqual({ agents: 2, removed: 2, isComplete: true });
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
      const first = await clean(timeFor(500));
      expect(first.isComplete).toBe(false);
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
      const left = desks - first.agents - 3;
      expect(await clean()).toEqual({ agents: left, removed: left, isComplete: true });
    });
  });
});
