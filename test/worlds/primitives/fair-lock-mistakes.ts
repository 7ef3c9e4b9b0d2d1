/** What is planted into the line of a lock, beside the mistakes of its simulation. */
import { Queue } from "../../../packages/client/src/primitives/fair/queue.ts";
import { QueueCaller } from "../../../packages/client/src/primitives/fair/queue-caller.ts";
import { numberPrefix, type QueueTicket } from "../../../packages/client/src/primitives/fair/queue-ticket.ts";
import type { Write } from "../../../packages/client/src/statements/statement.ts";
import { leaving } from "../../support/recomposed.ts";
import { isGrant, type Mistakes, type Plant, replacing, without } from "../simulation.ts";

/** A caller in line, as far as mistakes see into it. */
type Insight = { readonly own: QueueTicket | undefined };

/** Plants a mistake in what an acquisition in its turn writes. */
export const takingTurns = (change: (write: Write, caller: Insight) => Write): Plant =>
  replacing(QueueCaller.prototype, "acquire", (acquire, given, caller) =>
    change(acquire(...given), caller as unknown as Insight),
  );

/** Plants a mistake: when tickets may be passed. */
const passableIn = (mistaken: (ms: number) => number): Plant =>
  replacing(Queue.prototype, "passableIn", (passable, given) => passable(...given).map(mistaken));

export const uncountedLeave: Mistakes = {
  "a ticket that leaves with its caller's turn, and is still counted": [
    takingTurns((write) => leaving(write, "#waiting")),
    /the count of tickets has drifted/,
  ],
};

/** Of tickets that leave, and of turns that are taken. */
export const turnMistakes: Mistakes = {
  "a turn of a ticket that has another number by now": [
    without({ of: new RegExp(`^${numberPrefix}`), test: "=", by: isGrant }),
    /drifted|overtaken|stood/,
  ],
  ...uncountedLeave,
  "a ticket that stays when its caller has got the lock": [
    takingTurns((write, { own }) =>
      own === undefined ? write : leaving(write, "#waiting", "#Place", "#Ticket"),
    ),
    /has the lock, and still its ticket/,
  ],
};

/** Of three and more that stand in line. */
export const threeInLine: Mistakes = {
  "a ticket that is passed at once": [passableIn(() => 0), /stood|overtaken/],
};

/** Of waiters that die. */
export const deathMistakes: Mistakes = {
  "a dead waiter that nobody ever passes": [
    passableIn(() => Number.POSITIVE_INFINITY),
    /LeaseUnavailableError|stuck/,
  ],
  "an unresponsive waiter that is passed ten seconds too early": [
    passableIn((ms) => Math.max(0, ms - 10_000)),
    /stood/,
  ],
};

/** Of a line that has as much room as it may have. */
export const roomMistakes: Mistakes = {
  "a joining that does not ask whether there is room": [
    without({ of: "waiting", test: "<" }),
    /wait at once/,
  ],
};
