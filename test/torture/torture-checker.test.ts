import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import {
  event,
  history,
  hold,
  operation,
  read,
  rightHistories,
  write,
} from "../support/torture-histories.ts";
import { check } from "./checker/index.ts";
import type { History, Hold, Operation } from "./history.ts";

/** The rules that a history breaks. */
function broken(parts: Partial<History>): readonly string[] {
  return [...new Set(check(history(parts)).map(({ rule }) => rule))];
}

describe("mutual exclusion", () => {
  it("allows holds that follow each other", () => {
    const holds = [hold(10, 20, { fencingToken: 1 }), hold(20, 30, { fencingToken: 2 })];
    expect(broken({ holds })).toEqual([]);
  });

  it("allows a grant to a caller that never knew that it held", () => {
    const holds = [hold(10, 50, { fencingToken: 2 }), hold(20, undefined, { fencingToken: 1, since: 5 })];
    expect(broken({ holds })).toEqual([]);
  });

  it("allows holds of different keys", () => {
    expect(broken({ holds: [hold(10, 30), hold(20, 40, { key: "other" })] })).toEqual([]);
  });

  it("finds two holders, and tells who and when", () => {
    const holds = [
      hold(10, 30, { process: "a", fencingToken: 1 }),
      hold(29, 40, { process: "b", fencingToken: 2 }),
    ];
    const [violation] = check(history({ holds }));
    expect(violation?.rule).toBe("mutual exclusion");
    expect(violation?.text).toMatch(
      /^b#\d+ holds k .*\[29\.000 \.\. 40\.000\] ms; a#\d+ holds k .*\[10\.000 \.\. 30\.000\] ms$/,
    );
  });

  it("finds a hold within a longer one that was not the last to begin", () => {
    const holds = [hold(10, 100), hold(20, 30), hold(40, 50)];
    expect(check(history({ holds })).filter(({ rule }) => rule === "mutual exclusion")).toHaveLength(2);
  });

  it("finds a lease that was lost and held again", () => {
    expect(broken({ holds: [hold(10, 40, { lostAt: 30 })] })).toEqual(["a lost lease stays lost"]);
  });
});

describe("seats", () => {
  const permit = (from: number, until: number, permits = 1) =>
    hold(from, until, { kind: "permit", permits, primitive: "semaphore" });

  it("allow as many permits as there are, and a permit in the place of one that was released", () => {
    expect(broken({ holds: [permit(10, 50, 2), permit(20, 30), permit(30, 60)] })).toEqual([]);
  });

  it("do not allow permit 4 of 3", () => {
    expect(broken({ holds: [permit(10, 50), permit(20, 50), permit(30, 40, 2)] })).toEqual([
      "the bound of the permits",
    ]);
  });

  it("allow readers together, and a writer after them", () => {
    const holds = [
      hold(10, 30, { kind: "read" }),
      hold(20, 40, { kind: "read" }),
      hold(40, 50, { kind: "write" }),
    ];
    expect(broken({ holds })).toEqual([]);
  });

  it.each([
    ["a writer beside a reader", "read", "write"],
    ["a reader beside a writer", "write", "read"],
    ["a writer beside a writer", "write", "write"],
  ] as const)("do not allow %s", (_what, first, second) => {
    const holds = [hold(10, 30, { kind: first }), hold(20, 40, { kind: second })];
    expect(broken({ holds })).toEqual(["readers or one writer"]);
  });
});

describe("a lease", () => {
  const by = (from: number, action: string, parts: Partial<Operation> = {}) =>
    operation(from, from + 2, { action, process: "a", details: { fencingToken: 1 }, ...parts });
  const holds = [
    hold(10, 20, { process: "a", fencingToken: 1 }),
    hold(30, 40, { process: "b", fencingToken: 2 }),
  ];

  it.each(["release", "renew"])("may be told of its end by a %s", (action) => {
    const told = { fencingToken: 1, result: "false" };
    expect(broken({ holds, operations: [by(50, action, { details: told })] })).toEqual([]);
    expect(broken({ holds, operations: [by(50, action, { outcome: "refused" })] })).toEqual([]);
    expect(broken({ holds, operations: [by(25, action)] })).toEqual([]);
  });

  it.each(["release", "renew"])("does not get a yes to a %s after another's grant", (action) => {
    expect(broken({ holds, operations: [by(50, action)] })).toEqual(["a lease that is over stays over"]);
  });

  it("does not get one when the call does not name its token", () => {
    const told = by(50, "release", { details: { result: "true" } });
    expect(broken({ holds, operations: [told] })).toEqual(["a lease that is over stays over"]);
  });

  it("may be one of several that are held together", () => {
    const permits = holds.map((each) => ({ ...each, kind: "permit" as const, permits: 1 }));
    expect(broken({ holds: permits, operations: [by(50, "release")] })).toEqual([]);
  });

  it("is not held for longer than it lasts", () => {
    expect(broken({ holds: [hold(10, 410, { leaseMs: 400 })] })).toEqual([]);
    expect(broken({ holds: [hold(10, 411, { leaseMs: 400 })] })).toEqual(["a lease ends by itself"]);
    expect(broken({ holds: [hold(10, 9_000)] })).toEqual([]);
  });
});

