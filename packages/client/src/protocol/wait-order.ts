import type { LeaseRecord } from "../record.ts";
import type { AcquireAttempt, Granted } from "./acquire-attempt.ts";
import type { AcquireCall } from "./acquirer.ts";
import type { ProtocolContext } from "./context.ts";
import type { LeaseForm } from "./lease-form.ts";

/** In which order callers that wait for a lease get it. */
export interface WaitOrder {
  /** @internal Begins one call's wait for a lease. Sends nothing. */
  begin(context: ProtocolContext, form: LeaseForm, call: AcquireCall): OrderedWait;
}

/** One call's wait. */
export interface OrderedWait {
  /**
   * The form by which the lease is taken, renewed and released: the given one, with what the order adds to it. An order may
   * take the given form for a prototype, so a form that callers wait for in an order has no private members.
   */
  readonly form: LeaseForm;
  /**
   * Gives the grant. Rejects with LeaseUnavailableError, with the service's error if that is what the last try ended
   * with, or with the signal's reason; the caller abandons the attempt then.
   */
  grant(attempt: AcquireAttempt, onContended: (record: LeaseRecord) => void): Promise<Granted>;
}
