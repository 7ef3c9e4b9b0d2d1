/** What callers ask of a semaphore, and how it is checked: nothing is sent for what could not work. */

import type { ClientInternals } from "../client-internals.ts";
import { slotlessOptionNames } from "../options/check-options.ts";
import { check, checkKnown, isWhole } from "../options/check-values.ts";
import type { HoldOptions, WaitOptions } from "../options/options.ts";
import type { WaitOrder } from "../protocol/wait-order.ts";
import { seatLimits } from "../seats/schema.ts";
import { checkSeatOptions, type SeatCall } from "../seats/seat-item.ts";

/** The most permits that a semaphore can have. */
export const mostPermits: number = seatLimits.mostSeats;

/** Options of a {@link Semaphore}. */
export interface SemaphoreOptions {
  /**
   * How many permits may be held at once. From 0 to 1000; 0 is a pause: nobody gets in, and the holders finish. Callers
   * may have different numbers: see {@link Semaphore}.
   */
  readonly permits: number;
  /**
   * In which order callers that wait are let in: `fair()` of `@leasehold/client/fair`, or none. Callers whose objects
   * have no order are let in past those that wait in one. @default - none
   */
  readonly order?: WaitOrder;
}

/** Options of one acquisition that does not wait: a lease's, without `slot`. */
export interface TryPermitOptions extends Omit<HoldOptions, "slot"> {
  /**
   * How many permits the lease takes, all of them or none. From 1 to the semaphore's number. A `reentrant` owner
   * takes 1. @default 1
   */
  readonly permits?: number;
}

/** Options of one acquisition: a lease's, without `slot`. */
export interface PermitOptions extends TryPermitOptions, Pick<WaitOptions, "waitMs" | "retry"> {}

/** Options of {@link Semaphore.drain}. */
export type DrainOptions = Pick<WaitOptions, "waitMs" | "retry" | "signal">;

/** Validates a semaphore's options. */
export function checkSemaphoreOptions(options: SemaphoreOptions): SemaphoreOptions {
  const given = checkKnown(options, ["permits", "order"], "options");
  const { permits } = given;
  const isInRange = isWhole(permits) && permits <= mostPermits;
  check(isInRange, "permits", permits, `a whole number from 1 to ${mostPermits}, or 0 for a pause`);
  return given;
}

/** Validates the options of one acquisition, the payload included. */
export function checkPermitOptions(
  options: PermitOptions,
  mayWait: boolean,
  semaphorePermits: number,
  internals: ClientInternals,
): SeatCall {
  const call = checkSeatOptions(options, permitOptionNames, mayWait, internals);
  const { permits, reentrant } = call;
  // While it is paused, any number is refused in the same way.
  const most = reentrant ? 1 : semaphorePermits || mostPermits;
  const allowed = `a whole number from 1 to ${most}${reentrant ? ", beside reentrant" : ""}`;
  check(isWhole(permits) && permits >= 1 && permits <= most, "permits", permits, allowed);
  return call;
}

const permitOptionNames: readonly (keyof TryPermitOptions)[] = [...slotlessOptionNames, "permits"];
