import { brandClass } from "../errors/brand.ts";
import { LeaseError, quoted } from "../errors/errors.ts";

/**
 * An owner that holds a read lock has asked for the write lock, which would wait for that very reader. Nothing was
 * sent.
 *
 * Release the read lock first, and look again at what was read once the write lock is held.
 */
export class LeaseUpgradeError extends LeaseError {
  static {
    brandClass(LeaseUpgradeError, "LeaseUpgradeError");
  }
  declare readonly key: string;
  declare readonly owner: string;

  constructor(key: string, owner: string) {
    super(
      "LEASE_UPGRADE",
      `${quoted(owner)} holds a read lock of ${quoted(key)}, and its write lock would wait for it: ` +
        "release the read lock first",
      { key, owner },
    );
  }
}
