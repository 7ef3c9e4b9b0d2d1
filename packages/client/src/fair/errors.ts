import { brandClass } from "../errors/brand.ts";
import { LeaseError, quoted } from "../errors/errors.ts";

/** As many wait for the lock as may. Nothing is held, and nobody waits for this caller. */
export class QueueFullError extends LeaseError {
  static {
    brandClass(QueueFullError, "QueueFullError");
  }
  declare readonly key: string;
  /** How many wait. */
  declare readonly waiting: number;
  /** How many may. */
  declare readonly maxWaiters: number;

  constructor(key: string, waiting: number, maxWaiters: number) {
    super(
      "LEASE_QUEUE_FULL",
      `${waiting} wait for the lock ${quoted(key)} already, and ${maxWaiters} may: try again later, or raise maxWaiters`,
      { key, waiting, maxWaiters },
    );
  }
}
