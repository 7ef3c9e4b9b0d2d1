/** What the checker finds in histories that are wrong, each beside one that is right. Times are in milliseconds here. */
import { expect, it } from "vitest";
import { check } from "./checker/index.ts";
import type { History, Hold, Operation, ProcessEvent } from "./history.ts";

const microseconds = 1_000;
let ids = 0;

/** An operation on the lock `k`, unless it is told otherwise. Without `to` it was never answered. */
function operation(from: number, to: number | undefined, parts: Partial<Operation> = {}): Operation {
  ids += 1;
  const { joinedAt, inLineUntil = joinedAt } = parts;
  const at = (ms: number | undefined): number | undefined =>
    ms === undefined ? undefined : ms * microseconds;
  return {
    ...{ process: "p1", id: ids, subject: "lock", action: "acquire", key: "k" },
    outcome: to === undefined ? "unknown" : "ok",
    details: {},
    ...parts,
    from: from * microseconds,
    to: at(to),
    joinedAt: at(joinedAt),
    inLineUntil: at(inLineUntil),
  };
}

/** A hold of the lock `k`, unless it is told otherwise. It was asked for a millisecond before. */
function hold(from: number, until: number | undefined, parts: Partial<Hold> = {}): Hold {
  ids += 1;
  const { since = from - 1, lostAt } = parts;
  return {
    ...{ process: "p1", id: ids, primitive: "lock", key: "k", kind: "exclusive" },
    ...{ fencingToken: ids, permits: 1, attempt: 0 },
    ...parts,
    since: since * microseconds,
    from: from * microseconds,
    until: until === undefined ? undefined : until * microseconds,
    lostAt: lostAt === undefined ? undefined : lostAt * microseconds,
  };
}

function event(
  at: number,
  name: ProcessEvent["event"],
  details: ProcessEvent["details"] = {},
  process = "p1",
): ProcessEvent {
  return { process, at: at * microseconds, event: name, details };
}

/** A call by `a`, whose lease has the fencing token 1. */
const byA = (from: number, action: string, parts: Partial<Operation> = {}): Operation =>
  operation(from, from + 2, { action, process: "a", details: { fencingToken: 1 }, ...parts });

const holdOfA = hold(10, 20, { process: "a", fencingToken: 1 });
const laterHoldOfB = hold(40, 50, { process: "b", fencingToken: 2, since: 35 });
const [first, second] = [laterHoldOfB, hold(10, 60, { process: "a", fencingToken: 1 })];

const permit = (from: number, until: number, permits = 1): Hold =>
  hold(from, until, { kind: "permit", permits, primitive: "semaphore" });
const reads = (from: number, until: number): Hold => hold(from, until, { kind: "read" });
const writes = (from: number, until: number): Hold => hold(from, until, { kind: "write" });

/** An operator breaks the lease of `a`. */
const breaking = (parts: Partial<Operation> = {}): Operation =>
  operation(30, 35, { process: "o", action: "break", details: { fencingToken: 1 }, ...parts });

const register = { subject: "register", key: "register/r" } as const;
const read = (from: number, to: number, value: string, parts: Partial<Operation> = {}): Operation =>
  operation(from, to, { ...register, action: "read", ...parts, details: { value, ...parts.details } });
/** A write in place of a value; without `to` nobody knows its outcome. */
const write = (
  from: number,
  to: number | undefined,
  previous: string,
  value: string,
  parts: Partial<Operation> = {},
): Operation =>
  operation(from, to, {
    ...register,
    action: "write",
    ...parts,
    details: { previous, value, ...parts.details },
  });
const refusedWrite = write(10, 20, "", "a", { outcome: "refused" });
/** The register of the lock `k`, written by `a`, whose lease has the fencing token 1. */
const checked = { key: "register/k/check", process: "a", details: { fencingToken: 1 } };
const fenced = { ...checked, key: "register/k/fence" };

const attempt = (from: number, number: number): Hold =>
  hold(from, from + 5, { primitive: "runs", attempt: number, fencingToken: number });
const succeed = (from: number, to: number | undefined, number: number): Operation =>
  operation(from, to, { subject: "runs", action: "succeed", details: { attempt: number } });
