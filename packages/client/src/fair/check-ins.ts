import { createHash } from "node:crypto";
import { LeaseLostError, LeaseServiceError } from "../errors/errors.ts";
import { AcquireAttempt } from "../protocol/acquire-attempt.ts";
import { announceGrant, contentionOf } from "../protocol/announcement.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { HeldLease } from "../protocol/held-lease.ts";
import type { Ending, Prospect } from "../protocol/lease-form.ts";
import { LockForm } from "../protocol/lock-form.ts";
import { isOpenTo, type LeaseRecord } from "../record.ts";
import { attributeNames, leaseItemKey } from "../schema.ts";
import { callBudgetMs } from "../store/timed-store.ts";
import { amended, type Write } from "../store/write.ts";
import type { Item } from "../store.ts";
import type { LocalWaiters } from "./local-waiters.ts";
import type { QueueEstimate } from "./queue-estimate.ts";
import { type QueueTicket, ticketText } from "./queue-ticket.ts";
import { joinIfRoom, type QueueKey, removable, removeTickets, renewTickets } from "./queue-writes.ts";
import { QueuedForm } from "./queued-form.ts";
import { queueLimits } from "./schema.ts";

/** How many writes one check-in may take, each by what the refusal of the one before has shown. */
const mostSteps = 5;

const idLength = 16;

/** What a check-in asks for, validated. */
export interface CheckInTerms {
  readonly owner: string;
  /** How long its ticket, or its lease, lasts without another check-in. */
  readonly leaseDurationMs: number;
  readonly maxWaiters: number;
  /** Whether an owner that is not there joins the line. */
  readonly join: boolean;
}

/** The lease, or where in line the owner stands; neither for an owner that is not there and does not join. */
export type CheckInOutcome = { readonly lease: HeldLease } | { readonly waiting: QueueEstimate } | undefined;

/** What one look has shown one owner. */
interface View {
  readonly form: CheckInForm;
  readonly prospect: Prospect;
  readonly record: LeaseRecord | undefined;
}

/** Ends a lease only as it was seen: its owner may have checked in anew meanwhile. */
class CheckInForm extends QueuedForm {
  override release(ending: Ending): Write {
    const isAsSeen = [attributeNames.version, "=", ending.shown.version] as const;
    return amended(super.release(ending), { insist: [isAsSeen] });
  }
}

/**
 * Callers without a thread of their own at one lock: each checks in now and then, and is known by its owner.
 *
 * A check-in is a read and the one write that follows from it. Nothing is kept from one to the next but what the table
 * holds: so an owner may check in at any process, and a check-in that is repeated finds what the first has done.
 */
export class CheckIns {
  readonly #context: ProtocolContext;
  readonly #waiters: LocalWaiters;
  readonly #queue: QueueKey;

  constructor(context: ProtocolContext, waiters: LocalWaiters, queue: QueueKey) {
    // The lease goes on elsewhere, with the next check-in: that it was not renewed here tells nothing.
    const publish: ProtocolContext["publish"] = (event) => {
      if (event.type !== "lost") context.publish(event);
    };
    this.#context = { ...context, publish, hold: () => undefined };
    this.#waiters = waiters;
    this.#queue = queue;
  }

  /** Renews the owner's lease, takes its turn, renews its ticket or joins. Rejects with QueueFullError. */
  async checkIn(terms: CheckInTerms): Promise<CheckInOutcome> {
    const { owner } = terms;
    let view = await this.#look(owner);
    let mayTry = true;
    for (let step = 0; step < mostSteps; step += 1) {
      const { form, prospect, record } = view;
      if (record !== undefined && isOpenTo(record, owner)) {
        const lease = await this.#renewed(terms, form, record);
        if (lease !== undefined) return { lease };
        view = await this.#look(owner);
      } else if (mayTry && prospect.claimableInMs <= 0 && (form.own !== undefined || terms.join)) {
        const outcome = await this.#takeTurn(terms, view);
        if (outcome instanceof HeldLease) return { lease: outcome };
        view = outcome;
        // Where it was refused for another holder, another try now would be, too.
        mayTry = view.record === undefined || isOpenTo(view.record, owner);
      } else {
        const write = this.#waiting(terms, view);
        if (write === undefined) return undefined;
        view = await this.#write(owner, write);
        const isNext = mayTry && view.prospect.claimableInMs <= 0;
        if (view.form.own !== undefined && !isNext) return { waiting: view.form.estimate };
      }
    }
    throw this.#tooBusy();
  }

  /**
   * Gives up what an owner has: the lock, or its ticket. Tells whether there was anything.
   *
   * Ends only what its look has shown: a copy that arrives late leaves alone what the owner has got since.
   */
  async checkOut(owner: string): Promise<boolean> {
    const { form, record } = await this.#look(owner);
    const { own } = form;
    const hasLock = record !== undefined && isOpenTo(record, owner);
    if (own !== undefined) {
      const now = await this.#leave(owner, own);
      // A check-in of the same owner was under way, and has taken its turn: to end that, the owner checks out again.
      if (now !== undefined && isOpenTo(now, owner) && now.token !== record?.token) throw this.#tooBusy();
    }
    if (hasLock) await this.#release(form, record);
    return own !== undefined || hasLock;
  }

