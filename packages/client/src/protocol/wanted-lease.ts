import { LeaseUnavailableError } from "../errors/errors.ts";
import type { LeaseRecord } from "../record.ts";
import { leaseItemKey } from "../schema.ts";
import type { AcquireAttempt, AcquireTerms, Granted, Refused } from "./acquire-attempt.ts";
import type { ProtocolContext } from "./context.ts";
import type { Prospect } from "./lease-form.ts";
import type { Blocked, WaitTerms, Wanted } from "./retry-loop.ts";

/** What an item promised, when it was read. */
export interface BlockedLease extends Blocked, Prospect {}

/** One lease that a caller waits for: tried by its attempt, and looked at by reads. */
export class WantedLease implements Wanted<Granted, Refused, BlockedLease> {
  /** The attempt's own. */
  readonly try: AcquireAttempt["try"];
  readonly #context: ProtocolContext;
  readonly #attempt: AcquireAttempt;
  readonly #call: AcquireTerms & WaitTerms;
  readonly #onContended: (record: LeaseRecord) => void;

  constructor(
    context: ProtocolContext,
    attempt: AcquireAttempt,
    call: AcquireTerms & WaitTerms,
    onContended: (record: LeaseRecord) => void,
  ) {
    this.#context = context;
    this.try = attempt.try.bind(attempt);
    this.#attempt = attempt;
    this.#call = call;
    this.#onContended = onContended;
  }

  blockedBy({ prospect }: Refused): BlockedLease {
    if (prospect.blocker !== undefined) this.#onContended(prospect.blocker);
    return this.#asOfNow(prospect);
  }

  async look(_: BlockedLease, withinMs: number): Promise<BlockedLease> {
    const { gate, table } = this.#context;
    const { signal, key, sortKey } = this.#call;
    const request = { key: leaseItemKey(key, sortKey), consistent: false };
    const item = await gate.pass({ signal, withinMs }, (leftMs) =>
      table.get(request, { withinMs: leftMs, signal }),
    );
    const prospect = this.#attempt.judge(item);
    // An own write that landed late is recognised by the next try, too.
    const isOwn = prospect.blocker?.token === this.#attempt.token;
    return this.#asOfNow(isOwn ? { ...prospect, claimableInMs: 0 } : prospect);
  }

  unavailable({ blocker, claimableAt }: BlockedLease): LeaseUnavailableError {
    const { key, owner, reentrant, waitMs } = this.#call;
    const retryAfterMs = Math.max(0, Math.ceil(claimableAt - this.#context.clock.monotonic()));
    const isOwn = blocker?.owner === owner && !blocker.closed && !reentrant;
    return new LeaseUnavailableError(key, blocker, retryAfterMs, { waitedMs: waitMs, isOwn });
  }

  #asOfNow(prospect: Prospect): BlockedLease {
    return { ...prospect, claimableAt: this.#context.clock.monotonic() + prospect.claimableInMs };
  }
}
