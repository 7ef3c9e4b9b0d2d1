import type { TransactionEntry, UpdateRequest } from "@leasehold/client";
import fc from "fast-check";
import type { TaskRate } from "../../../packages/jobs/src/index.ts";
import { everyMishap, type Mishap, mishaps } from "../cluster.ts";
import {
  drawn,
  isGrant,
  type Mistakes,
  type Simulation,
  saying,
  sending,
  stepByStep,
  without,
} from "../simulation.ts";
import { heldGrant, staleTakeover } from "./lease-mistakes.ts";
import { type Ending, Import, ids, maxAttempts, processes, type TaskStep } from "./task-scene.ts";

type Step = TaskStep | Mishap;

const anyProcess = fc.nat(processes - 1);
const usualStep: fc.Arbitrary<Step> = fc.oneof(
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
const night: fc.Arbitrary<Step> = fc.record({ kind: fc.constant("night" as const) });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 80, arbitrary: usualStep },
  { weight: 1, arbitrary: night },
);
const breaking: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant("break" as const),
  which: fc.nat(50),
});
const stepOrBreak: fc.Arbitrary<Step> = fc.oneof(
  { weight: 20, arbitrary: step },
  { weight: 1, arbitrary: breaking },
);

/** One task that changes hands all the time: what is sent twice, or arrives late, meets many a later claim. */
const handOver: fc.Arbitrary<Step> = fc.oneof(
  drawn(5, "claim", { process: anyProcess }),
  drawn(5, "end", {
    which: fc.constant(0),
    how: fc.constant<Ending>("release"),
    retryAfterMs: fc.constant(0),
  }),
  drawn(6, "wait", { ms: fc.integer({ min: 1, max: 600 }) }),
);
/** ... and many a later round. */
const newRound: fc.Arbitrary<Step> = fc.oneof(
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

const isRemoval = (write: object): boolean => "action" in write && write.action === "delete";
const isCheck = (write: object): boolean => "action" in write && write.action === "check";
const isCancel = (write: Write): boolean =>
  isRemoval(write) && write.condition.includes("attribute_exists(#maxAttempts)");
const isRequeue = ({ values }: Write): boolean => ":failed" in values;
const isNaming = ({ values }: Write): boolean => ":lastTask" in values;
/** As it was seen: not as it was when a lease was judged. */
const lateCopy = (isMeant: (write: Write) => boolean) =>
  without({ of: "fence", test: "=", by: (write) => ":seenFence" in write.values && isMeant(write) });

/** Tasks that are added at the beginning, and what is done with them. */
function tasksWith(
  any: fc.Arbitrary<Step>,
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
    make: (world) => new Import(world, processes, rate),
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
  mistakes: {
    "an ending by another's claim": [
      without({ of: ["token", "fence"], test: "=", by: isRemoval }),
      /by token .*, and was held by/,
    ],
    "a task that is added with an attempt more": [
      saying(":maxAttempts", maxAttempts + 1, (write) => "action" in write && ":dueAt" in write.values),
      /has 4 attempts/,
    ],
    ...staleTakeover,
    "a task that is added again after its success": [
      without({ of: "state", test: "missing" }),
      /is open, and has ended/,
    ],
    ...heldGrant,
    "a claim before its time": [without({ of: "dueAt", test: "<=" }), /before it was due/],
    "a cancel of a task that is claimed": [
      without({ of: ["token", "fence"], by: isCancel }),
      /was not waiting, and is cancelled|has landed after its answer/,
    ],
  },
  play: tasksWith(step, ids, 80),
};

const begunAgain: Simulation = {
  name: "tasks:begun-again",
  claim: "the same where one task changes hands and begins again all the time",
  worlds: 100,
  mustHappen: ["claimed", "confirmed: release", "sent twice", "late arrival"],
  mistakes: {
    "a late copy of a claim": [lateCopy(isGrant), /has landed again/],
    "a late copy of a requeue": [lateCopy(isRequeue), /fencing token of t0 went from/],
    "a late copy of a cancel": [
      lateCopy(isCancel),
      /has landed after its answer|fencing token of t0 went from/,
    ],
  },
  play: tasksWith(newRound, ["t0"], 200),
};

/** Tasks of two serial keys, and late ones of a key or of none. */
const serialStep: fc.Arbitrary<Step> = stepOrBreak.chain(
  (one): fc.Arbitrary<Step> =>
    one.kind === "add"
      ? fc.constantFrom(one, { ...one, serialKey: "a" }, { ...one, serialKey: "b" })
      : fc.constant(one),
);

const sharedKey = /are claimed at once|token of the key . went from/;

/** Chance shows it once in 2,000 worlds, and the explorer each time. */
export const claimsPastAnother: Mistakes = {
  "a claim though another task of its key was claimed since": [
    without({ of: "lastTask", test: "=" }),
    sharedKey,
  ],
};

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
  mistakes: {
    "a claim beside a running task of its key": [
      without({ of: "token", test: "missing", by: isCheck }),
      sharedKey,
    ],
    "a first claim of a key though another task was first": [
      without({ of: "lastTask", test: "missing" }),
      sharedKey,
    ],
    "a fencing token of the task alone": [
      sending((write) => {
        const { ":seenFence": seen, ":fence": fence } = write.values;
        if (seen === undefined || fence === undefined || !isGrant(write)) return write;
        return { ...write, values: { ...write.values, ":fence": Number(seen) + 1 } };
      }),
      /the fencing token of the key . went from/,
    ],
    "a claim that its key's item does not name": [saying(":lastTask", "t9"), sharedKey],
    "a key's item that ttl removes while its task runs": [saying(":ttl", 1, isNaming), sharedKey],
  },
  play: tasksWith(serialStep, ids, 80, ["a", "b"]),
};

const rated: Simulation = {
  name: "tasks:rate",
  claim:
    "the same where the set has a rate: no claim begins that was not counted, and no period counts too many",
  worlds: 100,
  mustHappen: [...everyMishap, "rate used up", "claimed again", "worked", "in the end: succeeded"],
  mistakes: {
    "a count beyond the rate": [without({ of: "claims", test: "<" }), /one too many/],
    "a claim that is not counted": [
      saying(":one", 0, ({ values }) => ":most" in values),
      /claims were counted of/,
    ],
  },
  play: tasksWith(step, ids, 80, [], { claims: 2, perMs: 2_000 }),
};

export const tasks: readonly Simulation[] = [many, begunAgain, serial, rated];
