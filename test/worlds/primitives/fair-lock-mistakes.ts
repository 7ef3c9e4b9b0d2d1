/** What is planted into the line of a lock, beside the mistakes of its simulation. */
import { Queue } from "../../../packages/client/src/primitives/fair/queue.ts";
import { QueueCaller } from "../../../packages/client/src/primitives/fair/queue-caller.ts";
import { numberPrefix, type QueueTicket } from "../../../packages/client/src/primitives/fair/queue-ticket.ts";
import type { Write } from "../../../packages/client/src/statements/statement.ts";
import { leaving } from "../../support/recomposed.ts";
import { isGrant, type Mistake, type Planted, replacing, withoutTests } from "../simulation.ts";

/** A caller in line, as far as mistakes see into it. */
type Insight = { readonly own: QueueTicket | undefined };

/** Plants a mistake in what an acquisition in its turn writes. */
export function takingTurns(change: (write: Write, caller: Insight) => Write): Planted["plant"] {
  return replacing(
    QueueCaller.prototype,
    "acquire",
    (original) =>
      function (this: QueueCaller, ...parameters) {
        return change(original.apply(this, parameters), this as unknown as Insight);
      },
  );
}

/** Plants a mistake: when tickets may be passed. */
function passableIn(mistaken: (ms: number) => number): Planted["plant"] {
  return replacing(
    Queue.prototype,
    "passableIn",
    (original) =>
      function (this: Queue, tickets) {
        return original.call(this, tickets).map(mistaken);
      },
  );
}

export const uncountedLeave: Mistake = {
  what: "a ticket that leaves with its caller's turn, and is still counted",
  plant: takingTurns((write) => leaving(write, "#waiting")),
  violation: /the count of tickets has drifted/,
};

/** Of tickets that leave, and of turns that are taken. */
export const turnMistakes: readonly Mistake[] = [
  {
    what: "a turn of a ticket that has another number by now",
    tamper: withoutTests(
      ({ attribute, test, write }) => attribute.startsWith(numberPrefix) && test === "=" && isGrant(write),
    ),
    violation: /drifted|overtaken|stood/,
  },
  uncountedLeave,
  {
    what: "a ticket that stays when its caller has got the lock",
    plant: takingTurns((write, { own }) =>
      own === undefined ? write : leaving(write, "#waiting", "#Place", "#Ticket"),
    ),
    violation: /has the lock, and still its ticket/,
  },
];

/** Of three and more that stand in line. */
export const lineMistakes: readonly Mistake[] = [
  {
    what: "a ticket that is passed at once",
    plant: passableIn(() => 0),
    violation: /stood|overtaken/,
  },
];

/** Of waiters that die. */
export const deathMistakes: readonly Mistake[] = [
  {
    what: "a dead waiter that nobody ever passes",
    plant: passableIn(() => Number.POSITIVE_INFINITY),
    violation: /LeaseUnavailableError|stuck/,
  },
  {
    what: "an unresponsive waiter that is passed ten seconds too early",
    plant: passableIn((ms) => Math.max(0, ms - 10_000)),
    violation: /stood/,
  },
];

/** Of a line that has as much room as it may have. */
export const roomMistakes: readonly Mistake[] = [
  {
    what: "a joining that does not ask whether there is room",
    tamper: withoutTests(({ attribute, test }) => attribute === "waiting" && test === "<"),
    violation: /wait at once/,
  },
];
