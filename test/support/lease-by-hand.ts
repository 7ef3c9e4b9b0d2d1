/** A lease that a test holds by hand: no client renews it or lets it go. */
import { LeaseClient, type LeaseEvent, type LeaseRecord } from "@leasehold/client";
import { coreOf } from "@leasehold/client/internal";
import { readRecord } from "@leasehold/client/record";
import { ManualClock } from "@leasehold/client/testing";
import type { Core } from "../../packages/client/src/core/core.ts";
import { HeldLease, type HeldLeaseTerms } from "../../packages/client/src/core/held-lease.ts";
import { LockForm } from "../../packages/client/src/core/lock-form.ts";
import { ScriptedStore } from "./scripted-store.ts";

export const leaseDurationMs = 10_000;
/** The item of the lock that the lease is of. */
export const itemKey = { pk: "k", sk: "lease" };

export interface LeaseByHand {
  readonly clock: ManualClock;
  /** Has noted nothing yet. */
  readonly store: ScriptedStore;
  readonly core: Core;
  /** What the client has told. */
  readonly events: LeaseEvent[];
  /** The lease as the table shows it. */
  readonly record: LeaseRecord;
  /** Holds it, believed in for all of its time unless nothing has confirmed it yet. */
  held(terms?: Partial<HeldLeaseTerms>, isConfirmed?: boolean): HeldLease;
  /** Holds it as a process that has it by a handle. */
  adopted(terms?: Partial<HeldLeaseTerms>): HeldLease;
}

/**
 * Acquires it in a store of this process, or in one far away, whose answers tell no time unless the test lets them. A
 * shared lease is one of several in its item.
 */
export async function leaseByHand({ isLocal = true, isShared = false } = {}): Promise<LeaseByHand> {
  const clock = new ManualClock();
  const store = new ScriptedStore();
  await new LeaseClient({ store, clock, owner: "me", leaseDurationMs }).acquire("k");
  store.isLocal = isLocal;
  const events: LeaseEvent[] = [];
  const onEvent = (event: LeaseEvent): void => void events.push(event);
  const client = new LeaseClient({ store, clock, owner: "me", leaseDurationMs, onEvent });
  const core = coreOf(client);
  const record = readRecord(store.table.peek(itemKey)) as LeaseRecord;
  store.calls.length = 0;
  const terms = { record, leaseDurationMs, cooldownUntil: undefined, slot: undefined };
  const form = Object.assign(new LockForm("k", "lease"), { isShared });
  return {
    ...{ clock, store, core, events, record },
    held(more = {}, isConfirmed = true) {
      const belief = isConfirmed ? { since: core.clock.moment(), forMs: leaseDurationMs } : undefined;
      return new HeldLease(core, form, { ...terms, heldSince: 0, ...more }, belief);
    },
    adopted: (more = {}) => new HeldLease(core, form, { ...terms, ...more }),
  };
}

/** What a call rejects with; undefined where it does not. */
export const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );
