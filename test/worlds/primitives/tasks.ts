import type { TransactionEntry, UpdateRequest } from "@leasehold/client";
import fc from "fast-check";
import type { TaskRate } from "../../../packages/jobs/src/index.ts";
import { everyMishap, mishaps } from "../cluster.ts";
import type { Tamper } from "../network.ts";
import { drawn, isGrant, type Simulation, stepByStep, without } from "../simulation.ts";
import { type Ending, Import, ids, maxAttempts, processes, type TaskStep } from "./task-scene.ts";

const anyProcess = fc.nat(processes - 1);
const usualStep: fc.Arbitrary<TaskStep> = fc.oneof(
  drawn(2, "add", {
    process: anyProcess,
    ids: fc.shuffledSubarray([...ids], { minLength: 1 }),
    delayMs: fc.constantFrom(0, 0, 1_500),
    maxAttempts: fc.integer({ min: 1, max: maxAttempts }),
  }),
  drawn(10, "claim", { process: anyProcess }),
  drawn(7, "end", {
    which: fc.nat(50),
    how: fc.constantFrom<Ending>("succeed", "succeedIn", "fail", "fail", "release"),
    retryAfterMs: fc.constantFrom(0, 0, 2_000),
  }),
  drawn(1, "work", { process: anyProcess }),
  drawn(1, "requeueAll", { process: anyProcess }),
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("cancel" as const, "cancel" as const, "get" as const),
      process: anyProcess,
      id: fc.constantFrom(...ids),
    }),
  },
  drawn(3, "requeue", {
    process: anyProcess,
    which: fc.nat(50),
  }),
  ...mishaps(processes),
);
const night: fc.Arbitrary<TaskStep> = fc.record({ kind: fc.constant("night" as const) });
const step: fc.Arbitrary<TaskStep> = fc.oneof(
  { weight: 80, arbitrary: usualStep },
  { weight: 1, arbitrary: night },
);
const breaking: fc.Arbitrary<TaskStep> = fc.record({
  kind: fc.constant("break" as const),
  which: fc.nat(50),
});
const stepOrBreak: fc.Arbitrary<TaskStep> = fc.oneof(
  { weight: 20, arbitrary: step },
  { weight: 1, arbitrary: breaking },
);

/** One task that changes hands all the time: what is sent twice, or arrives late, meets many a later claim. */
const handOver: fc.Arbitrary<TaskStep> = fc.oneof(
  drawn(5, "claim", { process: anyProcess }),
  drawn(5, "end", {
    which: fc.constant(0),
    how: fc.constant<Ending>("release"),
    retryAfterMs: fc.constant(0),
  }),
  drawn(6, "wait", { ms: fc.integer({ min: 1, max: 600 }) }),
);
/** ... and many a later round. */
const newRound: fc.Arbitrary<TaskStep> = fc.oneof(
  { weight: 8, arbitrary: handOver },
  drawn(1, "cancel", {
    process: anyProcess,
    id: fc.constant("t0"),
  }),
  drawn(2, "requeue", {
    process: anyProcess,
    which: fc.constant(0),
  }),
);

type Write = UpdateRequest | TransactionEntry;

/** A cancel looks neither at the claim nor at the fencing token. */
const withoutBoth: Tamper = (write) =>
  isCancel(write) ? without("#fence = :seenFence")(without("attribute_not_exists(#token)")(write)) : write;

function isCancel(write: Write): boolean {
  return isRemoval(write) && write.condition.includes("attribute_exists(#maxAttempts)");
}

const withOneMore: Tamper = (write) =>
  "action" in write && ":dueAt" in write.values
    ? { ...write, values: { ...write.values, ":maxAttempts": maxAttempts + 1 } }
    : write;

function isRemoval(write: object): boolean {
  return "action" in write && write.action === "delete";
}

const isRequeue = ({ values }: Write): boolean => ":failed" in values;

/** Tasks that are added at the beginning, and what is done with them. */
function tasksWith(
  any: fc.Arbitrary<TaskStep>,
  added: readonly string[],
  mostSteps: number,
  serialKeys: readonly string[] = [],
  rate?: TaskRate,
): Simulation["play"] {
  const add = { kind: "add" as const, process: 0, delayMs: 0, maxAttempts };
  const ofKeys = serialKeys.map((serialKey, index) => {
    const some = added.filter((_, at) => at % serialKeys.length === index);
    return { ...add, ids: some, serialKey };
  });
  return stepByStep({
    step: any,
    mostSteps,
    opening: serialKeys.length === 0 ? [{ ...add, ids: added }] : ofKeys,
    make: (world, tamper) => new Import(world, tamper, processes, rate),
    end: (scene) => scene.expectAllToEnd(),
  });
}

