import { createHash } from "node:crypto";
import { LeaseLostError, LeaseServiceError } from "../errors/errors.ts";
import { keep, lockWithQueue, passOver } from "../expressions-fair.ts";
import type { Company } from "../fair/company.ts";
import { joining, removable } from "../fair/line.ts";
import { placeText, type QueuePlace, shortOwner, typicalAfter, typicalHold } from "../fair/queue.ts";
import { QueuedForm } from "../fair/queued-form.ts";
import type { Sighting } from "../fair/sighting.ts";
import { Standing } from "../fair/standing.ts";
import { AcquireAttempt } from "../protocol/acquire-attempt.ts";
import { announceGrant, contentionOf } from "../protocol/announcement.ts";
import { callBudgetMs, callStore, type ProtocolContext } from "../protocol/context.ts";
import { HeldLease } from "../protocol/held-lease.ts";
import { isOpenTo, type LeaseRecord } from "../record.ts";
import { leaseSortKey } from "../schema.ts";
import { fairLimits } from "../schema-fair.ts";
import type { UpdateRequest } from "../store.ts";

/** How many writes one visit may take, each by what the refusal of the one before has shown. */
const mostSteps = 5;

const idLength = 16;

/** What a visitor asks for, validated. */
export interface Visit {
  readonly owner: string;
  /** How long its place, or its lease, lasts without another visit. */
  readonly leaseDurationMs: number;
  readonly maxWaiters: number;
  /** Whether one that is not there joins the queue. */
  readonly join: boolean;
}

/** The lock, or where in its queue the visitor stands; neither for one that is not there and does not join. */
export type VisitOutcome = { readonly tenancy: HeldLease } | { readonly standing: Standing } | undefined;

/**
 * Callers without a thread of their own at one lock: each comes by now and then, and is known by its owner.
 *
 * A visit is a read and the one write that follows from it. Nothing is kept from one to the next but what the table
 * holds, so that they may come to any process; one that is repeated finds what the first has done.
 */
export class Visits {
  readonly #context: ProtocolContext;
  readonly #company: Company;
  readonly #lock: { readonly key: string; readonly sortKey: string };

  constructor(
    context: ProtocolContext,
    company: Company,
    lock: { readonly key: string; readonly sortKey: string },
  ) {
    // The lease goes on elsewhere, with the next visit: that it was not renewed here tells nothing.
    const publish: ProtocolContext["publish"] = (event) => {
      if (event.type !== "lost") context.publish(event);
    };
    this.#context = { ...context, publish, hold: () => undefined };
    this.#company = company;
    this.#lock = lock;
  }

