/** Semaphores and read-write locks: the bounds of their seats, without an order and in line. */
import { HeldSeat } from "../../../packages/client/src/seats/held-seat.ts";
import { SeatForm } from "../../../packages/client/src/seats/seat-form.ts";
import { mistakes, type SeatStep, Seats, type Wish, writing } from "../../simulation/primitives/seats.ts";
import { type Mistake, replacing } from "../../simulation/simulation.ts";
import { type AnyScenario, scenario, type Wait } from "../scenario.ts";
import { takingTurns } from "./fair-lock-mistakes.ts";

const acquire = (caller: number, what: Wish["what"], options: Partial<Wish> = {}): SeatStep => ({
  ...{ kind: "acquire", caller, what },
  ...{ permits: 1, waitMs: 12_000, heartbeat: false, reentrant: false, lockAtLeastForMs: 0 },
  ...options,
});
const release = (caller: number): SeatStep => ({ kind: "release", caller });
const check = (caller: number): SeatStep => ({ kind: "check", caller });
const wait = (ms: number): Wait => ({ kind: "wait", ms });

/** Those of its simulation whose words contain one of these. */
const mistakesOf = (...words: readonly string[]): readonly Mistake[] =>
  mistakes.filter(({ what }) => words.some((word) => what.includes(word)));

const end = (stage: Seats): Promise<void> => stage.expectAllToHeal();

const seatMistakes: readonly Mistake[] = [
  {
    what: "a release that frees whatever seat has its token",
    plant: replacing(HeldSeat.prototype, "proof", () => ({ token }) => [[`f:${token}`, "exists"]]),
    violation: /a stale write of .* went through/,
  },
  {
    what: "a release that does not insist on its seat",
    plant: writing("release", (write) => ({ ...write, insist: [["ttl", "exists"]] })),
    violation: /differs from/,
  },
  {
    what: "a seat that is not counted",
    plant: writing("acquire", ({ set: { permits: _, ...set }, ...write }) => ({ ...write, set })),
    violation: /permits differs from/,
  },
  {
    what: "an acquisition that is taken back without having landed",
    plant: replacing(
      SeatForm.prototype,
      "cancel",
      (original) =>
        function (this: SeatForm, cancellation) {
          return { ...original.call(this, cancellation), insist: [["ttl", "exists"]] };
        },
    ),
    violation: /differs from/,
  },
];

export const seats: readonly AnyScenario[] = [
  scenario({
    name: "semaphore",
    faults: 2,
    kinds: ["request lost", "request late", "answer lost", "sent twice", "killed"],
    make: (world, planted) => new Seats(world, planted, { processes: 2, permits: 1 }),
    lanes: [
      {
        process: 0,
        steps: [acquire(0, "permit"), release(0), acquire(0, "permit", { waitMs: 0 }), check(0), release(0)],
      },
      { process: 1, steps: [acquire(1, "permit", { waitMs: 0 }), check(1), release(1)] },
    ],
    end,
    mistakes: [...mistakesOf("off by one", "counter", "revoked"), ...seatMistakes],
  }),
  scenario({
    name: "semaphore:three",
    faults: 1,
    kinds: ["request late", "answer lost", "sent twice", "killed", "frozen"],
    make: (world, planted) => new Seats(world, planted, { processes: 3, permits: 2 }),
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
    end,
    mistakes: mistakesOf("off by one", "cooldown", "takeover", "two copies"),
  }),
  scenario({
    name: "semaphore:ttl",
    faults: 2,
    kinds: ["request late", "answer lost", "ttl"],
    make: (world, planted) => new Seats(world, planted, { processes: 2, permits: 2 }),
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
    end,
    mistakes: mistakesOf("ttl"),
  }),
  scenario({
    name: "read-write",
    faults: 2,
    kinds: ["request lost", "request late", "answer lost", "sent twice", "killed"],
    make: (world, planted) => new Seats(world, planted, { processes: 2 }),
    lanes: [
      {
        process: 0,
        steps: [acquire(0, "read"), release(0), acquire(0, "write", { waitMs: 0 }), check(0), release(0)],
      },
      { process: 1, steps: [acquire(1, "write", { waitMs: 500 }), check(1), release(1)] },
    ],
    end,
    mistakes: [
      {
        what: "a bound that is left out",
        plant: writing("acquire", (write) => ({
          ...write,
          insist: write.insist.filter((condition) => !("anyOf" in condition)),
        })),
        violation: /two writers|reads while/,
      },
    ],
  }),
  scenario({
    name: "read-write:renewals",
    faults: 2,
    kinds: ["request late", "frozen"],
    make: (world, planted) => new Seats(world, planted, { processes: 2 }),
    lanes: [
      { process: 0, steps: [acquire(0, "write", { waitMs: 0, heartbeat: true }), wait(8_000), release(0)] },
      { process: 1, steps: [wait(6_500), acquire(1, "write", { waitMs: 0 }), release(1)] },
    ],
    end,
    mistakes: [...mistakesOf("renewed since")],
  }),
  scenario({
    name: "semaphore:in-line",
    faults: 1,
    kinds: ["request lost", "request late", "answer lost", "sent twice", "killed"],
    make: (world, planted) => new Seats(world, planted, { processes: 3, permits: 1, isOrdered: true }),
    lanes: [
      { process: 0, steps: [acquire(0, "permit"), wait(1_000), release(0)] },
      { process: 1, steps: [wait(800), acquire(1, "permit"), release(1)] },
      { process: 2, steps: [wait(900), acquire(2, "permit"), release(2)] },
    ],
    end,
    mistakes: [
      {
        what: "a bound that is left out where callers wait in line",
        plant: takingTurns((write) => ({
          ...write,
          insist: write.insist.filter((condition) => !JSON.stringify(condition).includes('"permits"')),
        })),
        violation: /permits are held/,
      },
      {
        what: "a ticket that leaves with its caller's turn, and is still counted",
        plant: takingTurns(({ set: { waiting: _, ...set }, ...write }) => ({ ...write, set })),
        violation: /the count of tickets has drifted/,
      },
    ],
  }),
];
