import { brandClass } from "../../base/brand.ts";
import { LeaseUnavailableError, type RefusalDetails } from "../../base/errors.ts";

/** One lock of a group that another caller holds. */
export interface HeldKey {
  readonly key: string;
  /** The holder's owner label, or that of the last holder during a cooldown. */
  readonly holder: string;
  /** When the holder's lease ends unless it is renewed, in epoch milliseconds of the holder's clock. */
  readonly expiresAt: number;
  /** Whether the lock has no holder: it was released early, and is in its cooldown (`lockAtLeastForMs`). */
  readonly inCooldown: boolean;
}

/**
 * Other callers hold some of the locks, and the time to wait for them is over. None of the locks is held by this
 * call.
 *
 * Its code is LEASE_UNAVAILABLE. `key`, `holder` and `expiresAt` are those of the first lock in `held`.
 */
export class GroupUnavailableError extends LeaseUnavailableError {
  static {
    brandClass(GroupUnavailableError, "GroupUnavailableError");
  }
  /** All locks that were asked for. */
  readonly keys: readonly string[];
  /**
   * The locks that other callers hold, in the order of `keys`. Empty when they were released at the moment of giving
   * up.
   */
  readonly held: readonly HeldKey[];

  constructor(
    keys: readonly string[],
    held: readonly HeldKey[],
    retryAfterMs: number,
    details?: RefusalDetails,
  ) {
    const [first] = held;
    super(first?.key ?? keys[0] ?? "", first && { ...first, owner: first.holder }, retryAfterMs, details);
    this.keys = keys;
    this.held = held;
    const others = held.length - 1;
    if (others > 0) {
      this.message = `${held.length} of the ${keys.length} locks are not to be had; ${this.message}`;
    }
  }
}