  /** Reads the lock and its line. 1 consistent read. */
  async #look(owner: string): Promise<View> {
    const key = leaseItemKey(this.#queue.key, this.#queue.sortKey);
    return this.#view(owner, await this.#context.table.get({ key, consistent: true }));
  }

  #view(owner: string, item: Item | undefined): View {
    const inner = new LockForm(this.#queue.key, this.#queue.sortKey);
    const form = new CheckInForm(this.#context, inner, this.#waiters, false);
    form.ticketId = ticketIdOf(owner);
    const prospect = form.judge(item, { owner, resumes: false }, this.#context.detector);
    return { form, prospect, record: form.leasesIn(item)[0] };
  }

  async #write(owner: string, write: Write): Promise<View> {
    return this.#view(owner, (await this.#context.table.update(write)).item);
  }

  /** Renews the lease that the owner has; undefined where it is gone by now. */
  async #renewed(
    { leaseDurationMs }: CheckInTerms,
    form: CheckInForm,
    record: LeaseRecord,
  ): Promise<HeldLease | undefined> {
    const lease = new HeldLease(this.#context, form, termsOf(record, leaseDurationMs), undefined);
    try {
      await lease.renew();
      return lease;
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
      // Asked to stop: the owner sees that by the lease's signal, and checks out.
      return error.reason === "revoked" ? lease : undefined;
    }
  }

  async #takeTurn(terms: CheckInTerms, { form, prospect }: View): Promise<HeldLease | View> {
    const { owner, leaseDurationMs } = terms;
    const { own, passable } = form;
    if (passable.length > queueLimits.removalsPerWrite) {
      return await this.#write(owner, removeTickets(this.#queue, removable(passable)));
    }
    // It is the owner's, at whatever process that checks in next. What another copy of this check-in has got meanwhile is
    // renewed, under its token, and not taken over.
    const asked = { reentrant: true, resumes: false, data: undefined, slot: undefined };
    const attempt = new AcquireAttempt(this.#context, form, {
      ...this.#queue,
      owner,
      leaseDurationMs,
      ...asked,
    });
    const outcome = await attempt.try({ withinMs: callBudgetMs }, prospect);
    if (!outcome.granted) return this.#view(owner, outcome.item);
    const { record, takeovers, belief } = outcome;
    const waitedMs = this.#context.clock.now() - (own?.since ?? record.acquiredAt);
    announceGrant(this.#context, record, takeovers, Math.max(0, waitedMs));
    return new HeldLease(this.#context, form, termsOf(record, leaseDurationMs), belief);
  }

  /** The write that renews the owner's ticket, or joins; undefined for an owner that does not join. */
  #waiting(
    { owner, leaseDurationMs, maxWaiters, join: joins }: CheckInTerms,
    { form, record }: View,
  ): Write | undefined {
    const { clock, retentionMs } = this.#context;
    const { own, snapshot, passable, ticketId: id } = form;
    const now = clock.now();
    const until = now + leaseDurationMs;
    const since = own?.since ?? now;
    const text = ticketText({
      since,
      until,
      leaseMs: leaseDurationMs,
      answered: undefined,
      shape: undefined,
      owner,
    });
    if (own !== undefined) return renewTickets(this.#queue, [{ id, text, number: own.number }]);
    if (!joins) return undefined;
    contentionOf(this.#context, owner)(record);
    return joinIfRoom(this.#queue, { ...snapshot, passable }, { id, text, until }, maxWaiters, retentionMs);
  }

  /** Removes a ticket, unless it is gone already, and gives the lock's lease after that. A ticket that was joined anew is another one. */
  async #leave(owner: string, ticket: QueueTicket): Promise<LeaseRecord | undefined> {
    let seen = ticket;
    for (let step = 0; step < mostSteps; step += 1) {
      const { form, record } = await this.#write(owner, removeTickets(this.#queue, [seen]));
      if (form.own?.number !== ticket.number) return record;
      seen = form.own;
    }
    throw this.#tooBusy();
  }

  /** Lets the lock go, and notes how long it was held. Rejects where its owner has renewed it since it was seen. */
  async #release(form: CheckInForm, record: LeaseRecord): Promise<void> {
    const { clock } = this.#context;
    form.grantedAt = clock.monotonic() - Math.max(0, clock.now() - record.acquiredAt);
    const lease = new HeldLease(this.#context, form, termsOf(record, record.leaseDurationMs), undefined);
    const { wasOurs } = await lease.release(false);
    if (wasOurs) return;
    const now = await this.#look(record.owner);
    if (now.record?.token === record.token) throw this.#tooBusy();
  }

  #tooBusy(): LeaseServiceError {
    const message = `the lock ${JSON.stringify(this.#queue.key)} has changed with each of ${mostSteps} tries: try again`;
    return new LeaseServiceError("LEASE_CONFLICT", message);
  }
}

/** One owner has one ticket, however often and wherever it checks in: the ticket's id follows from the owner. */
function ticketIdOf(owner: string): string {
  return createHash("sha256").update(owner).digest("hex").slice(0, idLength);
}

function termsOf(record: LeaseRecord, leaseDurationMs: number): ConstructorParameters<typeof HeldLease>[2] {
  return { record, leaseDurationMs, cooldownUntil: undefined, slot: undefined };
}
