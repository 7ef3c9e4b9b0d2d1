import { createHash } from "node:crypto";
import { LeaseLostError, LeaseServiceError } from "../../base/errors.ts";
import type { LeaseEvent } from "../../base/events.ts";
import type { LeaseRecord } from "../../base/lease-record.ts";
import { isOpenTo } from "../../base/record.ts";
import type { Item } from "../../base/store.ts";
import { callBudgetMs } from "../../base/timed-call.ts";
import { announceGrant, contentionOf } from "../../core/acquire.ts";
import { Attempt } from "../../core/attempt.ts";
import type { Core } from "../../core/core.ts";
import type { Belief } from "../../core/deadline.ts";
import type { Availability, Ending } from "../../core/form.ts";
import { HeldLease } from "../../core/held-lease.ts";
import { LockForm } from "../../core/lock-form.ts";
import type { Part, Write } from "../../statements/statement.ts";
import type { Queue } from "./queue.ts";
import { QueueCaller } from "./queue-caller.ts";
import type { QueueEstimate } from "./queue-estimate.ts";
import { type NewTicket, type QueueTicket, ticketIdLength } from "./queue-ticket.ts";
import { removeTickets, renewTickets } from "./queue-writes.ts";

/** The most writes of one check-in: each refusal shows what the next write has to be. */
const mostSteps = 5;

/** The owner may have checked in again since the look. */
const leaseAsSeen: Part = { when: "#version = :seenVersion" };

/** The lease, or the owner's position in line; undefined for an owner that has neither and does not join. */
export type CheckInOutcome = { readonly lease: HeldLease } | { readonly waiting: QueueEstimate } | undefined;

/**
 * One owner's check-in, or check-out, at one lock: the next step of a waiter or a holder.
 *
 * A check-in is a read and the write that follows from it. Only the table keeps state from one check-in to the next. So
 * an owner may check in at any process, and a repeated check-in finds what the first has done.
 */
export class CheckInCaller extends QueueCaller {
  readonly #owner: string;
  /** How long the owner's ticket or lease lasts without another check-in. */
  readonly #leaseMs: number;
  /** Both are from the last answer; each call begins with a look. */
  #availability!: Availability;
  #holder: LeaseRecord | undefined;

  constructor(core: Core, queue: Queue, owner: string, leaseMs: number) {
    // The lease belongs to its owner and to no process. Any process may carry it on at the next check-in: a missing
    // renewal here does not mean that it is lost.
    const ofNoProcess = { isListed: false, mutes: ({ type }: LeaseEvent) => type === "lost" };
    super(core, Object.assign(new LockForm(queue.key, queue.sortKey), ofNoProcess), queue, false);
    this.#owner = owner;
    this.#leaseMs = leaseMs;
    // An owner has one ticket, however often and wherever it checks in.
    this.ticketId = createHash("sha256").update(owner).digest("hex").slice(0, ticketIdLength);
  }

