import type { LeaseRecord } from "../base/lease-record.ts";
import type { WaitOrder } from "../base/options.ts";
import type { RetryStrategy } from "../base/retry.ts";
import type { Attempt, Granted, LeaseTerms } from "./attempt.ts";
import type { Core } from "./core.ts";
import type { LeaseForm } from "./form.ts";

/** How long to wait, and in what rhythm. */
export interface WaitTerms {
  readonly waitMs: number;
  readonly retry: RetryStrategy;
  readonly signal: AbortSignal | undefined;
}

/** One call to acquire, validated. */
export interface AcquireCall extends LeaseTerms, WaitTerms {
  readonly heartbeatMs: number | undefined;
  readonly lockAtLeastForMs: number;
  /** The duration that the caller has named: that of a shared lease is at least as long from then on. @default - none */
  readonly askedDurationMs?: number | undefined;
  /** The order in which waiting callers get the lease. @default - none */
  readonly order?: WaitOrder | undefined;
}

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