  /** Comes by: renews its lease, takes its turn, keeps its place or joins. Rejects with QueueFullError. */
  async come(visit: Visit): Promise<VisitOutcome> {
    let sighting = await this.#look();
    let mayTry = true;
    for (let step = 0; step < mostSteps; step += 1) {
      const standing = this.#standing(visit.owner, sighting);
      const { record } = sighting;
      if (record !== undefined && isOpenTo(record, visit.owner)) {
        const tenancy = await this.#renewed(visit, record);
        if (tenancy !== undefined) return { tenancy };
        sighting = await this.#look();
      } else if (mayTry && (standing.ownPlace() !== undefined || visit.join) && this.#isNext(standing)) {
        const outcome = await this.#takeTurn(visit, standing);
        if (outcome instanceof HeldLease) return { tenancy: outcome };
        sighting = outcome;
        // Where it was refused for another holder, whose time is not over, another attempt now would be, too.
        mayTry = sighting.record === undefined || isOpenTo(sighting.record, visit.owner);
      } else {
        const write = this.#placing(visit, standing);
        if (write === undefined) return undefined;
        sighting = await this.#write(write);
        const after = this.#standing(visit.owner, sighting);
        if (after.ownPlace() !== undefined && !(mayTry && this.#isNext(after))) return { standing: after };
      }
    }
    throw this.#tooBusy();
  }

  /**
   * Gives up what an owner has: the lock, or its place. Tells whether there was anything.
   *
   * Ends only what its look has shown: a copy that arrives or wakes late leaves alone what its owner has got since.
   */
  async go(owner: string): Promise<boolean> {
    const sighting = await this.#look();
    const { record } = sighting;
    const place = this.#standing(owner, sighting).ownPlace();
    const hasLock = record !== undefined && isOpenTo(record, owner);
    if (place !== undefined) {
      const now = (await this.#leave(owner, place)).record;
      // A check-in of the same owner was under way, and has taken its turn: whoever means to end that has to go again.
      if (now !== undefined && isOpenTo(now, owner) && now.token !== record?.token) throw this.#tooBusy();
    }
    if (hasLock) await this.#release(record, sighting);
    return place !== undefined || hasLock;
  }

  async #look(): Promise<Sighting> {
    const request = lockWithQueue(this.#lock, true);
    const item = await callStore(this.#context, (store, call) => store.get(request, call));
    return this.#company.observer.see(item);
  }

  #standing(owner: string, sighting: Sighting): Standing {
    const standing = new Standing(placeIdOf(owner), owner, this.#context, this.#company.observer);
    standing.learn(sighting);
    return standing;
  }

  /** Whether an attempt makes sense: nobody who lives is ahead, and the lock is free or its holder's time seems over. */
  #isNext(standing: Standing): boolean {
    const { clock, clockSkewMs } = this.#context;
    const record = standing.sighting?.record;
    if (standing.aheadLapseIn() > 0) return false;
    return record === undefined || standing.isNext() || clock.now() > record.expiresAt + clockSkewMs;
  }

  /** Prolongs the lease that the owner has; undefined where it is gone by now. */
  async #renewed({ leaseDurationMs }: Visit, record: LeaseRecord): Promise<HeldLease | undefined> {
    const tenancy = new HeldLease(this.#context, this.#form(), termsOf(record, leaseDurationMs), undefined);
    try {
      await tenancy.renew();
      return tenancy;
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
      // Asked to stop: it is for the visitor to see that, and to go.
      return error.reason === "revoked" ? tenancy : undefined;
    }
  }

  async #takeTurn(visit: Visit, standing: Standing): Promise<HeldLease | Sighting> {
    const ahead = standing.ahead();
    if (ahead.length > fairLimits.removalsPerWrite) {
      return await this.#write(passOver(this.#lock, removable(ahead)));
    }
    const { owner, leaseDurationMs } = visit;
    const form = this.#form();
    form.turn = { own: standing.ownPlace(), passed: removable(ahead) };
    const terms = {
      key: form.key,
      sortKey: form.sortKey,
      owner,
      leaseDurationMs,
      // It is the owner's, wherever that comes by next. What another copy of this visit has won meanwhile is renewed,
      // under its token, and not taken over.
      reentrant: true,
      resumes: false,
      data: undefined,
      slot: undefined,
    };
    const attempt = new AcquireAttempt(this.#context, form, terms);
    const outcome = await attempt.try({ withinMs: callBudgetMs });
    if (!outcome.granted) {
      return this.#company.observer.seeRefused(outcome.item, outcome.prospect.claimableInMs);
    }
    const { record, takeovers, belief } = outcome;
    const waitedMs = this.#context.clock.now() - (standing.ownPlace()?.since ?? record.acquiredAt);
    announceGrant(this.#context, record, takeovers, Math.max(0, waitedMs));
    return new HeldLease(this.#context, form, termsOf(record, leaseDurationMs), belief);
  }

  #form(): QueuedForm {
    return new QueuedForm(
      { key: this.#lock.key, sortKey: this.#lock.sortKey ?? leaseSortKey },
      this.#context.clock,
    );
  }

  /** The write that keeps the visitor's place, or joins; undefined for one that does not join. */
  #placing(
    { owner, leaseDurationMs, maxWaiters, join: joins }: Visit,
    standing: Standing,
  ): UpdateRequest | undefined {
    const { clock, retentionMs } = this.#context;
    const now = clock.now();
    const own = standing.ownPlace();
    const until = now + leaseDurationMs;
    const id = placeIdOf(owner);
    const since = own?.since ?? now;
    const text = placeText({ since, until, leaseMs: leaseDurationMs, owner: shortOwner(owner) });
    if (own !== undefined) return keep(this.#lock, [{ id, text, ticket: own.ticket }]);
    if (!joins) return undefined;

    contentionOf(this.#context, owner)(standing.sighting?.record);
    return joining(this.#lock, maxWaiters, standing, { id, text, until }, retentionMs);
  }

  /** Removes a place, unless it is gone already: as it was seen, so that one that was joined anew is another. */
  async #leave(owner: string, place: QueuePlace): Promise<Sighting> {
    let seen = place;
    for (let step = 0; step < mostSteps; step += 1) {
      const sighting = await this.#write(passOver(this.#lock, removable([seen])));
      const own = this.#standing(owner, sighting).ownPlace();
      if (own?.ticket !== place.ticket) return sighting;
      seen = own;
    }
    throw this.#tooBusy();
  }

  /** Lets the lock go, and notes how long it was held. Rejects where its owner has renewed it since it was seen. */
  async #release(record: LeaseRecord, { item }: Sighting): Promise<void> {
    const form = this.#form();
    form.endsVersion = record.version;
    form.typicalMs = () =>
      typicalAfter(typicalHold(item), Math.max(0, this.#context.clock.now() - record.acquiredAt));
    form.onReleased = () => this.#company.released();
    const tenancy = new HeldLease(this.#context, form, termsOf(record, record.leaseDurationMs), undefined);
    const { wasOurs } = await tenancy.release(false);
    if (!wasOurs && form.shown.some(({ token }) => token === record.token)) throw this.#tooBusy();
  }

  async #write(request: UpdateRequest): Promise<Sighting> {
    const result = await callStore(this.#context, (store, call) => store.update(request, call));
    return this.#company.observer.see(result.item);
  }

  #tooBusy(): LeaseServiceError {
    const message = `the lock ${JSON.stringify(this.#lock.key)} has changed with each of ${mostSteps} tries: come again`;
    return new LeaseServiceError("LEASE_CONFLICT", message);
  }
}

/** One owner has one place, however often and wherever it comes: its id follows from the owner. */
function placeIdOf(owner: string): string {
  return createHash("sha256").update(owner).digest("hex").slice(0, idLength);
}

function termsOf(record: LeaseRecord, leaseDurationMs: number): ConstructorParameters<typeof HeldLease>[2] {
  return { record, leaseDurationMs, cooldownUntil: undefined, slot: undefined };
}
