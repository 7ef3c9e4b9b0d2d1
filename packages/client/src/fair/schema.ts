/**
 * What an item holds of the callers that wait in line for its lease. The line lies in the lease's own item: so a newcomer,
 * the head of the line and the holder meet at one item, and every rule about them is a condition of one write.
 */

/** Attributes that a line adds to those of the lease. */
export const queueAttributeNames = {
  /** N: the number that was given to a waiter last; grows by one with every waiter that joins. */
  lastTicket: "lastTicket",
  /** N: how many tickets the item has; each write that adds or removes some counts them. */
  waiting: "waiting",
  /** S: how long holders keep the lease, which use ended last, and when. */
  holds: "holds",
} as const;

/** N: the number of a ticket. The rest of the name is the ticket's id. */
export const numberPrefix = "q:";

/** S: what a ticket says of its waiter. The rest of the name is its id. */
export const ticketPrefix = "w:";

/** Bounds of a line. */
export const queueLimits: {
  readonly mostWaiters: number;
  readonly ownerBytes: number;
  readonly dataBytes: number;
  readonly removalsPerWrite: number;
} = {
  /** A ticket takes up to 140 bytes of the item; this many leave most of an item's 400 KB to the holder's payload. */
  mostWaiters: 500,
  /** A waiter's owner is cut to this, for every write of the item is billed for it. */
  ownerBytes: 64,
  /** What is left to a fair holder's payload. Beside a larger one of another holder, DynamoDB refuses joinings. */
  dataBytes: 256 * 1024,
  /** DynamoDB's limit for an expression is 4 KB; each removal takes some 30 bytes of the longest one. */
  removalsPerWrite: 40,
};

/** How many characters of a token tell waiters apart: 62 random bits of a UUID. */
const idLength = 16;

/** Gives the id of the ticket of a caller that acquires under a token. Tokens have to differ in their last 16 characters. */
export function ticketIdOf(token: string): string {
  return token.replaceAll("-", "").slice(-idLength);
}
