import type { LeaseClient } from "../client.ts";
import { type ClientInternals, internalsOf } from "../client-internals.ts";
import { untilAborted } from "../errors/aborted.ts";
import { LeaseUnavailableError } from "../errors/errors.ts";
import { Lease } from "../lease.ts";
import { type AcquisitionTerms, checkAcquireOptions, checkOrder } from "../options/check-options.ts";
import { checkData, checkDuration, checkKey, checkKnown } from "../options/check-values.ts";
import type { WaitOptions } from "../options/options.ts";
import { whileOpen } from "../protocol/lifecycle.ts";
import { RetryLoop } from "../protocol/wait-loop.ts";
import type { WaitOrder } from "../protocol/wait-order.ts";
import { leaseItemKey } from "../schema.ts";
import { type Bounds, callBudgetMs } from "../store/timed-store.ts";
import type { Item } from "../store.ts";
import { type SeatKind, seatLimits } from "./schema.ts";
import { type SeatRecord, seatsIn } from "./seat.ts";
import { SeatForm, type SeatTerms } from "./seat-form.ts";

/** A caller that asks for no seat of its own. */
const nobody = { owner: "", resumes: false, reentrant: false } as const;

/** The wanted seat, and the seats that may be beside it. */
export type SeatRule = Pick<SeatTerms, "kind" | "permits" | "capacity" | "bounds" | "exemptBy">;

type SeatOptions = WaitOptions & { readonly permits?: number };

/** The options of one call, validated; the payload as JSON text. The primitive itself checks the number of permits. */
export interface SeatCall extends Omit<AcquisitionTerms, "data"> {
  readonly data: string | undefined;
  readonly permits: number;
}

/** One item of seats, for the primitive that it belongs to. */
export class SeatItem {
  readonly client: ClientInternals;
  readonly key: string;
  readonly #sortKey: string;
  readonly #order: WaitOrder | undefined;

  /** Throws InvalidOptionsError. */
  constructor(client: LeaseClient, key: string, sortKey: string, order: WaitOrder | undefined) {
    this.client = internalsOf(client);
    this.key = checkKey(key);
    this.#sortKey = sortKey;
    this.#order = order === undefined ? undefined : checkOrder("order", order);
  }

  /** Validates the options of one call, including the payload; `names` are the primitive's own options. */
  checkCall(options: SeatOptions, names: readonly string[], mayWait: boolean): SeatCall {
    const { owner, times } = this.client;
    const given = checkKnown(options, mayWait ? [...names, "waitMs", "retry"] : names, "options");
    const { permits = 1, ...others } = given;
    const terms = checkAcquireOptions(others, mayWait, owner, times);
    // Each lease sets the item's ttl by its own end, and that ttl has to outlast the other leases. A quarter is for
    // writes under way.
    const longestMs = Math.floor(0.75 * times.retentionMs);
    checkDuration("leaseDurationMs", terms.leaseDurationMs, times.shortestLeaseMs, longestMs);
    return { ...terms, permits, data: checkData(terms.data, "data", seatLimits.dataBytes) };
  }

  /** Acquires a seat, or shares the same owner's seat. Rejects as every acquisition does; then nothing stays held. */
  async acquire(call: SeatCall, rule: SeatRule, order: WaitOrder | undefined = this.#order): Promise<Lease> {
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

  /** Reads all seats, and which of them are unexpired: 1 consistent read. Rejects with LeaseItemError. */
  async look(): Promise<{ readonly seats: readonly SeatRecord[]; readonly standing: readonly SeatRecord[] }> {
    const seats = seatsIn(await this.#read());
    return { seats, standing: this.client.context.detector.standing(seats) };
  }

  /**
   * Waits until a consistent read shows that no seat is in the way of a rule. An operator's pause is not in the way.
   * Reads in between may lag.
   */
  async untilFree(rule: SeatRule, options: WaitOptions): Promise<void> {
    const { context } = this.client;
    const { detector, lifecycle } = context;
    const call = this.checkCall(options, ["signal"], true);
    const leasesIn = (item: Item | undefined) => seatsIn(item).filter(({ pause }) => pause === undefined);
    const form = Object.assign(this.form(rule), { leasesIn });
    const look = {
      token: "",
      judge: (item: Item | undefined) => form.judge(item, nobody, detector),
      try: async ({ withinMs = callBudgetMs, signal }: Bounds) => {
        const item = await this.#read({ withinMs: Math.min(withinMs, callBudgetMs), signal });
        const prospect = form.judge(item, nobody, detector);
        if (prospect.claimableInMs <= 0) return { granted: true } as const;
        return { granted: false, prospect, item } as const;
      },
    };
    await untilAborted(this.key, call.signal, () =>
      whileOpen(lifecycle, call.signal, async (signal) => {
        const wait = { ...call, ...nobody, key: this.key, sortKey: this.#sortKey, signal };
        await new RetryLoop<{ readonly granted: true }>(context, form, wait).grant(look, () => undefined);
      }),
    );
  }

  /** The kinds of seats that an owner holds under this key in this client. No two items of a key have the same kind. */
  heldHere(owner: string): ReadonlySet<SeatKind | undefined> {
    const held = this.client.context.lifecycle.held.filter(({ terms: { record }, deadline }) => {
      // In a process that was frozen, the timer that ends the lease may be late.
      return record.key === this.key && record.owner === owner && deadline.remainingMs() > 0;
    });
    return new Set(held.map(({ terms }) => terms.record.seat?.kind));
  }

  #read(bounds?: Bounds): Promise<Item | undefined> {
    const key = leaseItemKey(this.key, this.#sortKey);
    return this.client.context.table.get({ key, consistent: true }, bounds);
  }
}

/** Returns undefined in place of LeaseUnavailableError. */
export async function orUndefined(acquired: Promise<Lease>): Promise<Lease | undefined> {
  try {
    return await acquired;
  } catch (error) {
    if (error instanceof LeaseUnavailableError) return undefined;
    throw error;
  }
}