describe("a lease that several go on with", () => {
  const first = hold(10, 30, { process: "a", fencingToken: 1 });

  it("is one hold: of an owner with two handles, or of a process that adopts it", () => {
    const handles = [
      hold(10, 30, { process: "a", fencingToken: 1, joins: "owner" }),
      hold(20, 40, { process: "a", fencingToken: 1, joins: "owner" }),
    ];
    expect(broken({ holds: handles })).toEqual([]);
    expect(
      broken({ holds: [first, hold(20, 60, { process: "b", fencingToken: 1, joins: "handle" })] }),
    ).toEqual([]);
  });

  it("keeps everybody else out", () => {
    const adopted = hold(20, 60, { process: "b", fencingToken: 1, joins: "handle" });
    const other = hold(50, 70, { process: "c", fencingToken: 2 });
    expect(broken({ holds: [first, adopted, other] })).toEqual(["mutual exclusion"]);
  });

  it("may be adopted after another's grant, by a process that never believes in it", () => {
    const late = hold(50, undefined, { process: "b", fencingToken: 1, joins: "handle" });
    expect(broken({ holds: [first, hold(40, 60, { process: "c", fencingToken: 2 }), late] })).toEqual([]);
  });

  it("is not shared by two owners", () => {
    const handles = ["a", "b"].map((process) => hold(10, 30, { process, fencingToken: 1, joins: "owner" }));
    expect(broken({ holds: handles })).toEqual(["mutual exclusion", "fencing order"]);
  });

  it("is not released with a yes by its adopter after another's grant", () => {
    const adopted = hold(20, 25, { process: "b", fencingToken: 1, joins: "handle" });
    const release = operation(60, 61, { process: "b", action: "release", details: { fencingToken: 1 } });
    const other = hold(50, 55, { process: "c", fencingToken: 2 });
    expect(broken({ holds: [first, adopted, other], operations: [release] })).toEqual([
      "a lease that is over stays over",
    ]);
  });
});

describe("a lock that is to stay closed", () => {
  const closed = hold(10, 20, { since: 10, fencingToken: 1, cooldownMs: 2_000 });

  it("stays closed for its time", () => {
    expect(broken({ holds: [closed, hold(811, 900, { fencingToken: 2 })] })).toEqual([]);
    expect(broken({ holds: [closed, hold(809, 900, { fencingToken: 2 })] })).toEqual([
      "a lock stays closed for its time",
    ]);
  });
});

describe("an operator", () => {
  const holds = [
    hold(10, 60, { process: "a", fencingToken: 1 }),
    hold(40, 80, { process: "b", fencingToken: 2 }),
  ];
  const breaks = (parts: Partial<Operation> = {}) =>
    operation(30, 35, { process: "o", action: "break", details: { fencingToken: 1 }, ...parts });

  it("lets another in beside a holder whose lease it breaks", () => {
    expect(broken({ holds, operations: [breaks()] })).toEqual([]);
    expect(broken({ holds, operations: [{ ...breaks(), to: undefined, outcome: "unknown" }] })).toEqual([]);
  });

  it("lets another in beside a holder that learns of its grant only after the break", () => {
    const late = [hold(40, 80, { fencingToken: 2 }), hold(50, 60, { fencingToken: 1, since: 5 })];
    expect(broken({ holds: late, operations: [breaks()] })).toEqual([]);
    expect(broken({ holds: late })).toEqual(["mutual exclusion"]);
  });

  it.each<[string, Partial<Operation>]>([
    ["has found nothing to break", { outcome: "refused" }],
    ["has broken another lease", { details: { fencingToken: 2 } }],
    ["has broken that of another lock", { key: "l" }],
  ])("does not where it %s", (_, parts) => {
    expect(broken({ holds, operations: [breaks(parts)] })).toEqual(["mutual exclusion"]);
  });

  it("ends a lease for good: its holder's release is told so", () => {
    const [first] = holds;
    const release = operation(50, 51, { process: "a", action: "release", details: { fencingToken: 1 } });
    const of = (parts: Partial<Operation>) =>
      broken({ holds: [first as Hold], operations: [breaks(), { ...release, ...parts }] });
    expect(of({})).toEqual(["a lease that is over stays over"]);
    expect(of({ details: { fencingToken: 1, result: "false" } })).toEqual([]);
    expect(of({ from: 34_000 })).toEqual([]);
  });

  it("may keep everybody out of a free lock by a pause", () => {
    const refused = operation(4_000, 4_010, { outcome: "refused", process: "p9" });
    const calm = event(1_000, "calm");
    const paused = operation(3_000, 3_010, {
      action: "pause",
      outcome: "unknown",
      details: { cooldownMs: 4_000 },
    });
    expect(broken({ operations: [paused, refused], events: [calm] })).toEqual([]);
    expect(broken({ operations: [refused], events: [calm] })).toEqual(["a free lock is granted"]);
  });
});

