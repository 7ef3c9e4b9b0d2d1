import { InvalidOptionsError, LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { type Admission, admit } from "../../functions/admit-tickets/admission.ts";
import {
  clean,
  type Desk,
  emptyDesk,
  enter,
  leave,
  next,
  standing,
} from "../../functions/admit-tickets/desk.ts";

const rules = { mostWaiting: 2, silenceMs: 60_000 };

function deskWith(...tickets: string[]): Desk {
  return tickets.reduce(
    (desk, ticket, place) =>
      enter(desk, { ...rules, mostWaiting: 10 }, { ticket, owner: ticket }, place).desk,
    emptyDesk,
  );
}

describe("a department's desk", () => {
  test("the first is served, the next wait in the order in which they came", () => {
    const desk = deskWith("a", "b", "c");
    expect(standing(desk, "a")).toEqual({ state: "serving", ticket: "a" });
    expect(standing(desk, "b")).toEqual({ state: "waiting", ticket: "b", position: 1 });
    expect(standing(desk, "c")).toEqual({ state: "waiting", ticket: "c", position: 2 });
  });

  test("beyond the queue's length a ticket is refused, and hears how long the queue is", () => {
    const desk = deskWith("a", "b", "c");
    const { desk: after, answer } = enter(desk, rules, { ticket: "d", owner: "d" }, 5);
    expect(answer).toEqual({ state: "refused", waiting: 2, mostWaiting: 2 });
    expect(after).toEqual(desk);
  });

  test("an owner that comes again keeps its place, also where the queue is full", () => {
    const desk = deskWith("a", "b", "c");
    const { desk: after, answer } = enter(desk, rules, { ticket: "another", owner: "b" }, 5);
    expect(answer).toEqual({ state: "waiting", ticket: "b", position: 1 });
    expect(after.waiting).toEqual(desk.waiting);
    expect(after.seen.b).toBe(5);
  });

  test("a ticket that another owner has is not handed over", () => {
    const { desk, answer } = enter(deskWith("a", "b"), rules, { ticket: "b", owner: "z" }, 5);
    expect(answer).toEqual({ state: "taken", ticket: "b" });
    expect(desk.seen.b).toBe(1);
  });

  test("waiters that died do not block those behind them", () => {
    const desk: Desk = { ...deskWith("a", "b", "c"), seen: { a: 100_000, b: 1, c: 100_000 } };
    expect(next(desk, rules, "a", 100_000)).toMatchObject({ answer: { serving: "c", waiting: 0 } });
  });

  test("one that dies in service makes room for the next", () => {
    const desk: Desk = { ...deskWith("a", "b"), seen: { a: 0, b: 100_000 } };
    expect(clean(desk, rules, 100_000).answer).toEqual({ serving: "b", waiting: 0, removed: 1 });
  });

  test("the next one is called once, however often the call is repeated", () => {
    const first = next(deskWith("a", "b", "c"), rules, "a", 10);
    const again = next(first.desk, rules, "a", 10);
    expect(first.answer).toEqual({ serving: "b", waiting: 1 });
    expect(again.answer).toEqual(first.answer);
  });

  test("leaving makes room, and leaving again changes nothing", () => {
    const once = leave(deskWith("a", "b"), rules, "a", 10);
    expect(standing(once.desk, "b")).toMatchObject({ state: "serving" });
    expect(leave(once.desk, rules, "a", 10).desk).toEqual(once.desk);
  });

  test("whatever happens, one is in service, the queue is bounded and in order, and nobody is there twice", () => {
    const name = fc.constantFrom("a", "b", "c", "d", "e", "constructor", "__proto__");
    const step = fc.record({
      what: fc.constantFrom("enter", "leave", "next", "clean"),
      name,
      after: fc.nat(40_000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let desk = emptyDesk;
        let now = 1;
        for (const { what, name: ticket, after } of steps) {
          now += after;
          if (what === "enter") desk = enter(desk, rules, { ticket, owner: ticket }, now).desk;
          else if (what === "leave") desk = leave(desk, rules, ticket, now).desk;
          else if (what === "next") desk = next(desk, rules, ticket, now).desk;
          else desk = clean(desk, rules, now).desk;
          const everybody = [desk.serving, ...desk.waiting].filter((entry) => entry !== undefined);
          expect(desk.waiting.length).toBeLessThanOrEqual(rules.mostWaiting);
          if (desk.waiting.length > 0) expect(desk.serving).toBeDefined();
          expect(new Set(everybody.map(({ owner }) => owner)).size).toBe(everybody.length);
          expect(everybody.map(({ enteredAt }) => enteredAt)).toEqual(
            everybody.map(({ enteredAt }) => enteredAt).sort((a, b) => a - b),
          );
          expect(Object.keys(desk.seen).sort()).toEqual(everybody.map((entry) => entry.ticket).sort());
        }
      }),
    );
  });
});

describe("the admission's events", () => {
  let touched: number;
  let admission: Admission;

  beforeEach(() => {
    touched = 0;
    const clock = new ManualClock();
    const touch = async (): Promise<never> => {
      touched += 1;
      throw new Error("not to be reached");
    };
    admission = {
      leases: new LeaseClient({ store: new MemoryLeaseStore(), clock }),
      desks: {
        // biome-ignore lint/correctness/useYield: it only counts that it was asked.
        departments: async function* () {
          touched += 1;
        },
        read: touch,
        write: touch,
        heartbeat: touch,
      },
      rules,
      now: () => clock.now(),
      remainingMs: () => 60_000,
    };
  });

  test.each([
    undefined,
    "enter",
    [],
    {},
    { action: "push", department: "loans", ticket: "a" },
    { action: "enter", ticket: "a" },
    { action: "enter", department: "", ticket: "a" },
    { action: "enter", department: "loans" },
    { action: "enter", department: "loans", ticket: "" },
    { action: "enter", department: "loans", ticket: "x".repeat(201) },
    { action: "enter", department: "loans", ticket: "\ud800" },
    { action: "enter", department: "loans", ticket: "a", owner: 7 },
    { action: "leave", department: "loans", ticket: "a", owner: "a" },
    { action: "heartbeat", department: "loans" },
    { action: "next", department: "loans", ticket: 7 },
    { action: "clean", ticket: "a" },
    { action: "clean", department: 7 },
    { action: "enter", department: "loans", ticket: "a", priority: 1 },
  ])("refuses %j, and touches nothing", async (event) => {
    await expect(admit(admission, event)).rejects.toBeInstanceOf(InvalidOptionsError);
    expect(touched).toBe(0);
  });
});
