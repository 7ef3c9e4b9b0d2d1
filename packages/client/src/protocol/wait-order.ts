import type { LeaseRecord } from "../record.ts";
import type { AcquireAttempt, Granted, Refused } from "./acquire-attempt.ts";
import type { AcquireCall } from "./acquirer.ts";
import type { ProtocolContext } from "./context.ts";
import type { LeaseForm } from "./lease-form.ts";
import { RetryLoop } from "./retry-loop.ts";
import { type BlockedLease, WantedLease } from "./wanted-lease.ts";

/** In which order callers that wait for a lease get it. */
export interface WaitOrder {
  /** Begins one call's wait for a lease. Sends nothing. */
  begin(context: ProtocolContext, form: LeaseForm, call: AcquireCall): OrderedWait;
}

/** One call's wait. */
export interface OrderedWait {
  /** The form by which the lease is taken, renewed and released: the given one, with what the order adds to it. */
  readonly form: LeaseForm;
  /**
   * Gives the grant. Rejects with LeaseUnavailableError, with the service's error if that is what the last try ended
   * with, or with the signal's reason; the caller abandons the attempt then.
   */
  grant(attempt: AcquireAttempt, onContended: (record: LeaseRecord) => void): Promise<Granted>;
}

/** No order: the first caller that tries after the lease was let go has it. */
export const unordered: WaitOrder = {
  begin: (context, form, call) => ({
    form,
    grant: (attempt, onContended) => {
      const wanted = new WantedLease(context, attempt, call, onContended);
      return new RetryLoop<Granted, Refused, BlockedLease>(context, call, wanted).grant();
    },
  }),
};