describe("fencing order", () => {
  it("allows any order of grants whose calls overlap", () => {
    const holds = [hold(30, 40, { fencingToken: 1, since: 5 }), hold(10, 20, { fencingToken: 2, since: 5 })];
    expect(broken({ holds })).toEqual([]);
  });

  it("finds a token that was given twice", () => {
    const holds = [hold(10, 20, { fencingToken: 7 }), hold(30, 40, { fencingToken: 7 })];
    expect(broken({ holds })).toEqual(["fencing order"]);
  });

  it("finds a smaller token after a larger one, also with other grants in between", () => {
    const holds = [
      hold(10, 11, { fencingToken: 5 }),
      hold(20, 21, { fencingToken: 9 }),
      hold(30, 31, { fencingToken: 6 }),
    ];
    expect(broken({ holds })).toEqual(["fencing order"]);
  });
});

describe("fencing order of answers", () => {
  const answered = (from: number, to: number, fencingToken: number, process = "a") =>
    operation(from, to, { process, details: { fencingToken } });

  it("allows an answer and the hold that follows it", () => {
    const holds = [hold(12, 20, { process: "a", since: 9, fencingToken: 5 })];
    expect(broken({ operations: [answered(10, 11, 5)], holds })).toEqual([]);
  });

  it("finds a smaller token than one that was answered to a caller that died before it held", () => {
    const holds = [hold(30, 40, { process: "b", fencingToken: 4 })];
    expect(broken({ operations: [answered(10, 11, 5)], holds })).toEqual(["fencing order"]);
    expect(broken({ operations: [answered(10, 11, 5), answered(20, 21, 4, "b")] })).toEqual([
      "fencing order",
    ]);
  });

  it("finds a token that was answered to two callers", () => {
    expect(broken({ operations: [answered(10, 11, 5), answered(20, 21, 5, "b")] })).toEqual([
      "fencing order",
    ]);
  });
});

describe("the fenced register", () => {
  const rule = "linearizability of the fenced register";

  it("allows reads of either value while a write is under way", () => {
    const operations = [write(10, 40, "", "a"), read(12, 15, ""), read(20, 25, "a")];
    expect(broken({ operations })).toEqual([]);
  });

  it.each([
    ["took effect", "a"],
    ["did not", ""],
  ])("allows a write whose outcome is unknown and which %s", (_what, seen) => {
    expect(broken({ operations: [write(10, undefined, "", "a"), read(20, 25, seen)] })).toEqual([]);
  });

  it("allows a write to take effect long after its caller gave up", () => {
    const operations = [write(10, undefined, "", "a"), read(20, 25, ""), read(900, 905, "a")];
    expect(broken({ operations })).toEqual([]);
  });

  it("ignores a write that was refused", () => {
    const refused = { ...write(10, 20, "", "a"), outcome: "refused" as const };
    expect(broken({ operations: [refused, read(30, 35, "")] })).toEqual([]);
  });

  it("finds a stale read", () => {
    const operations = [write(10, 20, "", "a"), write(30, 40, "a", "b"), read(50, 55, "a")];
    expect(broken({ operations })).toEqual([rule]);
  });

  it("finds a lost update: two writes in place of one value", () => {
    expect(broken({ operations: [write(10, 20, "", "a"), write(30, 40, "", "b")] })).toEqual([rule]);
  });

  it("finds a stale write: the value of an earlier holder comes back", () => {
    const operations = [write(10, undefined, "", "a"), write(20, 30, "", "b"), read(40, 45, "a")];
    expect(broken({ operations })).toEqual([rule]);
  });

  it("finds a value that comes and goes", () => {
    const operations = [write(10, undefined, "", "a"), read(20, 25, "a"), read(30, 35, "")];
    expect(broken({ operations })).toEqual([rule]);
  });

  it("finds a value that was refused", () => {
    const refused = { ...write(10, 20, "", "a"), outcome: "refused" as const };
    expect(broken({ operations: [refused, read(30, 35, "a")] })).toEqual([rule]);
  });

  it("finds an order only where every operation has its place", () => {
    // The second reader forces the second write before the first reader's answer.
    const operations = [
      write(10, 50, "", "a"),
      write(11, 51, "a", "b"),
      read(12, 20, "b"),
      read(30, 35, "a"),
    ];
    expect(broken({ operations })).toEqual([rule]);
  });

  it("judges thousands of operations, of which hundreds are unknown", () => {
    const operations = Array.from({ length: 3_000 }, (_, index) => {
      const [previous, value] = [index === 0 ? "" : `v${index - 1}`, `v${index}`];
      return write(10 * index, index % 7 === 3 ? undefined : 10 * index + 25, previous, value);
    });
    expect(broken({ operations })).toEqual([]);
  });
});

describe("the register of a lock", () => {
  const rule = "linearizability of the fenced register";
  const holds = [
    hold(10, 20, { process: "a", fencingToken: 1, since: 9 }),
    hold(40, 50, { process: "b", fencingToken: 2, since: 35 }),
  ];
  const of = (defence: string, one: Operation, process: string, token?: number): Operation => ({
    ...one,
    process,
    key: `register/k/${defence}`,
    details: { ...one.details, ...(token !== undefined && { fencingToken: token }) },
  });

  it("allows a checked write before the next grant, however late its answer is", () => {
    const operations = [of("check", write(15, 45, "", "x"), "a", 1), of("check", read(46, 47, "x"), "b")];
    expect(broken({ holds, operations })).toEqual([]);
  });

  it("finds a checked write that landed after a later grant, though its holder only read", () => {
    const operations = [of("check", read(41, 42, ""), "b"), of("check", write(60, 70, "", "x"), "a", 1)];
    expect(broken({ holds, operations })).toEqual([rule]);
  });

  it("finds one that began before that grant, but landed after its holder's reading", () => {
    const operations = [of("check", read(51, 52, ""), "b"), of("check", write(15, 70, "", "x"), "a", 1)];
    expect(broken({ holds, operations })).toEqual([rule]);
  });

  it("finds one whose holder is known by its process alone", () => {
    expect(broken({ holds, operations: [of("check", write(60, 70, "", "x"), "a")] })).toEqual([rule]);
  });

  it("allows a write of unknown outcome after a later grant, unless its value was seen", () => {
    const unknown = of("check", write(60, undefined, "", "x"), "a", 1);
    expect(broken({ holds, operations: [unknown] })).toEqual([]);
    expect(broken({ holds, operations: [unknown, of("check", read(80, 81, "x"), "c")] })).toEqual([rule]);
  });

  it("finds a checked write that landed after its own release", () => {
    const release = operation(21, 25, { process: "a", action: "release", details: { fencingToken: 1 } });
    const [first] = holds;
    const operations = [release, of("check", write(24, 70, "", "x"), "a", 1)];
    expect(broken({ holds: [first as Hold], operations })).toEqual([]);
    const late = [release, of("check", write(26, 70, "", "x"), "a", 1)];
    expect(broken({ holds: [first as Hold], operations: late })).toEqual([rule]);
  });

  it("allows a fenced write after a later grant, until that holder has used the register", () => {
    const late = of("fence", write(60, 70, "", "x"), "a", 1);
    expect(broken({ holds, operations: [late] })).toEqual([]);
    expect(broken({ holds, operations: [of("fence", read(51, 52, ""), "c"), late] })).toEqual([]);
  });

  it("finds a fenced write after a later holder's reading", () => {
    const operations = [of("fence", read(51, 52, ""), "b", 2), of("fence", write(60, 70, "", "x"), "a", 1)];
    expect(broken({ holds, operations })).toEqual([rule]);
  });
});