const calledDone = operation(50, 52, {
  subject: "runs",
  action: "run",
  outcome: "refused",
  details: { code: "LEASE_SLOT_DONE" },
});
const taskAdded = operation(1, 2, { subject: "tasks", action: "add" });
/** Two attempts at a task with one number. */
const repeated = [
  hold(10, 20, { process: "a", primitive: "tasks", attempt: 1, fencingToken: 1 }),
  hold(40, 45, { process: "b", primitive: "tasks", attempt: 1, fencingToken: 2 }),
];
const failed = operation(21, 22, {
  ...{ process: "a", subject: "tasks", action: "fail", details: { attempt: 1 } },
});

const waiter = (
  from: number,
  joinedAt: number | undefined,
  to: number | undefined,
  fencingToken: number,
): Operation => operation(from, to, { subject: "fair", joinedAt, details: { fencingToken } });
const had = waiter(0, undefined, 5, 1);
const newcomer = { ...waiter(30, 35, 50, 2), process: "p2" };
const dead = waiter(10, 20, undefined, 0);
/** One that a later caller has passed after 12 s. */
const longWaiter = waiter(10, 20, 15_000, 3);
const passing = [had, longWaiter, { ...waiter(30, 35, 12_000, 2), process: "p2" }];
const frozen = [event(9_000, "freeze"), event(9_500, "thaw")];
const fairHold = (from: number, until: number, fencingToken: number): Hold =>
  hold(from, until, { primitive: "fair", fencingToken, process: "p3" });
const inVain = (inLineUntil: number): Operation => ({
  ...operation(10, 15_000, { subject: "fair", joinedAt: 20, inLineUntil }),
  outcome: "refused",
});
const standing = Array.from({ length: 13 }, (_, index) =>
  operation(index, undefined, { subject: "fair", joinedAt: index + 1, inLineUntil: 1_000 }),
);

const compute = (from: number, to: number, value: string, fencingToken: number): Operation =>
  operation(from, to, { subject: "singleFlight", action: "compute", details: { value, fencingToken } });
const get = (from: number, value: string, fencingToken: number, refresh = false): Operation =>
  operation(from, from + 1, {
    subject: "singleFlight",
    action: "get",
    details: { refresh, source: "cache", value, fencingToken },
  });

const killedAtTheEnd = event(10, "exit", { code: "SIGKILL" });

type Row = readonly [what: string, wrong: Partial<History>, right: Partial<History>];

