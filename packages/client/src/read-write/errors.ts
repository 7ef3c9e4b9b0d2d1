import { brandClass } from "../errors/brand.ts";
import { LeaseError } from "../errors/errors.ts";

/**
 * An owner that holds a read lock has asked for the write lock, and would wait for itself. Nothing was sent.
 *
 * Release the read lock first. When the write lock is held, read again.
 */
export class LeaseUpgradeError extends LeaseError {
  static {
    brandClass(LeaseUpgradeError, "LeaseUpgradeError");
  }
  override readonly name: string = "LeaseUpgradeError";
  readonly key: string;
  readonly owner: string;

  constructor(key: string, owner: string) {
    super(
      "LEASE_UPGRADE",
      `${JSON.stringify(owner)} holds a read lock of ${JSON.stringify(key)}, and its write lock would wait for it: ` +
        "release the read lock first",
    );
    this.key = key;
    this.owner = owner;
  }
}
