import { brandClass } from "../../base/brand.ts";
import { LeaseError, quoted } from "../../base/errors.ts";

/** The line is full. Nothing is held, and the caller has no ticket. */
export class QueueFullError extends LeaseError {
  static {
    brandClass(QueueFullError, "QueueFullError");
  }
  declare readonly key: string;
  /** How many callers wait. */
  declare readonly waiting: number;
  /** How many callers may wait. */
  declare readonly maxWaiters: number;

  constructor(key: string, waiting: number, maxWaiters: number) {
    super(
      "LEASE_QUEUE_FULL",
      `${waiting} wait for the lock ${quoted(key)} already, and ${maxWaiters} may: try again later, or raise maxWaiters`,
      { key, waiting, maxWaiters },
    );
  }
}