/** By the rule: what is wrong, a history of it, and one that differs and is right. */
const rows: Readonly<Record<string, readonly Row[]>> = {
  "mutual exclusion": [
    [
      "two holders at one moment",
      { holds: [hold(10, 30), hold(29, 40)] },
      { holds: [hold(10, 30), hold(30, 40), hold(20, 50, { key: "other" })] },
    ],
    [
      "a holder within a longer hold",
      { holds: [hold(10, 100), hold(40, 50)] },
      { holds: [hold(10, 100), hold(40, undefined, { since: 5 })] },
    ],
    [
      "another holder beside one whose lease an operator did not find",
      { holds: [first, second], operations: [breaking({ outcome: "refused" })] },
      { holds: [first, second], operations: [breaking()] },
    ],
    [
      "another holder beside one where an operator has broken another lease",
      { holds: [first, second], operations: [breaking({ details: { fencingToken: 2 } })] },
      { holds: [first, second], operations: [breaking({ outcome: "unknown", to: undefined })] },
    ],
  ],
  "the bound of the permits": [
    [
      "permit 4 of 3",
      { holds: [permit(10, 50), permit(20, 50), permit(30, 40, 2)] },
      { holds: [permit(10, 50, 2), permit(20, 30), permit(30, 60)] },
    ],
  ],
  "readers or one writer": [
    [
      "a writer beside a reader",
      { holds: [reads(10, 30), writes(20, 40)] },
      { holds: [reads(10, 30), reads(20, 40), writes(40, 50)] },
    ],
    [
      "a reader beside a writer",
      { holds: [writes(10, 30), reads(20, 40)] },
      { holds: [writes(10, 20), reads(20, 40)] },
    ],
    ["two writers", { holds: [writes(10, 30), writes(20, 40)] }, { holds: [writes(10, 30), writes(30, 40)] }],
  ],
  "a lost lease stays lost": [
    [
      "a lease that is held again after its loss",
      { holds: [hold(10, 40, { lostAt: 30 })] },
      { holds: [hold(10, 30, { lostAt: 40 })] },
    ],
  ],
  "a lease ends by itself": [
    [
      "a lease of 400 ms that is held for longer",
      { holds: [hold(10, 411, { leaseMs: 400 })] },
      { holds: [hold(10, 410, { leaseMs: 400 })] },
    ],
  ],
  "a lock stays closed for its time": [
    [
      "a grant of a lock that is to be closed",
      { holds: [hold(10, 20, { since: 10, cooldownMs: 2_000 }), hold(809, 900)] },
      { holds: [hold(10, 20, { since: 10, cooldownMs: 2_000 }), hold(811, 900)] },
    ],
  ],
  "fencing order": [
    [
      "a token that was given twice",
      { holds: [hold(10, 20, { fencingToken: 7 }), hold(30, 40, { fencingToken: 7 })] },
      { holds: ["one", "two"].map(() => hold(10, 20, { fencingToken: 7, isShared: true })) },
    ],
    [
      "a smaller token after a larger one",
      { holds: [hold(10, 11, { fencingToken: 9 }), hold(30, 31, { fencingToken: 6 })] },
      { holds: [hold(10, 11, { fencingToken: 9 }), hold(30, 31, { fencingToken: 6, since: 5 })] },
    ],
    [
      "a smaller token than that of a caller that died before it held",
      { operations: [byA(10, "acquire", { details: { fencingToken: 5 } })], holds: [laterHoldOfB] },
      { operations: [byA(10, "acquire")], holds: [laterHoldOfB] },
    ],
  ],
  "a lease that is over stays over": [
    ...["release", "renew"].map((action): Row => {
      const told = byA(60, action, { details: { fencingToken: 1, result: "false" } });
      return [
        `a yes to a ${action} after another's grant`,
        { holds: [holdOfA, laterHoldOfB], operations: [byA(60, action)] },
        { holds: [holdOfA, laterHoldOfB], operations: [told, byA(60, action, { outcome: "refused" })] },
      ];
    }),
    [
      "a yes to a release of which only the process is known",
      { holds: [holdOfA, laterHoldOfB], operations: [byA(60, "release", { details: {} })] },
      { holds: [holdOfA, laterHoldOfB], operations: [byA(25, "release", { details: {} })] },
    ],
    [
      "a yes to a release after an operator has broken the lease",
      { holds: [holdOfA], operations: [breaking(), byA(50, "release")] },
      { holds: [holdOfA], operations: [breaking(), byA(34, "release")] },
    ],
  ],
  "linearizability of the fenced register": [
    [
      "a stale read",
      { operations: [write(10, 20, "", "a"), write(30, 40, "a", "b"), read(50, 55, "a")] },
      { operations: [write(10, 20, "", "a"), write(30, 60, "a", "b"), read(50, 55, "a")] },
    ],
    [
      "a lost update",
      { operations: [write(10, 20, "", "a"), write(30, 40, "", "b")] },
      { operations: [write(10, undefined, "", "a"), write(30, 40, "", "b")] },
    ],
    [
      "a value that comes and goes",
      { operations: [write(10, undefined, "", "a"), read(20, 25, "a"), read(30, 35, "")] },
      { operations: [write(10, undefined, "", "a"), read(20, 25, ""), read(900, 905, "a")] },
    ],
    [
      "a value that was refused",
      { operations: [refusedWrite, read(30, 35, "a")] },
      { operations: [refusedWrite, read(30, 35, "")] },
    ],
    [
      "an order in which the last operation has no place",
      {
        // The first reader forces both writes before the answer to it.
        operations: [write(10, 50, "", "a"), write(11, 51, "a", "b"), read(12, 20, "b"), read(30, 35, "a")],
      },
      { operations: [write(10, 50, "", "a"), write(11, 51, "a", "b"), read(12, 20, "a"), read(30, 35, "b")] },
    ],
    [
      "a checked write that began before a later grant, and landed after its holder's reading",
      {
        holds: [holdOfA, laterHoldOfB],
        operations: [read(51, 52, "", { key: checked.key, process: "b" }), write(15, 70, "", "x", checked)],
      },
      {
        holds: [holdOfA, laterHoldOfB],
        operations: [read(51, 52, "x", { key: checked.key, process: "b" }), write(15, 70, "", "x", checked)],
      },
    ],
    [
      "a checked write of a lease of which only the process is known",
      { holds: [holdOfA, laterHoldOfB], operations: [write(60, 70, "", "x", { ...checked, details: {} })] },
      { holds: [holdOfA, laterHoldOfB], operations: [write(30, 70, "", "x", { ...checked, details: {} })] },
    ],
    [
      "a checked write that landed after its own release",
      { holds: [holdOfA], operations: [byA(21, "release"), write(26, 70, "", "x", checked)] },
      { holds: [holdOfA], operations: [byA(21, "release"), write(22, 70, "", "x", checked)] },
    ],
    [
      "a fenced write after a later holder's reading",
      {
        holds: [holdOfA, laterHoldOfB],
        operations: [
          read(51, 52, "", { ...fenced, details: { fencingToken: 2 } }),
          write(60, 70, "", "x", fenced),
        ],
      },
      {
        holds: [holdOfA, laterHoldOfB],
        operations: [read(51, 52, "", { key: fenced.key }), write(60, 70, "", "x", fenced)],
      },
    ],
  ],
  "exactly once": [
    [
      "a slot that was done twice",
      { holds: [attempt(10, 1), attempt(30, 2)], operations: [succeed(16, 20, 1), succeed(36, 40, 2)] },
      { holds: [attempt(10, 1), attempt(30, 2)], operations: [succeed(36, 40, 2)] },
    ],
    [
      "an attempt that begins after the success",
      { holds: [attempt(10, 1), attempt(30, 2)], operations: [succeed(16, 20, 1)] },
      { holds: [attempt(10, 1), attempt(30, 2)], operations: [succeed(16, undefined, 1)] },
    ],
    [
      "a slot that is said to be done, though nobody has done it",
      { operations: [calledDone, succeed(60, 62, 1)] },
      { operations: [succeed(40, undefined, 1), calledDone] },
    ],
    [
      "two attempts with one number",
      { holds: [attempt(10, 1), { ...attempt(30, 1), fencingToken: 2 }] },
      { holds: repeated, events: [event(30, "close", {}, "a")] },
    ],
    [
      "two attempts with one number, of which the first had ended",
      { holds: repeated, operations: [failed], events: [event(30, "close", {}, "a")] },
      {
        holds: repeated,
        operations: [{ ...failed, outcome: "unknown" }],
        events: [event(30, "close", {}, "a")],
      },
    ],
    [
      "a task that was added and never done",
      { operations: [taskAdded] },
      { operations: [taskAdded, succeed(16, 20, 1)] },
    ],
  ],
  "order of the line": [
    [
      "a waiter that was overtaken",
      { operations: [had, waiter(10, 20, 60, 3), newcomer] },
      { operations: [had, waiter(10, 40, 60, 3), newcomer] },
    ],
    [
      "a dead waiter that was overtaken before its ticket could be passed",
      { operations: [had, dead, waiter(30, undefined, 50, 2)] },
      { operations: [had, dead, waiter(30, 35, 9_500, 2)] },
    ],
    [
      "a waiter that was overtaken, and cannot have had the lock without hearing of it",
      { operations: [had, dead, waiter(30, 35, 50, 2)] },
      { operations: [had, dead, waiter(30, 35, 50, 3)] },
    ],
    [
      "a living waiter that was passed while nothing kept it from answering",
      { operations: passing },
      { operations: passing, events: frozen },
    ],
    [
      "a living waiter that was passed while another process was frozen",
      { operations: passing, events: frozen.map((each) => ({ ...each, process: "p2" })) },
      { operations: passing, events: [event(9_000, "foul"), event(9_500, "fair")] },
    ],
    [
      "a living waiter that was passed, and whose process was frozen before it joined",
      { operations: passing, events: [event(2, "freeze"), event(9, "thaw")] },
      { operations: passing, events: frozen },
    ],
    [
      "a waiter that was passed though the lock was not free for so long",
      { operations: passing, events: frozen, holds: [fairHold(40, 3_100, 1.1)] },
      { operations: passing, events: frozen, holds: [fairHold(40, 2_900, 1.1)] },
    ],
    [
      "a living waiter that was passed, and whose wait was in vain",
      { operations: passing.map((each) => (each === longWaiter ? inVain(12_500) : each)) },
      { operations: passing.map((each) => (each === longWaiter ? inVain(11_000) : each)) },
    ],
  ],
  "bound of the line": [
    ["more waiters than the line is for", { operations: standing }, { operations: standing.slice(1) }],
  ],
  "values of single flight": [
    [
      "a value that nobody has computed",
      { operations: [compute(10, 20, "a", 1), get(30, "b", 1)] },
      { operations: [compute(10, 20, "a", 1), get(30, "a", 1)] },
    ],
    [
      "a value that was computed before a refresh was asked for",
      { operations: [compute(10, 20, "a", 1), get(30, "a", 1, true)] },
      { operations: [compute(30, 31, "a", 1), get(30, "a", 1, true)] },
    ],
    [
      "a value of an earlier holder after that of a later one",
      { operations: [compute(1, 2, "a", 1), compute(3, 4, "b", 2), get(10, "b", 2), get(20, "a", 1)] },
      { operations: [compute(1, 2, "a", 1), compute(3, 4, "b", 2), get(10, "a", 1), get(20, "b", 2)] },
    ],
  ],
  "no lock stays stuck": [
    [
      "an audit that does not get the lock",
      { operations: [byA(900, "audit", { outcome: "refused" })] },
      { operations: [byA(900, "audit")] },
    ],
  ],
  "every call is answered": [
    [
      "a call without an answer after the faults",
      { operations: [operation(600, undefined)], events: [event(500, "calm")] },
      { operations: [operation(400, undefined)], events: [event(500, "calm")] },
    ],
  ],
  "every process ends when asked": [
    [
      "a process that has to be killed in the end",
      { events: [killedAtTheEnd] },
      { events: [event(9, "kill"), killedAtTheEnd] },
    ],
  ],
  "only named errors": [["an error without a name", { events: [event(10, "mistake")] }, {}]],
};

