/**
 * What a lock's item holds of those who wait for it fairly. The queue is kept in the lease's own item: so a newcomer,
 * the head of the queue and the holder meet at one item, and every rule about them is a condition of one write.
 */

/** Attributes that a queue adds to those of the lease. */
export const fairAttributeNames = {
  /** N: the number that was given to a waiter last; grows by one with every one that joins. */
  lastTicket: "lastTicket",
  /** N: how many places the item has; each write that adds or removes some counts them. */
  waiting: "waiting",
  /** N: for how long a holder typically holds the lock, in milliseconds; the recent ones count most. */
  typicalHoldMs: "typicalHoldMs",
} as const;

/** N: the number of a waiter. The rest of the name is the waiter's id. */
export const ticketPrefix = "q:";

/** S: since when a waiter waits, until when it is to be believed, and who it is. The rest of the name is its id. */
export const placePrefix = "w:";

/** Bounds of a queue. */
export const fairLimits: {
  readonly mostWaiters: number;
  readonly ownerBytes: number;
  readonly dataBytes: number;
  readonly removalsPerWrite: number;
} = {
  /** A place takes up to 140 bytes of the item; this many leave most of an item's 400 KB to the holder's payload. */
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

/** Gives the id of the waiter that acquires under a token. Tokens have to differ in their last 16 characters. */
export function waiterId(token: string): string {
  return token.replaceAll("-", "").slice(-idLength);
}