describe("exactly once", () => {
  const attempt = (from: number, number: number, until = from + 5) =>
    hold(from, until, { primitive: "runs", attempt: number, fencingToken: number });
  const succeed = (from: number, to: number | undefined, number: number) =>
    operation(from, to, { subject: "runs", action: "succeed", details: { attempt: number } });

  it("allows attempts that fail or die before the one that succeeds", () => {
    const holds = [attempt(10, 1), attempt(20, 2), attempt(30, 3)];
    expect(broken({ holds, operations: [succeed(36, 40, 3)] })).toEqual([]);
  });

  it("allows an attempt after an unknown success", () => {
    expect(
      broken({ holds: [attempt(10, 1), attempt(30, 2)], operations: [succeed(16, undefined, 1)] }),
    ).toEqual([]);
  });

  it("finds a slot that was done twice", () => {
    const operations = [succeed(16, 20, 1), succeed(36, 40, 2)];
    expect(broken({ holds: [attempt(10, 1), attempt(30, 2)], operations })).toEqual(["exactly once"]);
  });

  it("finds an attempt that begins after the success", () => {
    expect(broken({ holds: [attempt(10, 1), attempt(30, 2)], operations: [succeed(16, 20, 1)] })).toEqual([
      "exactly once",
    ]);
  });

  it("finds a slot that is said to be done, though nobody has done it", () => {
    const refused = operation(50, 52, {
      subject: "runs",
      action: "run",
      outcome: "refused",
      details: { code: "LEASE_SLOT_DONE" },
    });
    expect(broken({ operations: [refused] })).toEqual(["exactly once"]);
    expect(broken({ operations: [succeed(60, 62, 1), refused] })).toEqual(["exactly once"]);
    expect(broken({ operations: [succeed(40, undefined, 1), refused] })).toEqual([]);
    expect(broken({ operations: [succeed(40, 45, 1), refused] })).toEqual([]);
  });

  it("finds two attempts with one number", () => {
    const holds = [attempt(10, 1), { ...attempt(30, 1), fencingToken: 2 }];
    expect(broken({ holds })).toEqual(["exactly once"]);
  });

  describe("of a task whose process closes its client", () => {
    const holds = [
      hold(10, 20, { process: "a", primitive: "tasks", attempt: 1, fencingToken: 1 }),
      hold(40, 45, { process: "b", primitive: "tasks", attempt: 1, fencingToken: 2 }),
    ];
    const close = (at: number, process: string) => ({ ...event(at, "close"), process });
    const ending = (parts: Partial<Operation>) =>
      operation(21, 22, {
        process: "a",
        subject: "tasks",
        action: "fail",
        details: { attempt: 1 },
        ...parts,
      });

    it("allows the number of an attempt that was given back", () => {
      expect(broken({ holds, events: [close(30, "a")] })).toEqual([]);
      const operations = [ending({ outcome: "unknown" })];
      expect(broken({ holds, operations, events: [close(30, "a")] })).toEqual([]);
    });

    it.each<[string, Partial<History>]>([
      ["another process has closed", { events: [close(30, "b")] }],
      ["the close came later", { events: [close(50, "a")] }],
      ["the close came before", { events: [close(5, "a")] }],
      ["the attempt had ended", { operations: [ending({})], events: [close(30, "a")] }],
    ])("finds two attempts with one number where %s", (_, parts) => {
      expect(broken({ holds, ...parts })).toEqual(["exactly once"]);
    });

    it("does not allow it for a slot", () => {
      const ofSlot = holds.map((each) => ({ ...each, primitive: "runs" as const }));
      expect(broken({ holds: ofSlot, events: [close(30, "a")] })).toEqual(["exactly once"]);
    });
  });

  it("finds a task that was added and never done", () => {
    const added = operation(1, 2, { subject: "tasks", action: "add" });
    expect(broken({ operations: [added] })).toEqual(["exactly once"]);
    expect(broken({ operations: [added, succeed(16, 20, 1)] })).toEqual([]);
  });
});

