/** Histories made by hand and by a correct model, for tests of the torture's checker. Times are in milliseconds here. */
import fc from "fast-check";
import type { History, Hold, Operation, ProcessEvent } from "../torture/history.ts";

const microseconds = 1_000;
let ids = 0;

/** An operation on the lock `k`, unless it is told otherwise. Without `to` it was never answered. */
export function operation(from: number, to: number | undefined, parts: Partial<Operation> = {}): Operation {
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
export function hold(from: number, until: number | undefined, parts: Partial<Hold> = {}): Hold {
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

export function event(
  at: number,
  name: ProcessEvent["event"],
  details: ProcessEvent["details"] = {},
): ProcessEvent {
  return { process: "p1", at: at * microseconds, event: name, details };
}

/** A history of these parts. */
export function history(parts: Partial<History>): History {
  const { operations = [], holds = [], events = [] } = parts;
  const byFrom = (one: { readonly from: number }, other: { readonly from: number }): number =>
    one.from - other.from;
  return { operations: [...operations].sort(byFrom), holds: [...holds].sort(byFrom), events };
}

/** A read of the register `r`. */
export function read(from: number, to: number, value: string): Operation {
  return operation(from, to, { subject: "register", action: "read", key: "r", details: { value } });
}

/** A write of the register `r`; without `to` nobody knows its outcome. */
export function write(from: number, to: number | undefined, previous: string, value: string): Operation {
  return operation(from, to, {
    subject: "register",
    action: "write",
    key: "r",
    details: { previous, value },
  });
}

/** A turn of the model: how long it waits for the lock, holds it, and what becomes of its write. */
const turn = fc.record({
  idle: fc.integer({ min: 1, max: 20 }),
  held: fc.integer({ min: 4, max: 60 }),
  /** Whether its write is answered, took effect without an answer, or got lost. */
  fate: fc.constantFrom("answered", "answered", "answered", "unheard", "lost", "refused"),
  /** How far calls begin before their effect, and answers come after it. */
  before: fc.integer({ min: 1, max: 30 }),
  after: fc.integer({ min: 1, max: 30 }),
  readsAt: fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 3 }),
});

/**
 * Histories of a lock that is right, and of a register that its holders write: each write takes effect in the middle of its
 * hold, and reads see the value of the moment.
 */
export const rightHistories: fc.Arbitrary<History> = fc
  .array(turn, { minLength: 3, maxLength: 25 })
  .map((turns) => {
    const operations: Operation[] = [];
    const holds: Hold[] = [];
    let value = "";
    let now = 100;
    for (const [index, { idle, held, fate, before, after, readsAt }] of turns.entries()) {
      const from = now + idle;
      const until = from + held;
      const process = `p${index % 4}`;
      holds.push(hold(from, until, { process, fencingToken: index + 1, since: from - before }));
      const effectAt = from + held / 2;
      const written = `${process}:${index}`;
      const previous = value;
      const isAnswered = fate === "answered";
      for (const ms of readsAt) {
        const at = from + (ms % held) + 0.25;
        const seen = at > effectAt && fate !== "lost" && fate !== "refused" ? written : previous;
        operations.push({ ...read(at - before, at + after, seen), process: "reader" });
      }
      const answered = isAnswered || fate === "refused" ? effectAt + after : undefined;
      const its = write(effectAt - before, answered, previous, written);
      operations.push({
        ...its,
        process,
        outcome: isAnswered ? "ok" : fate === "refused" ? "refused" : "unknown",
      });
      if (isAnswered || fate === "unheard") value = written;
      now = until;
    }
    // A read in the end, long after all answers, sees the last value.
    operations.push({ ...read(now + 1_000, now + 1_001, value), process: "reader" });
    return history({ operations, holds });
  });
