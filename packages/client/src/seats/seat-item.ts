/**
 * One item of seats, as the primitive that it belongs to uses it: checks what a caller asks for, acquires, looks, and
 * waits until it is empty.
 */

import type { LeaseClient } from "../client.ts";
import { type ClientInternals, internalsOf } from "../client-internals.ts";
import { untilAborted } from "../errors/aborted.ts";
import { LeaseServiceError, LeaseUnavailableError } from "../errors/errors.ts";
import { passing } from "../errors/operational.ts";
import { Lease } from "../lease.ts";
import { type AcquisitionTerms, checkAcquireOptions } from "../options/check-options.ts";
import { checkData, checkDuration, checkKey, checkKnown } from "../options/check-values.ts";
import type { WaitOptions } from "../options/options.ts";
import { refusalOf } from "../protocol/lease-form.ts";
import { WaitBudget } from "../protocol/wait-loop.ts";
import type { WaitOrder } from "../protocol/wait-order.ts";
import { leaseItemKey } from "../schema.ts";
import { callBudgetMs } from "../store/timed-store.ts";
import type { GetRequest } from "../store.ts";
import { sleep } from "../time/clock.ts";
import { RetryPauses } from "../time/retry.ts";
import { type SeatKind, seatLimits } from "./schema.ts";
import { type SeatRecord, seatsIn } from "./seat.ts";
import { SeatForm, type SeatTerms } from "./seat-form.ts";

/** A caller that asks for no seat of its own. */
const nobody = { owner: "", resumes: false, reentrant: false } as const;

/** Which seat is asked for, and what it has to fit beside. */
export type SeatRule = Pick<SeatTerms, "kind" | "permits" | "bounds" | "beside">;

/** What one call asks for, validated; the payload as JSON text. How many permits is its primitive's to check. */
export interface SeatCall extends Omit<AcquisitionTerms, "data"> {
  readonly data: string | undefined;
  readonly permits: number;
}

/** Validates the options of one call, the payload included; `names` are those that its primitive has. */
export function checkSeatOptions(
  options: WaitOptions & { readonly permits?: number },
  names: readonly string[],
  mayWait: boolean,
  { owner, times }: ClientInternals,
): SeatCall {
  const given = checkKnown(options, mayWait ? [...names, "waitMs", "retry"] : names, "options");
  const { permits = 1, ...others } = given;
  const terms = checkAcquireOptions(others, mayWait, owner, times);
  // Each lease sets the item's ttl by its own end, which has to outlast the others: a quarter is for writes under way.
  const longestMs = Math.floor(0.75 * times.retentionMs);
  checkDuration("leaseDurationMs", terms.leaseDurationMs, times.shortestLeaseMs, longestMs);
  return { ...terms, permits, data: checkData(terms.data, "data", seatLimits.dataBytes) };
}

export class SeatItem {
  readonly client: ClientInternals;
  readonly key: string;
  readonly #sortKey: string;

  /** Throws InvalidOptionsError. */
  constructor(client: LeaseClient, key: string, sortKey: string) {
    this.client = internalsOf(client);
    this.key = checkKey(key);
    this.#sortKey = sortKey;
  }

  /** Acquires a seat, or shares the same owner's. Rejects as every acquisition does; nothing stays held then. */
  async acquire(call: SeatCall, rule: SeatRule, order: WaitOrder | undefined): Promise<Lease> {
    const { acquirer, context, format } = this.client;
    const { key } = this;
    const form = this.form({ ...rule, reentrantOwner: call.reentrant ? call.owner : undefined });
    const wanted = { ...call, key, sortKey: this.#sortKey, resumes: call.reentrant, slot: undefined, order };
    return await untilAborted(key, call.signal, async () => {
      return new Lease(context, await acquirer.acquire(wanted, form), format, undefined);
    });
  }

  form(terms: SeatRule & Pick<SeatTerms, "reentrantOwner">): SeatForm {
    return new SeatForm({ ...terms, key: this.key, sortKey: this.#sortKey });
  }

  /** Reads all seats, and which of them are not over: 1 consistent read. Rejects with LeaseItemError. */
  async look(): Promise<{ readonly seats: readonly SeatRecord[]; readonly standing: readonly SeatRecord[] }> {
    const { table, detector } = this.client.context;
    const seats = seatsIn(await table.get(this.#request));
    const expiries = detector.judgeAll(seats);
    return { seats, standing: seats.filter((seat) => !expiries.get(seat)?.expired) };
  }

  /** Waits until a look shows that nobody is in the way of a rule: 1 consistent read for each look. */
  async untilFree(rule: SeatRule, options: WaitOptions): Promise<void> {
    const { context } = this.client;
    const { clock, detector, lifecycle, table } = context;
    const { waitMs, retry, signal } = checkSeatOptions(options, ["signal"], true, this.client);
    const form = this.form(rule);
    const budget = new WaitBudget(clock, waitMs);
    const pauses = new RetryPauses(context, retry);
    await untilAborted(this.key, signal, () =>
      lifecycle.run(signal, async (either) => {
        for (;;) {
          const bounds = { withinMs: Math.min(budget.callMs, callBudgetMs), signal: either };
          const seen = await table
            .get(this.#request, bounds)
            .then((item) => form.judge(item, nobody, detector))
            .catch(unlessAborted(either));
          const claimableInMs =
            seen instanceof LeaseServiceError ? Number.POSITIVE_INFINITY : seen.claimableInMs;
          if (claimableInMs <= 0) return;
          if (budget.leftMs <= 0)
            throw seen instanceof LeaseServiceError
              ? seen
              : refusalOf(form, { ...nobody, waitMs }, seen.blocker, Math.ceil(claimableInMs));
          const delayMs = pauses.nextMs(clock.monotonic() + claimableInMs);
          await sleep(clock, Math.min(delayMs, budget.leftMs), either);
        }
      }),
    );
  }

  /** Which kinds of seats an owner holds in this client. */
  heldHere(owner: string): ReadonlySet<SeatKind> {
    const kinds = this.client.context.lifecycle.held.flatMap(({ terms: { record }, deadline }) => {
      const isHere = record.key === this.key && record.sortKey === this.#sortKey && record.owner === owner;
      // A timer that ends it may be late in a process that was frozen.
      return isHere && record.seat !== undefined && deadline.remainingMs() > 0 ? [record.seat.kind] : [];
    });
    return new Set(kinds);
  }

  get #request(): GetRequest {
    return { key: leaseItemKey(this.key, this.#sortKey), consistent: true };
  }
}

/** Gives undefined where the lease is not to be had. */
export async function orUndefined(acquired: Promise<Lease>): Promise<Lease | undefined> {
  try {
    return await acquired;
  } catch (error) {
    if (error instanceof LeaseUnavailableError) return undefined;
    throw error;
  }
}

/** Gives an error of the service's that may pass; throws every other one, and the signal's reason first. */
function unlessAborted(signal: AbortSignal): (error: unknown) => LeaseServiceError {
  return (error) => {
    signal.throwIfAborted();
    return passing(error);
  };
}
