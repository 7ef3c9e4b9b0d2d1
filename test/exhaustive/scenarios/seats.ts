/** Semaphores and read-write locks: the bounds of their seats, without an order and in line. */
import { HeldLease } from "../../../packages/client/src/core/held-lease.ts";
import { seatCounters } from "../../../packages/client/src/primitives/seats/seat.ts";
import type { Write } from "../../../packages/client/src/statements/statement.ts";
import { insistingOn, leaving, withConditions } from "../../support/recomposed.ts";
import { takingTurns, uncountedLeave } from "../../worlds/primitives/fair-lock-mistakes.ts";
import { mistakes, type SeatStep, Seats, type Wish, writing } from "../../worlds/primitives/seats.ts";
import { type Mistakes, named, replacing, without } from "../../worlds/simulation.ts";
import {
  type AnyScenario,
  dateFaults,
  type FaultKind,
  scenario,
  type Wait,
  wait,
  withFaults,
} from "../scenario.ts";

const acquire = (caller: number, what: Wish["what"], options: Partial<Wish> = {}): SeatStep => ({
  ...{ kind: "acquire", caller, what },
  ...{ permits: 1, waitMs: 12_000, heartbeat: false, reentrant: false, lockAtLeastForMs: 0 },
  ...options,
});
/** Of an owner that may have a seat already. */
const again = (caller: number, what: Wish["what"], options: Partial<Wish> = {}): SeatStep =>
  acquire(caller, what, { reentrant: true, ...options });
const release = (caller: number): SeatStep => ({ kind: "release", caller });
const check = (caller: number): SeatStep => ({ kind: "check", caller });

/** A reader that comes and goes. */
const reading = (caller: number): readonly (SeatStep | Wait)[] =>
  Array.from({ length: 2 }, () => [
    acquire(caller, "read", { waitMs: 0 }),
    wait(700),
    release(caller),
    wait(300),
  ]).flat();

const messages: readonly FaultKind[] = ["request lost", "request late", "answer lost", "sent twice"];

const seatMistakes: Mistakes = {
  "a release that does not insist on its seat": [
    writing("release", (write) => insistingOn(write, "attribute_exists(#ttl)")),
    /differs from/,
  ],
  "a seat that is not counted": [
    writing("acquire", (write) => leaving(write, "#permits")),
    /permits differs from/,
  ],
};

/** In place of the mark of the owner's own seat, the one of anybody's. */
function besideAny(write: Write): Write {
  return withConditions(write, (condition) => condition.replace("#Exempt", `#${seatCounters.write}`));
}

function withoutBounds(write: Write): Write {
  return withConditions(write, (condition) => (condition.includes(":most_") ? undefined : condition));
}

const takenBack: Mistakes = {
  "an acquisition that is taken back without having landed": [
    writing("cancel", (write) => insistingOn(write, "attribute_exists(#ttl)")),
    /differs from/,
  ],
};

const semaphore = scenario({
  name: "semaphore",
  kinds: ["request lost", "request late", "answer lost", "sent twice", "killed", ...dateFaults],
  make: (world) => new Seats(world, { processes: 2, permits: 1 }),
  lanes: [
    {
      process: 0,
      steps: [acquire(0, "permit"), release(0), acquire(0, "permit", { waitMs: 0 }), check(0), release(0)],
    },
    { process: 1, steps: [acquire(1, "permit", { waitMs: 0 }), check(1), release(1)] },
  ],
  mistakes: { ...named(mistakes, "off by one", "counter", "revoked", "proof without"), ...seatMistakes },
});

const readWrite = scenario({
  name: "read-write",
  kinds: ["request lost", "request late", "answer lost", "sent twice", "killed", ...dateFaults],
  make: (world) => new Seats(world, { processes: 2 }),
  lanes: [
    {
      process: 0,
      steps: [acquire(0, "read"), release(0), acquire(0, "write", { waitMs: 0 }), check(0), release(0)],
    },
    { process: 1, steps: [acquire(1, "write", { waitMs: 500 }), check(1), release(1)] },
  ],
  mistakes: { "a bound that is left out": [writing("acquire", withoutBounds), /two writers|reads while/] },
});

/** A writer renews for so long while another one comes. */
const renewals = (name: string, holdsMs: number, mistakes: Mistakes): AnyScenario =>
  scenario({
    name,
    faults: 2,
    kinds: ["request late", "frozen"],
    make: (world) => new Seats(world, { processes: 2 }),
    lanes: [
      {
        process: 0,
        steps: [acquire(0, "write", { waitMs: 0, heartbeat: true }), wait(holdsMs), release(0)],
      },
      { process: 1, steps: [wait(6_500), acquire(1, "write", { waitMs: 0 }), release(1)] },
    ],
    mistakes,
  });

