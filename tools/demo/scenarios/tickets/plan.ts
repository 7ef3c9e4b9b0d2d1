import type { Arrival, Fate } from "./evidence.ts";

/** How many may wait: the app's own default. */
export const mostWaiting = 10;
/** How often a ticket that is alive is heard of. */
export const heartbeatMs = 400;
/** How long a service takes. */
export const serviceMs = 350;

/** The tickets for loans, in this order: one more than the queue has room for, and another. */
const loans: Readonly<Record<string, Fate>> = {
  L1: "served",
  L2: "served",
  L3: "served",
  L4: "diesWaiting",
  L5: "served",
  L6: "served",
  L7: "served",
  L8: "served",
  L9: "served",
  L10: "served",
  L11: "served",
  L12: "refused",
  L13: "refused",
};

/** The tickets for cards. */
const cards: Readonly<Record<string, Fate>> = {
  C1: "diesServing",
  C2: "served",
  C3: "leaves",
  C4: "served",
};

/** The ticket that enters a second time. */
export const enteringAgain = "L3";
/** The ticket that enters when all is over, and is left behind. */
export const leftBehind = "C5";

/** Every ticket, in the order of its arrival at its department. */
export const arrivals: readonly Arrival[] = Object.entries({ loans, cards }).flatMap(
  ([department, tickets]) => Object.entries(tickets).map(([ticket, fate]) => ({ department, ticket, fate })),
);