describe("the line", () => {
  const waiter = (from: number, joinedAt: number | undefined, to: number | undefined, fencingToken: number) =>
    operation(from, to, {
      subject: "fair",
      joinedAt,
      details: { ...(to !== undefined && { fencingToken }) },
    });

  it("allows first come, first served, and any order of callers that join together", () => {
    const operations = [
      waiter(0, undefined, 5, 1),
      waiter(10, 30, 60, 3),
      waiter(20, 25, 50, 2),
      waiter(40, 45, 70, 4),
    ];
    expect(broken({ operations })).toEqual([]);
  });

  it("finds a waiter that was overtaken", () => {
    const operations = [waiter(0, undefined, 5, 1), waiter(10, 20, 60, 3), waiter(30, 35, 50, 2)];
    expect(broken({ operations })).toEqual(["order of the line"]);
  });

  it("finds a dead waiter that was overtaken before its ticket could be passed", () => {
    const operations = [
      waiter(0, undefined, 5, 1),
      waiter(10, 20, undefined, 0),
      waiter(30, undefined, 50, 2),
    ];
    expect(broken({ operations })).toEqual(["order of the line"]);
  });

  it("allows a grant to a later caller when the earlier one may have been passed in silence", () => {
    const operations = [waiter(0, undefined, 5, 1), waiter(10, 20, undefined, 0), waiter(30, 35, 9_500, 2)];
    expect(broken({ operations })).toEqual([]);
  });

  it("allows it when the waiter may have had the lock without hearing of it", () => {
    const operations = [waiter(0, undefined, 5, 1), waiter(10, 20, undefined, 0), waiter(30, 35, 50, 3)];
    expect(broken({ operations })).toEqual([]);
  });

  it("allows it when the waiter's call had failed before, and it may have left", () => {
    const failed = { ...waiter(10, 20, 60, 0), outcome: "unknown" as const };
    const operations = [waiter(0, undefined, 5, 1), failed, waiter(30, 35, 50, 2)];
    expect(broken({ operations })).toEqual([]);
    expect(
      broken({
        operations: operations.map((each) => (each === failed ? { ...failed, inLineUntil: 55_000 } : each)),
      }),
    ).toEqual(["order of the line"]);
  });

  describe("passes a waiter in silence", () => {
    const [from, joinedAt, overtakenAt, grantedAt] = [10, 20, 12_000, 15_000];
    const operations = [
      waiter(0, undefined, 5, 1),
      waiter(from, joinedAt, grantedAt, 3),
      { ...waiter(30, 35, overtakenAt, 2), process: "p2" },
    ];
    const uses = (...times: readonly (readonly [number, number])[]) =>
      times.map(([since, until], index) =>
        hold(since, until, { primitive: "fair", fencingToken: 1.1 + index / 10, process: "p3" }),
      );

    it("only where something has kept it from answering", () => {
      expect(broken({ operations })).toEqual(["order of the line"]);
      for (const [begins, ends] of [["freeze", "thaw"] as const, ["foul", "fair"] as const]) {
        const events = [event(9_000, begins), event(9_500, ends)];
        expect(broken({ operations, events })).toEqual([]);
        expect(broken({ operations, events: events.map((each) => ({ ...each, process: "p2" })) })).toEqual([
          "order of the line",
        ]);
        expect(broken({ operations, events: [event(2, begins), event(9, ends)] })).toEqual([
          "order of the line",
        ]);
      }
    });

    it("only while the lock is free", () => {
      const events = [event(9_000, "freeze"), event(9_500, "thaw")];
      expect(broken({ operations, events, holds: uses([40, 2_900]) })).toEqual([]);
      expect(broken({ operations, events, holds: uses([40, 3_100]) })).toEqual(["order of the line"]);
      expect(broken({ operations, events, holds: uses([40, 50], [9_000, 9_001]) })).toEqual([
        "order of the line",
      ]);
    });

    it("and tells a waiter whose wait was in vain that it was alive", () => {
      const inVain = operations.map((each) =>
        each.details.fencingToken === 3
          ? { ...each, outcome: "refused" as const, details: {}, inLineUntil: 12_500_000 }
          : each,
      );
      expect(broken({ operations: inVain })).toEqual(["order of the line"]);
    });
  });

  it("finds more waiters than the line is for", () => {
    const operations = Array.from({ length: 13 }, (_, index) => ({
      ...waiter(index, index + 1, undefined, 0),
      inLineUntil: 1_000_000,
    }));
    expect(broken({ operations })).toEqual(["bound of the line"]);
    expect(broken({ operations: operations.slice(1) })).toEqual([]);
  });
});

describe("values of single flight", () => {
  const rule = "values of single flight";
  const flight = (
    from: number,
    to: number,
    action: string,
    details: Readonly<Record<string, string | number | boolean>>,
  ) => operation(from, to, { subject: "singleFlight", action, details });
  const compute = (from: number, to: number, value: string, fencingToken: number) =>
    flight(from, to, "compute", { value, fencingToken });
  const get = (from: number, to: number, value: string, fencingToken: number, parts = {}) =>
    flight(from, to, "get", { refresh: false, source: "cache", value, fencingToken, ...parts });

  it("come from a computation", () => {
    expect(broken({ operations: [compute(10, 20, "a", 1), get(30, 31, "a", 1)] })).toEqual([]);
    expect(broken({ operations: [compute(10, 20, "a", 1), get(30, 31, "b", 1)] })).toEqual([rule]);
  });

  it("are newer than the call where that asks for a refresh", () => {
    const late = get(30, 50, "a", 1, { refresh: true, source: "otherProcess" });
    expect(broken({ operations: [compute(10, 20, "a", 1), late] })).toEqual([rule]);
    expect(broken({ operations: [compute(35, 45, "a", 1), late] })).toEqual([]);
  });

  it("do not go back to an earlier holder's", () => {
    const operations = [
      compute(1, 2, "a", 1),
      compute(3, 4, "b", 2),
      get(10, 11, "b", 2),
      get(20, 21, "a", 1),
    ];
    expect(broken({ operations })).toEqual([rule]);
  });
});

