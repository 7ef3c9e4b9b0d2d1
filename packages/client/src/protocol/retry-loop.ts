import type { LeaseUnavailableError } from "../errors/errors.ts";
import { leaseItemKey } from "../schema.ts";
import type { AcquireAttempt, AcquireTerms, Granted, Refused } from "./acquire-attempt.ts";
import type { ProtocolContext } from "./context.ts";
import { type HoldWatch, holdWatches } from "./hold-estimate.ts";
import { type LeaseForm, type Prospect, refusalOf } from "./lease-form.ts";
import { type Blocked, WaitLoop, type WaitTerms } from "./wait-loop.ts";
import type { WaitOrder } from "./wait-order.ts";

/** What an item promised when it was read. */
interface BlockedLease extends Blocked, Prospect {}

/** What is tried: to acquire, or to see whether there would be room. */
interface Tried<Won> extends Pick<AcquireAttempt, "token" | "judge"> {
  try(bounds: Parameters<AcquireAttempt["try"]>[0], known?: Prospect): Promise<Won | Refused>;
}

type Call = WaitTerms & Pick<AcquireTerms, "key" | "sortKey" | "owner" | "reentrant">;

/** One caller's unordered wait for one lease: every waiting caller tries for itself. */
export class RetryLoop<Won extends { readonly granted: true } = Granted> extends WaitLoop<
  Won,
  Refused,
  BlockedLease,
  Tried<Won>
> {
  readonly form: LeaseForm;
  readonly #call: Call;

  constructor(context: ProtocolContext, form: LeaseForm, call: Call) {
    super(context, call);
    this.form = form;
    this.#call = call;
  }

  protected override get holds(): HoldWatch {
    return holdWatches.of(this.context, this.form.key, this.form.sortKey);
  }

  protected blockedBy({ prospect }: Refused): BlockedLease {
    return this.#asOfNow(prospect);
  }

  protected async look(attempt: Tried<Won>, _: BlockedLease, withinMs: number): Promise<BlockedLease> {
    const { gate, table } = this.context;
    const { signal, key, sortKey } = this.#call;
    const request = { key: leaseItemKey(key, sortKey), consistent: false };
    const item = await gate.pass({ signal, withinMs }, (leftMs) =>
      table.get(request, { withinMs: leftMs, signal }),
    );
    const prospect = attempt.judge(item);
    // An own write that landed late is recognised by the next try, which takes the place of no lease.
    const isOwn = prospect.blocker?.token === attempt.token;
    return this.#asOfNow(isOwn ? { ...prospect, claimableInMs: 0, takeovers: [] } : prospect);
  }

  protected unavailable({ blocker, claimableAt }: BlockedLease): LeaseUnavailableError {
    const retryAfterMs = Math.max(0, Math.ceil(claimableAt - this.context.clock.monotonic()));
    return refusalOf(this.form, this.#call, blocker, retryAfterMs);
  }

  #asOfNow(prospect: Prospect): BlockedLease {
    const { blocker, claimableInMs } = prospect;
    if (blocker !== undefined) this.holds.see(blocker);
    const claimableAt = this.context.clock.monotonic() + claimableInMs;
    return { ...prospect, blockers: blocker === undefined ? [] : [blocker], claimableAt };
  }
}

/** No order: the first caller that tries after the lease was let go has it. */
export const unordered: WaitOrder = { begin: (context, form, call) => new RetryLoop(context, form, call) };
