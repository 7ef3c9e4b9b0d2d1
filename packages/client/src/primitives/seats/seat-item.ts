import { untilAborted } from "../../base/abort.ts";
import {
  type AcquisitionTerms,
  checkAcquireOptions,
  checkHeartbeat,
  checkOrder,
} from "../../base/check-options.ts";
import {
  check,
  checkData,
  checkDuration,
  checkKey,
  checkKnown,
  countTo,
  oneOf,
  type Rule,
  type Rules,
  rule,
  trueOrFalse,
} from "../../base/check-values.ts";
import { LeaseUnavailableError } from "../../base/errors.ts";
import { checkHandle, checkMembers, type LeaseHandle, type SeatHandle } from "../../base/handle.ts";
import { isWhole } from "../../base/item-values.ts";
import type { SeatKind } from "../../base/lease-record.ts";
import type { HoldOptions, WaitOptions, WaitOrder } from "../../base/options.ts";
import { leaseItemKey } from "../../base/schema.ts";
import type { Item } from "../../base/store.ts";
import { type CallBudget, callBudgetMs } from "../../base/timed-call.ts";
import { acquireLease, adoptLease } from "../../core/acquire.ts";
import type { LeaseClient } from "../../core/client.ts";
import { type Core, coreOf } from "../../core/core.ts";
import { Lease } from "../../core/lease.ts";
import { whileOpen } from "../../core/lifecycle.ts";
import { RetryLoop } from "../../core/wait-loop.ts";
import { type SeatRecord, seatCounters, seatLimits, seatsIn } from "./seat.ts";
import { HeldSeat, SeatForm, type SeatTerms } from "./seat-form.ts";

/** A caller that asks for no seat of its own. */
const nobody = { owner: "", resumes: false, reentrant: false } as const;

/** The wanted seat, and the seats that may be beside it. */
export type SeatRule = Pick<SeatTerms, "kind" | "permits" | "capacity" | "limits" | "exemptBy">;

type SeatOptions = WaitOptions & { readonly permits?: number };

/** The options of one call, validated; the payload as JSON text. The primitive itself checks the number of permits. */
export interface SeatCall extends Omit<AcquisitionTerms, "data"> {
  readonly data: string | undefined;
  readonly permits: number;
}

const seatRules: Rules<SeatHandle> = {
  kind: oneOf(...(Object.keys(seatCounters) as SeatKind[])),
  permits: rule("the whole number that lease.toJSON() gave", isWhole),
  reentrant: trueOrFalse,
  data: (option, value) => {
    checkData(value, option, seatLimits.dataBytes);
    return value;
  },
};

const checkSeat: Rule<SeatHandle> = (path, value) =>
  checkMembers(value as SeatHandle, seatRules, path, ["kind", "permits", "reentrant"]);

/** One item of seats, for the primitive that it belongs to. */
export class SeatItem {
  readonly core: Core;
  readonly key: string;
  readonly #sortKey: string;
  readonly #order: WaitOrder | undefined;

  /** Throws InvalidOptionsError. */
  constructor(client: LeaseClient, key: string, sortKey: string, order: WaitOrder | undefined) {
    this.core = coreOf(client);
    this.key = checkKey(key);
    this.#sortKey = sortKey;
    this.#order = order === undefined ? undefined : checkOrder("order", order);
  }

  /** Validates the options of one call, including the payload; `names` are the primitive's own options. */
  checkCall(options: SeatOptions, names: readonly string[], mayWait: boolean): SeatCall {
    const { owner, times } = this.core;
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
    const { core, key } = this;
    const form = this.form({ ...rule, reentrantOwner: call.reentrant ? call.owner : undefined });
    const wanted = { ...call, key, sortKey: this.#sortKey, resumes: call.reentrant, slot: undefined, order };
    return await untilAborted(key, call.signal, async () => {
      return new Lease(await acquireLease(core, wanted, form), undefined);
    });
  }

  /** Adopts a lease of this item from another process's `lease.toJSON()`, as `client.adopt` does a lock's. */
  adopt(handle: LeaseHandle, options: Pick<HoldOptions, "heartbeat"> = {}): Lease {
    const { core } = this;
    const { heartbeat } = checkKnown(options, ["heartbeat"], "options");
    const terms = checkHandle(handle, core.tableName, checkSeat);
    const { key, sortKey, token, version } = terms.record;
    const isHere = key === this.key && sortKey === this.#sortKey;
    check(isHere, "handle.key", key, `a handle of the ${this.#sortKey} ${JSON.stringify(this.key)}`);
    countTo(seatLimits.handleVersion)("handle.version", version);
    // It becomes a part of attributes' names, and renewals that share a request are statements with such names.
    const finding = "has a double quote";
    check(!token.includes('"'), "handle.token", token, "a token without double quotes", { finding });
    const heartbeatMs = checkHeartbeat(heartbeat, terms.leaseDurationMs);
    return new Lease(adoptLease(core, new HeldSeat(key, sortKey), terms, heartbeatMs), undefined);
  }

  form(terms: SeatRule & Pick<SeatTerms, "reentrantOwner">): SeatForm {
    return new SeatForm({ ...terms, key: this.key, sortKey: this.#sortKey });
  }

  /** Reads all seats, and which of them are unexpired: 1 consistent read. Rejects with LeaseItemError. */
  async look(): Promise<{
    readonly seats: readonly SeatRecord[];
    readonly unexpired: readonly SeatRecord[];
  }> {
    const seats = seatsIn(await this.#read());
    return { seats, unexpired: this.core.detector.unexpired(seats) };
  }

  /**
   * Waits until a consistent read shows that no seat is in the way of a rule. An operator's pause is not in the way.
   * Reads in between may lag.
   */
  async untilFree(rule: SeatRule, options: WaitOptions): Promise<void> {
    const { core } = this;
    const { detector, lifecycle } = core;
    const call = this.checkCall(options, ["signal"], true);
    const leasesIn = (item: Item | undefined) => seatsIn(item).filter(({ pause }) => pause === undefined);
    const form = Object.assign(this.form(rule), { leasesIn });
    const look = {
      token: "",
      judge: (item: Item | undefined) => form.judge(item, nobody, detector),
      try: async ({ withinMs = callBudgetMs, signal }: CallBudget) => {
        const item = await this.#read({ withinMs: Math.min(withinMs, callBudgetMs), signal });
        const availability = form.judge(item, nobody, detector);
        if (availability.claimableInMs <= 0) return { granted: true } as const;
        return { granted: false, availability, item } as const;
      },
    };
    await untilAborted(this.key, call.signal, () =>
      whileOpen(lifecycle, call.signal, async (signal) => {
        const wait = { ...call, ...nobody, key: this.key, sortKey: this.#sortKey, signal };
        await new RetryLoop<{ readonly granted: true }>(core, form, wait).grant(look, () => undefined);
      }),
    );
  }

  /** The kinds of seats that an owner holds under this key in this client. No two items of a key have the same kind. */
  heldHere(owner: string): ReadonlySet<SeatKind | undefined> {
    const held = this.core.lifecycle.held.filter((lease) => {
      const { key, owner: holder } = lease.record;
      // In a process that was frozen, the timer that ends the lease may be late.
      return key === this.key && holder === owner && lease.remainingMs() > 0;
    });
    return new Set(held.map(({ record }) => record.seat?.kind));
  }

  #read(budget?: CallBudget): Promise<Item | undefined> {
    const key = leaseItemKey(this.key, this.#sortKey);
    return this.core.get({ key, consistent: true }, budget);
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