export const seats: readonly AnyScenario[] = [
  semaphore,
  ...withFaults(semaphore, 2, {
    "two-lost": { kinds: ["request lost", "answer lost", "sent twice", "killed"], mistakes: takenBack },
    "two-late": { kinds: ["request late"] },
  }),
  scenario({
    name: "semaphore:three",
    kinds: ["request late", "answer lost", "sent twice", "killed", "frozen"],
    make: (world) => new Seats(world, { processes: 3, permits: 2 }),
    lanes: [
      {
        process: 0,
        steps: [acquire(0, "permit", { permits: 2, waitMs: 0, lockAtLeastForMs: 1_000 }), release(0)],
      },
      { process: 1, steps: [acquire(1, "permit", { waitMs: 1_500 }), release(1)] },
      {
        process: 2,
        steps: [
          acquire(2, "permit", { waitMs: 0 }),
          wait(6_000),
          acquire(2, "permit", { permits: 2, waitMs: 0 }),
          release(2),
        ],
      },
    ],
    mistakes: named(mistakes, "off by one", "cooldown", "takeover", "two copies"),
  }),
  scenario({
    name: "semaphore:ttl",
    faults: 2,
    kinds: ["request late", "answer lost", "ttl"],
    make: (world) => new Seats(world, { processes: 2, permits: 2 }),
    lanes: [
      { process: 0, steps: [acquire(0, "permit", { waitMs: 0 }), wait(2_000), release(0)] },
      {
        process: 1,
        steps: [
          acquire(1, "permit", { waitMs: 0 }),
          release(1),
          wait(500),
          acquire(1, "permit", { permits: 2, waitMs: 0 }),
          release(1),
        ],
      },
    ],
    mistakes: named(mistakes, "ttl"),
  }),
  scenario({
    name: "semaphore:reentrant",
    kinds: [...messages, "killed", "frozen"],
    make: (world) => new Seats(world, { processes: 2, permits: 1 }),
    lanes: [
      { process: 0, steps: [again(0, "permit"), wait(500), check(0), release(0)] },
      { process: 0, steps: [again(0, "permit"), wait(1_000), check(0), release(0)] },
      { process: 1, steps: [acquire(1, "permit"), check(1), release(1)] },
    ],
    mistakes: {
      "the first handle that is let go ends a seat for the others": [
        replacing(HeldLease.prototype, "retain", () => undefined),
        /let one handle go, and lost/,
      ],
    },
  }),
  scenario({
    name: "semaphore:two-of-an-owner",
    kinds: [...messages, "killed", "frozen"],
    make: (world) => new Seats(world, { processes: 2, permits: 2 }),
    lanes: [
      {
        process: 0,
        steps: [again(0, "permit", { waitMs: 0 }), again(0, "permit", { waitMs: 0 }), release(0)],
      },
      { process: 1, steps: [acquire(1, "permit", { waitMs: 0 }), release(1)] },
    ],
    mistakes: named(mistakes, "reentrant owner"),
  }),
  readWrite,
  ...withFaults(readWrite, 2, {
    "two-lost": { kinds: ["request lost", "answer lost", "killed"] },
    "two-copies": { kinds: ["sent twice", "answer lost"] },
  }),
  renewals("read-write:renewals", 8_000, {}),
  // While a writer renews for long, it takes ten times as many courses to find it.
  renewals("read-write:renewals:short", 500, named(mistakes, "renewed since")),
  scenario({
    name: "read-write:reentrant",
    kinds: [...messages, "killed", "frozen"],
    make: (world) => new Seats(world, { processes: 2 }),
    lanes: [
      {
        process: 0,
        steps: [
          again(0, "write", { waitMs: 0 }),
          again(0, "read", { waitMs: 0 }),
          release(0),
          check(0),
          release(0),
        ],
      },
      { process: 1, steps: [again(1, "read", { waitMs: 1_000 }), check(1), release(1)] },
    ],
    mistakes: {
      "a reader that takes any owner's write lock for its own": [
        writing("acquire", besideAny),
        /reads while/,
      ],
    },
  }),
  // There is never a moment without a reader, until a writer waits.
  scenario({
    name: "read-write:crowded",
    kinds: [...messages, "killed", "frozen"],
    make: (world) => new Seats(world, { processes: 3 }),
    lanes: [
      { process: 0, steps: [wait(900), acquire(0, "write", { waitMs: 6_000 }), check(0), release(0)] },
      { process: 1, steps: reading(1) },
      { process: 2, steps: [wait(500), ...reading(2)] },
    ],
    mistakes: {
      "an intent that keeps no reader out": [without({ of: "intents" }), /reads while .* waits to write/],
    },
  }),
  scenario({
    name: "semaphore:in-line",
    kinds: ["request lost", "request late", "answer lost", "sent twice", "killed"],
    make: (world) => new Seats(world, { processes: 3, permits: 1, isOrdered: true }),
    lanes: [
      { process: 0, steps: [acquire(0, "permit"), wait(1_000), release(0)] },
      { process: 1, steps: [wait(800), acquire(1, "permit"), release(1)] },
      { process: 2, steps: [wait(900), acquire(2, "permit"), release(2)] },
    ],
    mistakes: {
      "a bound that is left out where callers wait in line": [takingTurns(withoutBounds), /permits are held/],
      ...uncountedLeave,
    },
  }),
];
