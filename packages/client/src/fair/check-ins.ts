import { createHash } from "node:crypto";
import type { ClientInternals } from "../client-internals.ts";
import { LeaseLostError, LeaseServiceError } from "../errors/errors.ts";
import { Lease } from "../lease.ts";
import { check, checkDuration, checkKnown, checkText } from "../options/check-values.ts";
import { AcquireAttempt } from "../protocol/acquire-attempt.ts";
import { announceGrant, contentionOf } from "../protocol/announcement.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { HeldLease } from "../protocol/held-lease.ts";
import type { Belief } from "../protocol/lease-deadline.ts";
import type { Ending, Prospect } from "../protocol/lease-form.ts";
import { LockForm } from "../protocol/lock-form.ts";
import { isOpenTo, type LeaseRecord } from "../record.ts";
import { attributeNames, limits } from "../schema.ts";
import { callBudgetMs } from "../store/timed-store.ts";
import { amended, type Write } from "../store/write.ts";
import type { Item } from "../store.ts";
import type { QueuePosition } from "./fair.ts";
import type { Queue } from "./queue.ts";
import { estimatedWaitMs } from "./queue-estimate.ts";
import type { QueueTicket } from "./queue-ticket.ts";
import { QueueTurn } from "./queue-turn.ts";
import { removeTickets, renewTickets } from "./queue-writes.ts";

/** How many writes one check-in may take: each refusal shows what the next write has to be. */
const mostSteps = 5;

const idLength = 16;

/** Options of a caller without a process of its own, which checks in now and then. */
export interface CheckInOptions {
  /** The caller's identity, which no other caller has. At most 1024 bytes; `inspect` shows the first 64 of a waiter's. */
  readonly owner: string;
  /**
   * How long its ticket, or its lease, lasts without another check-in. At most the client's `retentionMs`.
   * @default - the client's
   */
  readonly leaseDurationMs?: number;
  /** Whether an owner that has neither joins the line. If false, its state is `absent`. @default true */
  readonly join?: boolean;
}

/** What an owner has after its check-in. */
export type CheckIn =
  /** It has the lock, for as long as the lease lasts. If the lease's signal has aborted, it was asked to stop: check out. */
  | { readonly state: "held"; readonly lease: Lease }
  | ({ readonly state: "waiting" } & QueuePosition)
  /** It has nothing: it checked out, checked in too late, or has never joined. */
  | { readonly state: "absent" };

/** A check-in, validated. */
type Terms = Required<CheckInOptions> & { readonly maxWaiters: number };

/** What one answer has shown one owner. */
class CheckInTurn extends QueueTurn {
  readonly prospect: Prospect;
  readonly holder: LeaseRecord | undefined;
  /** The lease, if it is the owner's. */
  readonly mine: LeaseRecord | undefined;

  constructor(context: ProtocolContext, queue: Queue, owner: string, item: Item | undefined) {
    super(context, new LockForm(queue.key, queue.sortKey), queue, false);
    // One owner has one ticket, however often and wherever it checks in.
    this.ticketId = createHash("sha256").update(owner).digest("hex").slice(0, idLength);
    this.prospect = this.judge(item, { owner, resumes: false }, context.detector);
    [this.holder] = this.form.leasesIn(item);
    this.mine = this.holder && isOpenTo(this.holder, owner) ? this.holder : undefined;
  }

  /** Ends a lease only as it was seen: its owner may have checked in again since. */
  override release(ending: Ending): Write {
    return amended(super.release(ending), { insist: [[attributeNames.version, "=", ending.shown.version]] });
  }
}

/**
 * The check-ins at one lock: an owner's are known by its name, and each does one step of a waiter's or a holder's life.
 *
 * A check-in is a read and the write that follows from it. Only the table keeps anything from one to the next: so an owner
 * may check in at any process, and a repeated check-in finds what the first has done.
 */
export class CheckIns {
  readonly #client: ClientInternals;
  readonly #context: ProtocolContext;
  readonly #queue: Queue;

