import { brandClass } from "../errors/brand.ts";
import { LeaseError } from "../errors/errors.ts";

/** The line is full. Nothing is held, and the caller has no ticket. */
export class QueueFullError extends LeaseError {
  static {
    brandClass(QueueFullError, "QueueFullError");
  }
  override readonly name: string = "QueueFullError";
  readonly key: string;
  /** How many wait. */
  readonly waiting: number;
  /** How many may wait. */
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