describe("the time of a value of single flight", () => {
  const rule = "values of single flight";
  const flight = (from: number, to: number, action: string, parts: Partial<Operation> = {}) =>
    operation(from, to, {
      subject: "singleFlight",
      action,
      ...parts,
      details: { value: "a", fencingToken: 1, ...parts.details },
    });
  const computed = flight(10, 20, "compute", { process: "p1" });
  const got = (from: number, source = "cache", process = "p2") =>
    flight(from, from + 1, "get", { process, details: { refresh: false, source } });

  it("is over at some time", () => {
    expect(broken({ operations: [computed, got(3_420)] })).toEqual([]);
    expect(broken({ operations: [computed, got(3_421)] })).toEqual([rule]);
    expect(broken({ operations: [computed, got(3_421, "otherProcess")] })).toEqual([rule]);
    expect(broken({ operations: [computed, got(3_421, "computation")] })).toEqual([]);
  });

  it("counts from a thaw where the process was frozen before it had stored the value", () => {
    const events = [event(30, "freeze"), event(5_000, "thaw")];
    expect(broken({ operations: [computed, got(8_400)], events })).toEqual([]);
    expect(broken({ operations: [computed, got(8_401)], events })).toEqual([rule]);
    expect(
      broken({ operations: [computed, got(8_401)], events: [event(3, "freeze"), event(9, "thaw")] }),
    ).toEqual([rule]);
  });

  it("is not known to a process that has a wrong clock and has heard nothing yet", () => {
    const events = [{ ...event(1, "start", { wallMs: -60_000 }), process: "p2" }];
    expect(broken({ operations: [computed, got(60_000)], events })).toEqual([]);
    const heard = [1, 2, 3].map((at) => operation(at, at + 0.5, { process: "p2", outcome: "refused" }));
    expect(broken({ operations: [computed, ...heard, got(60_000)], events })).toEqual([rule]);
  });

  it("does not come before the computation", () => {
    expect(broken({ operations: [got(2), computed] })).toEqual([rule]);
  });
});

describe("a free lock", () => {
  const rule = "a free lock is granted";
  const calm = event(1_000, "calm");
  const refused = (from: number, to: number, parts: Partial<Operation> = {}) =>
    operation(from, to, {
      outcome: "refused",
      details: { code: "LEASE_UNAVAILABLE" },
      process: "p9",
      ...parts,
    });

  it("is not refused for ever in the calm", () => {
    const operations = [refused(4_000, 4_010), refused(5_000, 8_000), refused(60_000, 63_000)];
    const found = check(history({ operations, events: [calm] }));
    expect(found.map((violation) => violation.rule)).toEqual([rule, rule, rule]);
  });

  it("may be out of reach of a call that was cut off", () => {
    const cutOff = refused(4_000, 7_000, { details: { code: "LEASE_ABORTED" } });
    expect(broken({ operations: [cutOff], events: [calm] })).toEqual([]);
  });

  it("may be refused while the faults go on, and to a call that began then", () => {
    expect(broken({ operations: [refused(10, 20), refused(900, 2_900)], events: [calm] })).toEqual([]);
    expect(broken({ operations: [refused(4_000, 4_010)] })).toEqual([]);
  });

  it.each<[string, Partial<History>]>([
    ["it is held", { holds: [hold(3_000, 6_000)] }],
    [
      "it was held by a process that was killed, whose lease lasts",
      { holds: [hold(900, 990)], events: [event(995, "kill")] },
    ],
    ["it is held and nobody knows", { operations: [operation(900, undefined)] }],
    [
      "it may have been held since a call failed",
      { operations: [operation(2_000, 3_500, { outcome: "unknown" })] },
    ],
    ["a late copy may have taken it", { operations: [refused(990, 995)] }],
    ["an audit has it", { operations: [operation(3_500, 4_005, { action: "audit" })] }],
    [
      "it is in its cooldown",
      {
        holds: [hold(100, 110, { cooldownMs: 4_000 })],
        operations: [operation(115, 120, { action: "release" })],
      },
    ],
  ])("may be refused while %s", (_what, { holds = [], operations = [], events = [] }) => {
    const all = [...operations, refused(4_000, 4_010)];
    expect(broken({ holds, operations: all, events: [calm, ...events] })).toEqual([]);
  });

  it("is free again after all of that", () => {
    const holds = [hold(900, 990)];
    const operations = [
      operation(992, 995, { action: "release" }),
      refused(980, 981),
      operation(2_000, 3_500, { outcome: "unknown" }),
      refused(20_000, 20_010),
    ];
    expect(broken({ holds, operations, events: [calm] })).toEqual([rule]);
  });

  it("may be refused in a line that dead waiters hold up", () => {
    const inLine = { subject: "fair" } as const;
    expect(broken({ operations: [refused(5_000, 25_000, inLine)], events: [calm] })).toEqual([]);
    expect(broken({ operations: [refused(20_000, 40_000, inLine)], events: [calm] })).toEqual([rule]);
  });

  it("is each lock of a group that is refused", () => {
    const group = { subject: "group", action: "acquireAll", key: "k+l" } as const;
    expect(broken({ operations: [refused(4_000, 4_010, group)], events: [calm] })).toEqual([rule]);
    const holds = [hold(3_000, 6_000, { key: "l" })];
    expect(broken({ operations: [refused(4_000, 4_010, group)], holds, events: [calm] })).toEqual([]);
  });
});