  constructor(client: ClientInternals, queue: Queue) {
    const { context } = client;
    // The next check-in carries the lease on, in any process: that it was not renewed here does not mean that it is lost.
    const publish: ProtocolContext["publish"] = (event) => event.type !== "lost" && context.publish(event);
    this.#client = client;
    this.#context = { ...context, publish, hold: () => undefined };
    this.#queue = queue;
  }

  /** Renews the owner's lease, takes its turn, renews its ticket or joins. Rejects with QueueFullError. */
  async checkIn(options: CheckInOptions, maxWaiters: number): Promise<CheckIn> {
    const given = checkKnown(options, ["owner", "leaseDurationMs", "join"], "options");
    const { shortestLeaseMs, retentionMs, ...times } = this.#client.times;
    const { join = true, leaseDurationMs = times.leaseDurationMs } = given;
    const owner = checkText("owner", given.owner, limits.ownerBytes);
    // A longer one could outlive the item: ttl removes it, if nobody else writes it.
    checkDuration("leaseDurationMs", leaseDurationMs, shortestLeaseMs, retentionMs);
    check(typeof join === "boolean", "join", join, "true or false");
    this.#context.lifecycle.throwIfClosed();
    const terms = { owner, leaseDurationMs, join, maxWaiters };
    let turn = await this.#look(owner);
    let mayTry = true;
    for (let step = 0; step < mostSteps; step += 1) {
      const isNext = mayTry && turn.prospect.claimableInMs <= 0;
      if (turn.mine !== undefined) {
        const lease = await this.#renewed(turn, turn.mine, terms);
        if (lease !== undefined) return this.#held(lease);
        turn = await this.#look(owner);
      } else if (isNext && (turn.own !== undefined || join)) {
        const outcome = await this.#take(turn, terms);
        if (outcome instanceof HeldLease) return this.#held(outcome);
        turn = outcome;
        // Refused for another holder: another try would be refused, too.
        mayTry = turn.holder === undefined || turn.mine !== undefined;
      } else if (turn.own === undefined && !join) return { state: "absent" };
      else {
        turn = await this.#write(owner, this.#waiting(turn, terms));
        const isNextNow = mayTry && turn.prospect.claimableInMs <= 0;
        if (turn.own === undefined || isNextNow) continue;
        const { estimate } = turn;
        return { state: "waiting", position: estimate.position, estimatedWaitMs: estimatedWaitMs(estimate) };
      }
    }
    throw this.#tooBusy();
  }

  /**
   * Gives up what an owner has: the lock, or its ticket. Tells whether there was anything.
   *
   * Ends only what its look has shown: a copy that arrives late does not end what the owner has got since.
   */
  async checkOut(options: Pick<CheckInOptions, "owner">): Promise<boolean> {
    const given = checkKnown(options, ["owner"], "options");
    const owner = checkText("owner", given.owner, limits.ownerBytes);
    const turn = await this.#look(owner);
    const { own, mine } = turn;
    if (own !== undefined) {
      const now = (await this.#leave(owner, own)).mine;
      // A check-in of the same owner has taken its turn in the meantime: to end that, the owner checks out again.
      if (now !== undefined && now.token !== mine?.token) throw this.#tooBusy();
    }
    if (mine !== undefined) await this.#release(turn, mine);
    return own !== undefined || mine !== undefined;
  }

  /** Reads the lock and its line. 1 consistent read. */
  async #look(owner: string): Promise<CheckInTurn> {
    return new CheckInTurn(this.#context, this.#queue, owner, await this.#queue.look({}, true));
  }

  async #write(owner: string, write: Write): Promise<CheckInTurn> {
    const { item } = await this.#context.table.update(write);
    return new CheckInTurn(this.#context, this.#queue, owner, item);
  }

  /** Renews the lease that the owner has; undefined where it is gone by now. */
  async #renewed(
    turn: CheckInTurn,
    mine: LeaseRecord,
    { leaseDurationMs }: Terms,
  ): Promise<HeldLease | undefined> {
    const lease = this.#leaseOf(turn, mine, leaseDurationMs);
    try {
      await lease.renew();
      return lease;
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
      // Asked to stop: the owner sees that by the lease's signal, and checks out.
      return error.reason === "revoked" ? lease : undefined;
    }
  }

