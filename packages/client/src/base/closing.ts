import { brandClass } from "./brand.ts";
import { isoTime, LeaseError, quoted } from "./errors.ts";

/** The client is closed: it acquires nothing any more, and waiting calls have ended. Nothing is held. */
export class ClientClosedError extends LeaseError {
  static {
    brandClass(ClientClosedError, "ClientClosedError");
  }

  constructor() {
    super("LEASE_CLIENT_CLOSED", "the client is closed");
  }
}

/** A lease, or a ticket in a queue, that a closed client may have left in the table. */
export interface Leftover {
  readonly key: string;
  /** The sort key of the item under the key. */
  readonly sortKey: string;
  /** When it ends by itself, in epoch milliseconds of this machine's clock. */
  readonly expiresAt: number;
  /** Why it could not be removed; undefined when the service has not replied yet. */
  readonly error: unknown;
}

/** The message names at most this many keys; `left` has all of them. */
const mostNamed = 5;

/** The client is closed, but the service did not confirm everything in time: some leases may stay until they expire. */
export class CloseIncompleteError extends LeaseError {
  static {
    brandClass(CloseIncompleteError, "CloseIncompleteError");
  }
  declare readonly left: readonly Leftover[];
  /** How many calls have not ended yet. The process still releases at once what they acquire later. */
  declare readonly callsUnderWay: number;

  constructor(left: readonly Leftover[], callsUnderWay: number) {
    const named = left
      .slice(0, mostNamed)
      .map(({ key, expiresAt }) => `${quoted(key)} until ${isoTime(expiresAt)}`);
    super(
      "LEASE_CLOSE_INCOMPLETE",
      `the client is closed, but the service did not confirm everything in time: ${left.length} keys may stay held ` +
        `(${named.join(", ")}), ${callsUnderWay} calls have not ended`,
      { cause: left.find(({ error }) => error !== undefined)?.error, left, callsUnderWay },
    );
  }
}
