import { brandClass } from "../errors/brand.ts";
import { LeaseError } from "../errors/errors.ts";

/** As many wait for the lock as may. Nothing is held, and nobody waits for this caller. */
export class QueueFullError extends LeaseError {
  static {
    brandClass(QueueFullError, "QueueFullError");
  }
  override readonly name: string = "QueueFullError";
  readonly key: string;
  /** How many wait. */
  readonly waiting: number;
  /** How many may. */
  readonly maxWaiters: number;

  constructor(key: string, waiting: number, maxWaiters: number) {
    super(
      "LEASE_QUEUE_FULL",
      `${waiting} wait for the lock ${JSON.stringify(key)} already, and ${maxWaiters} may: ` +
        "try again later, or raise maxWaiters",
    );
    this.key = key;
    this.waiting = waiting;
    this.maxWaiters = maxWaiters;
  }
}