  async #take(turn: CheckInTurn, { owner, leaseDurationMs }: Terms): Promise<HeldLease | CheckInTurn> {
    const { own, clearing } = turn;
    if (clearing !== undefined) return await this.#write(owner, clearing);
    const { key, sortKey } = this.#queue;
    // Reentrant, for the owner may check in next at any process. A lease that another copy of this check-in has got in the
    // meantime is renewed under its token, and not taken over: `resumes` is false.
    const asked = { reentrant: true, resumes: false, data: undefined, slot: undefined };
    const terms = { key, sortKey, owner, leaseDurationMs, ...asked };
    const attempt = new AcquireAttempt(this.#context, turn.form, terms);
    const outcome = await attempt.try({ withinMs: callBudgetMs }, turn.prospect);
    if (!outcome.granted) return new CheckInTurn(this.#context, this.#queue, owner, outcome.item);
    const { record, takeovers, belief } = outcome;
    const waitedMs = this.#context.clock.now() - (own?.since ?? record.acquiredAt);
    announceGrant(this.#context, record, takeovers, Math.max(0, waitedMs));
    return this.#leaseOf(turn, record, leaseDurationMs, belief);
  }

  /** The write that renews the owner's ticket, or joins. */
  #waiting(turn: CheckInTurn, { owner, leaseDurationMs: leaseMs, maxWaiters }: Terms): Write {
    const { own, holder } = turn;
    const since = own?.since ?? this.#context.clock.now();
    const ticket = turn.ticket({ since, leaseMs, answered: undefined, owner });
    if (own !== undefined) return renewTickets(this.#queue, [{ ...ticket, number: own.number }]);
    contentionOf(this.#context, owner)(holder);
    return turn.join(ticket, maxWaiters);
  }

  /** Removes a ticket, unless it is gone already. A ticket that was joined anew is another one. */
  async #leave(owner: string, ticket: QueueTicket): Promise<CheckInTurn> {
    let seen = ticket;
    for (let step = 0; step < mostSteps; step += 1) {
      const turn = await this.#write(owner, removeTickets(this.#queue, [seen]));
      if (turn.own?.number !== ticket.number) return turn;
      seen = turn.own;
    }
    throw this.#tooBusy();
  }

  /** Lets the lock go, and notes how long it was held. Rejects where its owner has renewed it since it was seen. */
  async #release(turn: CheckInTurn, mine: LeaseRecord): Promise<void> {
    const { clock } = this.#context;
    turn.grantedAt = clock.monotonic() - Math.max(0, clock.now() - mine.acquiredAt);
    const { wasOurs } = await this.#leaseOf(turn, mine, mine.leaseDurationMs).release(false);
    if (!wasOurs && (await this.#look(mine.owner)).mine?.token === mine.token) throw this.#tooBusy();
  }

  #held(lease: HeldLease): CheckIn {
    const { context, format } = this.#client;
    return { state: "held", lease: new Lease(context, lease, format, undefined) };
  }

  #leaseOf({ form }: CheckInTurn, record: LeaseRecord, leaseDurationMs: number, belief?: Belief): HeldLease {
    const terms = { record, leaseDurationMs, cooldownUntil: undefined, slot: undefined };
    return new HeldLease(this.#context, form, terms, belief);
  }

  #tooBusy(): LeaseServiceError {
    const message = `the lock ${JSON.stringify(this.#queue.key)} has changed with each of ${mostSteps} tries: try again`;
    return new LeaseServiceError("LEASE_CONFLICT", message);
  }
}