describe("liveness", () => {
  it("finds a lock that stays stuck", () => {
    const audit = operation(900, 950, {
      action: "audit",
      outcome: "refused",
      details: { code: "LEASE_UNAVAILABLE" },
    });
    expect(broken({ operations: [audit] })).toEqual(["no lock stays stuck"]);
  });

  it("finds a call without an answer after the faults", () => {
    const events = [event(500, "calm")];
    expect(broken({ operations: [operation(600, undefined)], events })).toEqual(["every call is answered"]);
    expect(broken({ operations: [operation(400, undefined)], events })).toEqual([]);
  });

  it("finds a process that does not end, and an error without a name", () => {
    expect(broken({ events: [event(10, "exit", { code: "SIGKILL" })] })).toEqual([
      "every process ends when asked",
    ]);
    expect(broken({ events: [event(9, "kill"), event(10, "exit", { code: "SIGKILL" })] })).toEqual([]);
    expect(broken({ events: [event(10, "mistake", { error: "TypeError" })] })).toEqual(["only named errors"]);
  });
});

describe("any history", () => {
  test("of a model that is right passes", () => {
    fc.assert(
      fc.property(rightHistories, (right) => {
        expect(check(right)).toEqual([]);
      }),
    );
  });

  /** Ways to spoil a right history; undefined where there is nothing to spoil. */
  const spoilings: Readonly<Record<string, (right: History, random: number) => History | undefined>> = {
    "a hold that lasts into the next one": ({ holds, ...rest }, random) => {
      const index = random % (holds.length - 1);
      const until = (holds[index + 1]?.from ?? 0) + 1;
      return { ...rest, holds: holds.map((each, at) => (at === index ? { ...each, until } : each)) };
    },
    "two fencing tokens that change places": ({ holds, ...rest }, random) => {
      const [one, other] = [holds[random % (holds.length - 1)], holds[(random % (holds.length - 1)) + 1]];
      if (one === undefined || other === undefined || other.since <= one.from) return undefined;
      const tokens = new Map([
        [one, other.fencingToken],
        [other, one.fencingToken],
      ]);
      return {
        ...rest,
        holds: holds.map((each) => ({ ...each, fencingToken: tokens.get(each) ?? each.fencingToken })),
      };
    },
    "an update that is lost": ({ operations, ...rest }, random) => {
      const writes = operations.filter(({ action, outcome }) => action === "write" && outcome === "ok");
      const index = random % writes.length;
      const [first, lost] = [writes[index], writes[index + 1]];
      if (first === undefined || lost === undefined) return undefined;
      // It has not seen the write before it.
      const details = { ...lost.details, previous: String(first.details.previous) };
      return { ...rest, operations: operations.map((each) => (each === lost ? { ...each, details } : each)) };
    },
    "a last read of a value that was written over": ({ operations, ...rest }, random) => {
      const writes = operations.filter(({ action, outcome }) => action === "write" && outcome === "ok");
      const over = writes[random % writes.length];
      const last = operations.at(-1);
      if (over === undefined || last === undefined) return undefined;
      const details = { value: String(over.details.previous) };
      return { ...rest, operations: [...operations.slice(0, -1), { ...last, details }] };
    },
  };

  test.each(Object.entries(spoilings))("with %s fails", (_what, spoil) => {
    let spoiled = 0;
    const property = fc.property(rightHistories, fc.nat(), (right, random) => {
      const wrong = spoil(right, random);
      if (wrong === undefined) return;
      spoiled += 1;
      expect(check(wrong)).not.toEqual([]);
    });
    fc.assert(property);
    expect(spoiled).toBeGreaterThan(20);
  });
});