function violationsOf({ operations = [], holds = [], events = [] }: Partial<History>) {
  const byFrom = (one: { readonly from: number }, other: { readonly from: number }): number =>
    one.from - other.from;
  return check({ operations: [...operations].sort(byFrom), holds: [...holds].sort(byFrom), events });
}

it.each(Object.entries(rows).flatMap(([rule, ofRule]) => ofRule.map(([...row]) => [rule, ...row] as const)))(
  "%s: finds %s",
  (rule, _what, wrong, right) => {
    expect([...new Set(violationsOf(wrong).map((violation) => violation.rule))]).toEqual([rule]);
    expect(violationsOf(right)).toEqual([]);
  },
);

it("tells whose holds were wrong, and when", () => {
  const holds = [hold(10, 30, { process: "a" }), hold(29, 40, { process: "b" })];
  expect(violationsOf({ holds })[0]?.text).toMatch(
    /^b#\d+ holds k .*\[29\.000 \.\. 40\.000\] ms; a#\d+ holds k .*\[10\.000 \.\. 30\.000\] ms$/,
  );
});

it("judges thousands of operations on a register, of which hundreds have no answer", () => {
  const operations = Array.from({ length: 3_000 }, (_, index) => {
    const [previous, value] = [index === 0 ? "" : `v${index - 1}`, `v${index}`];
    return write(10 * index, index % 7 === 3 ? undefined : 10 * index + 25, previous, value);
  });
  expect(violationsOf({ operations })).toEqual([]);
});
