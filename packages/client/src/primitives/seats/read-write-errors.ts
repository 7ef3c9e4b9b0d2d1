import { brandClass } from "../../base/brand.ts";
import { LeaseError, quoted } from "../../base/errors.ts";

/**
 * An owner that holds a read lock has asked for the write lock, and would wait for itself. Nothing was sent.
 *
 * Release the read lock first. When the write lock is held, read again.
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