  /** Renews the owner's lease, takes its turn, renews its ticket or joins. Rejects with QueueFullError. */
  async checkIn(maxWaiters: number, join: boolean): Promise<CheckInOutcome> {
    await this.#look();
    let mayTry = true;
    const isNext = (): boolean => mayTry && this.#availability.claimableInMs <= 0;
    for (let step = 0; step < mostSteps; step += 1) {
      const mine = this.#mine;
      if (mine !== undefined) {
        const lease = await this.#renewed(mine);
        if (lease !== undefined) return { lease };
        await this.#look();
      } else if (isNext() && (this.own !== undefined || join)) {
        const lease = await this.#takeTurn();
        if (lease !== undefined) return { lease };
        // Another holder has caused the refusal, and would cause the next one, too.
        mayTry = this.#holder === undefined || this.#mine !== undefined;
      } else if (this.own === undefined && !join) return undefined;
      else {
        await this.send(this.#stay(maxWaiters));
        if (this.own !== undefined && !isNext()) return { waiting: this.estimate };
      }
    }
    throw this.#tooBusy();
  }

  /**
   * Gives up what the owner has: the lock, or its ticket. Returns whether it had any.
   *
   * Ends only what its look has shown: a late copy does not end what the owner has got since.
   */
  async checkOut(): Promise<boolean> {
    await this.#look();
    const { own } = this;
    const mine = this.#mine;
    if (own !== undefined) await this.#leave(own);
    // A concurrent check-in of the same owner has taken its turn. To end that, the owner checks out again.
    if (this.#mine !== undefined && this.#mine.token !== mine?.token) throw this.#tooBusy();
    if (mine !== undefined) await this.#release(mine);
    return own !== undefined || mine !== undefined;
  }

  protected learn(item: Item | undefined): void {
    this.#availability = this.judge(item, { owner: this.#owner, resumes: false }, this.core.detector);
    [this.#holder] = this.form.leasesIn(item);
  }

  protected newTicket(): NewTicket {
    const since = this.own?.since ?? this.core.clock.now();
    return this.ticket({ since, leaseMs: this.#leaseMs, isWatching: false, owner: this.#owner });
  }

  /** Ends a lease only if it is unchanged since the look. */
  override release(ending: Ending): Write {
    return super.release(ending).and(leaseAsSeen, { ":seenVersion": ending.shown.version });
  }

  /** The lease, if it is the owner's. */
  get #mine(): LeaseRecord | undefined {
    return this.#holder && isOpenTo(this.#holder, this.#owner) ? this.#holder : undefined;
  }

  /** Reads the lock and its line. 1 consistent read. */
  async #look(): Promise<void> {
    this.learn(await this.queue.look({}, true));
  }

  /** Renews the owner's lease; undefined if it has ended by now. */
  async #renewed(mine: LeaseRecord): Promise<HeldLease | undefined> {
    const lease = this.#held(mine, this.#leaseMs);
    try {
      await lease.renew();
      return lease;
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
      // The holder was asked to stop: the owner sees that by the lease's signal, and checks out.
      return error.reason === "revoked" ? lease : undefined;
    }
  }

  async #takeTurn(): Promise<HeldLease | undefined> {
    const { key, sortKey } = this.queue;
    // Reentrant, because the owner may check in next at any process. If a concurrent copy of this check-in has got the
    // lease, it is renewed under its token and not taken over: `resumes` is false.
    const asked = { reentrant: true, resumes: false, data: undefined, slot: undefined };
    const terms = { key, sortKey, owner: this.#owner, leaseDurationMs: this.#leaseMs, ...asked };
    const since = this.own?.since;
    const attempt = new Attempt(this.core, this.form, terms);
    const outcome = await attempt.try({ withinMs: callBudgetMs }, this.#availability);
    this.learn(outcome.item);
    if (!outcome.granted) return undefined;
    const { record, belief } = outcome;
    const waitedMs = this.core.clock.now() - (since ?? record.acquiredAt);
    announceGrant(this.core, this.form, outcome, Math.max(0, waitedMs));
    return this.#held(record, this.#leaseMs, belief);
  }

  /** Renews the owner's ticket, or joins. */
  #stay(maxWaiters: number): Write {
    const { own } = this;
    if (own !== undefined) return renewTickets(this.queue, [{ ...this.newTicket(), number: own.number }]);
    contentionOf(this.core, this.form, this.#owner)(this.#holder);
    return this.joining(maxWaiters);
  }

  /** Removes a ticket if it is still there. After a new join, the owner has another ticket. */
  async #leave({ number }: QueueTicket): Promise<void> {
    for (let step = 0; step < mostSteps; step += 1) {
      const { own } = this;
      if (own?.number !== number) return;
      await this.send(removeTickets(this.queue, [own]));
    }
    if (this.own?.number === number) throw this.#tooBusy();
  }

  /** Releases the lock, and notes how long it was held. Rejects if its owner has renewed it since the look. */
  async #release(mine: LeaseRecord): Promise<void> {
    const { clock } = this.core;
    this.grantedAt = clock.monotonic() - Math.max(0, clock.now() - mine.acquiredAt);
    if ((await this.#held(mine, mine.leaseDurationMs).release(false)).wasOurs) return;
    await this.#look();
    if (this.#mine?.token === mine.token) throw this.#tooBusy();
  }

  #held(record: LeaseRecord, leaseDurationMs: number, belief?: Belief): HeldLease {
    const terms = { record, leaseDurationMs, cooldownUntil: undefined, slot: undefined };
    return new HeldLease(this.core, this.form, terms, belief);
  }

  #tooBusy(): LeaseServiceError {
    const message = `the lock ${JSON.stringify(this.queue.key)} has changed with each of ${mostSteps} tries: try again`;
    return new LeaseServiceError("LEASE_CONFLICT", message);
  }
}
