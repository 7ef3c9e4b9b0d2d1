import type { LeaseEvent } from "@leasehold/client";
import { leaseSortKey } from "@leasehold/client/schema";
import type { ShopState } from "../../../../functions/close-unpaid-orders/shop-table.ts";
import type { Grant } from "../../lease-history.ts";
import type { LoggedLeaseEvent } from "../../lease-log.ts";
import type { Answer } from "./answers.ts";
import type { Step } from "./plan.ts";

/** One trigger that was delivered to one instance. */
export interface Delivery {
  readonly tick: number;
  readonly instance: string;
  /** Whether it was the second copy of the same trigger. */
  readonly repeated: boolean;
  /** Undefined while it is awaited. */
  answer: Answer | undefined;
}

/** A lease event of one instance, in one tick. */
export interface RecordedEvent extends LoggedLeaseEvent {
  readonly tick: number;
}

/** Whether an event is about the job's lock, and not about another lease under its key. */
export function isOfTheLock(event: LeaseEvent): boolean {
  return !("sortKey" in event) || event.sortKey === leaseSortKey;
}

/** A run that was killed or frozen. */
export interface Casualty {
  readonly kind: "killed" | "frozen";
  readonly tick: number;
  readonly instance: string;
  readonly fencingToken: number;
  /** How many orders it had closed when its write was stopped at the gate. */
  readonly closedAtGate: number;
  /** How many the shop's table showed when its process had been stopped: known only then. */
  closed: number;
  /** The order that it was about to close. */
  readonly orderId: string;
}

/** What happened, as the demonstration saw it. */
export interface Recording {
  readonly deliveries: readonly Delivery[];
  readonly events: readonly RecordedEvent[];
  readonly casualties: readonly Casualty[];
}

/** All that the audit looks at. */
export interface Evidence extends Recording {
  readonly plan: readonly Step[];
  /** The lock's grants, as the table made them; owners are the names of instances. */
  readonly grants: readonly Grant[];
  /** The scheduled time of the last tick, in epoch milliseconds: what is due before has to be closed at the end. */
  readonly lastScheduledAt: number;
  /** The shop before the first tick. */
  readonly before: ShopState;
  /** The shop after the last one, read from its table. */
  readonly after: ShopState;
}
