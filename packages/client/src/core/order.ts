import type { WaitOrder } from "../options/options.ts";
import type { LeaseRecord } from "../record.ts";
import type { AcquireCall } from "./acquire.ts";
import type { Attempt, Granted } from "./attempt.ts";
import type { Core } from "./core.ts";
import type { LeaseForm } from "./form.ts";

/** The order in which waiting callers get a lease. */
export interface Order extends WaitOrder {
  /** Begins one call's wait for a lease. Sends nothing. */
  begin(core: Core, form: LeaseForm, call: AcquireCall): OrderedWait;
}

/** One call's wait. */
export interface OrderedWait {
  /**
   * The form that takes, renews and releases the lease: the given form, with the order's additions. An order may use
   * the given form as a prototype, so such a form must not have private members.
   */
  readonly form: LeaseForm;
  /**
   * Returns the grant. Rejects with LeaseUnavailableError, with the service's error if that is what the last try ended
   * with, or with the signal's reason; the caller abandons the attempt then.
   */
  grant(attempt: Attempt, onContended: (record: LeaseRecord) => void): Promise<Granted>;
}