const many: Simulation = {
  name: "tasks",
  claim:
    "the tasks of a set succeed once, by the claim that holds them, are claimed no more often than allowed, and all end",
  worlds: 300,
  mustHappen: [
    ...everyMishap,
    "added",
    "known",
    "claimed again",
    "begun again",
    "requeued: true",
    "requeued many: true",
    "cancelled: true",
    "cancelled: false",
    "recorded: cancelled",
    "got: waiting",
    "got: running",
    "got: cancelled",
    "worked",
    "confirmed: succeed",
    "confirmed: succeedIn",
    "confirmed: fail",
    "confirmed: release",
    "rejected: TaskLostError",
    "conflict",
    "in the end: succeeded",
    "in the end: failed",
    "in the end: parked",
    "in the end: cancelled",
  ],
  mistakes: [
    {
      what: "an ending by another's claim",
      tamper: without("#token = :ifToken AND #fence = :ifFence", isRemoval),
      violation: /by token .*, and was held by/,
    },
    {
      what: "a task that is added with an attempt more",
      tamper: withOneMore,
      violation: /has 4 attempts/,
    },
    {
      what: "a takeover of a claim that has been renewed",
      tamper: without("#version = :ifVersion"),
      violation: /believes to hold/,
    },
    {
      what: "a task that is added again after its success",
      tamper: without("attribute_not_exists(#state)"),
      violation: /is open, and has ended/,
    },
    {
      what: "a claim of a task that is claimed",
      tamper: without("attribute_not_exists(#token)"),
      violation: /believes to hold/,
    },
    {
      what: "a claim before its time",
      tamper: without("#dueAt <= :acquiredAt"),
      violation: /before it was due/,
    },
    {
      what: "a cancel of a task that is claimed",
      tamper: withoutBoth,
      violation: /was not waiting, and is cancelled/,
    },
  ],
  play: tasksWith(step, ids, 80),
};

const begunAgain: Simulation = {
  name: "tasks:begun-again",
  claim: "the same where one task changes hands and begins again all the time",
  worlds: 100,
  mustHappen: ["claimed", "confirmed: release", "sent twice", "late arrival"],
  mistakes: [
    {
      what: "a late copy of a claim",
      tamper: without("#fence = :seenFence", isGrant),
      violation: /has landed again/,
    },
    {
      what: "a late copy of a requeue",
      tamper: without("#fence = :seenFence", isRequeue),
      violation: /fencing token of t0 went from/,
    },
    {
      what: "a late copy of a cancel",
      tamper: without("#fence = :seenFence", isCancel),
      violation: /has landed after its answer|fencing token of t0 went from/,
    },
  ],
  play: tasksWith(newRound, ["t0"], 200),
};

/** Tasks of two serial keys, and late ones of a key or of none. */
const serialStep: fc.Arbitrary<TaskStep> = stepOrBreak.chain(
  (one): fc.Arbitrary<TaskStep> =>
    one.kind === "add"
      ? fc.constantFrom(one, { ...one, serialKey: "a" }, { ...one, serialKey: "b" })
      : fc.constant(one),
);

const isNaming = ({ values }: Write): boolean => ":lastTask" in values;
const isCheck = (write: object): boolean => "action" in write && write.action === "check";

const serial: Simulation = {
  name: "tasks:serial",
  claim:
    "the same where tasks have serial keys and claims are broken: no two tasks of one key are claimed at once",
  worlds: 300,
  mustHappen: [
    ...everyMishap,
    "broken",
    "claimed again",
    "claimed alone",
    "conflict",
    "confirmed: succeedIn",
    "confirmed: release",
    "requeued: true",
    "cancelled: true",
    "parked with its claim broken",
    "in the end: succeeded",
    "in the end: parked",
  ],
  mistakes: [
    {
      what: "a claim beside a running task of its key",
      tamper: without("attribute_not_exists(#token)", isCheck),
      violation: /are claimed at once|token of the key . went from/,
    },
    {
      what: "a claim though another task of its key was claimed since",
      tamper: without("#lastTask = :seenTask"),
      violation: /are claimed at once|token of the key . went from/,
    },
    {
      what: "a first claim of a key though another task was first",
      tamper: without("attribute_not_exists(#lastTask)"),
      violation: /are claimed at once|token of the key . went from/,
    },
    {
      what: "a fencing token of the task alone",
      tamper: (write) =>
        ":seenFence" in write.values && ":fence" in write.values && isGrant(write)
          ? { ...write, values: { ...write.values, ":fence": Number(write.values[":seenFence"]) + 1 } }
          : write,
      violation: /the fencing token of the key . went from/,
    },
    {
      what: "a claim that its key's item does not name",
      tamper: (write) =>
        isNaming(write) ? { ...write, values: { ...write.values, ":lastTask": "t9" } } : write,
      violation: /are claimed at once|token of the key . went from/,
    },
    {
      what: "a key's item that ttl removes while its task runs",
      tamper: (write) => (isNaming(write) ? { ...write, values: { ...write.values, ":ttl": 1 } } : write),
      violation: /are claimed at once|token of the key . went from/,
    },
  ],
  play: tasksWith(serialStep, ids, 80, ["a", "b"]),
};

const isCount = ({ values }: Write): boolean => ":most" in values;

const rated: Simulation = {
  name: "tasks:rate",
  claim:
    "the same where the set has a rate: no claim begins that was not counted, and no period counts too many",
  worlds: 100,
  mustHappen: [...everyMishap, "rate used up", "claimed again", "worked", "in the end: succeeded"],
  mistakes: [
    {
      what: "a count beyond the rate",
      tamper: without("#claims < :most"),
      violation: /one too many/,
    },
    {
      what: "a claim that is not counted",
      tamper: (write) => (isCount(write) ? { ...write, values: { ...write.values, ":one": 0 } } : write),
      violation: /claims were counted of/,
    },
  ],
  play: tasksWith(step, ids, 80, [], { claims: 2, perMs: 2_000 }),
};

export const tasks: readonly Simulation[] = [many, begunAgain, serial, rated];
