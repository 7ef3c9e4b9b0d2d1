import type { LeaseRecord } from "../../base/lease-record.ts";
import { isOpenTo } from "../../base/record.ts";
import type { Item } from "../../base/store.ts";
import type { CallBudget } from "../../base/timed-call.ts";
import type { Core } from "../../core/core.ts";
import type { ExpiryDetector } from "../../core/expiry-detector.ts";
import type { Availability, Ending, LeaseForm } from "../../core/form.ts";
import { estimateAfter } from "../../core/hold-estimate.ts";
import type { Grant } from "../../statements/lock.ts";
import type { Write } from "../../statements/statement.ts";
import { type Queue, unseen } from "./queue.ts";
import type { QueueEstimate } from "./queue-estimate.ts";
import {
  holdNoteIn,
  holdText,
  type NewTicket,
  type QueueSnapshot,
  type QueueTicket,
  queueLimits,
  type TicketTerms,
  ticketText,
} from "./queue-ticket.ts";
import { holdsNoted, inTurn, joinIfRoom, removable, removeTickets } from "./queue-writes.ts";

const { removalsPerWrite } = queueLimits;
/** DynamoDB allows 300 operators in a condition: each passed lease takes four of them, and each ticket two. */
const [manyLeases, removalsBesideMany] = [45, 10];

/** How many tickets an acquiring write removes that passes these leases, of which it removes 60 at most. */
function removalsBeside(passed: readonly LeaseRecord[]): number {
  return passed.length > manyLeases ? removalsBesideMany : removalsPerWrite;
}

/**
 * A caller that acquires a lease in its turn: its position by the last answer, the form of the lease with the line's
 * additions, and the steps to the lease.
 *
 * One write takes the lease, leaves the line and passes expired tickets. So the protocol's rules for lost and late
 * answers hold for the line, too.
 */
export abstract class QueueCaller {
  /** The form of the lease, with the line's additions. */
  readonly form: LeaseForm;
  protected readonly core: Core;
  protected readonly queue: Queue;
  /** The id of the caller's ticket, even before it has one. Set before the first judgement. */
  protected ticketId!: string;
  /** When the caller got the lease, on the monotonic clock. */
  protected grantedAt: number | undefined;
  readonly #inner: LeaseForm;
  readonly #resumes: boolean;
  #snapshot: QueueSnapshot = unseen;
  /** Whether, by the last judgement, the caller's lease would keep out no living waiter in front. */
  #isTurn!: boolean;

  /** `resumes`: whether the caller may take over its own owner's lease without waiting for its turn. */
  constructor(core: Core, inner: LeaseForm, queue: Queue, resumes: boolean) {
    const own: Partial<LeaseForm> = {
      acquire: (grant, passed) => this.acquire(grant, passed),
      clear: (passed) => this.clear(passed),
      release: (ending) => this.release(ending),
      judge: (item, asking, detector) => this.judge(item, asking, detector),
      released: () => {
        inner.released?.();
        queue.released();
      },
    };
    this.form = Object.assign(Object.create(inner) as LeaseForm, own);
    this.core = core;
    this.queue = queue;
    this.#inner = inner;
    this.#resumes = resumes;
  }

  /** Takes over what an answer shows. */
  protected abstract learn(item: Item | undefined): void;

  /** The caller's next ticket, whose lease begins now. */
  protected abstract newTicket(): NewTicket;

  /** The caller's ticket; undefined while it has none. */
  protected get own(): QueueTicket | undefined {
    return this.#snapshot.tickets.find(({ id }) => id === this.ticketId);
  }

  /** The tickets in front of the caller's own; all tickets while it has none. */
  protected get ahead(): readonly QueueTicket[] {
    const number = this.own?.number ?? Number.POSITIVE_INFINITY;
    return this.#snapshot.tickets.filter((ticket) => ticket.number < number);
  }

  /** The tickets in front that may be passed. */
  protected get passable(): readonly QueueTicket[] {
    const { ahead } = this;
    const passableIn = this.queue.passableIn(ahead);
    return ahead.filter((_, index) => passableIn[index] === 0);
  }

  /** Whether the caller and the first living waiter in front could have leases at the same time. */
  protected get mayJoinFirst(): boolean {
    const [first] = this.queue.living(this.ahead);
    const shapes = [first?.shape ?? "", this.form.shape ?? ""];
    return first !== undefined && this.#inner.mayJoin?.(undefined, shapes, this.core.detector) === true;
  }

  /**
   * The caller's position and its expected wait. Leases that share an item end one after the other, in the order in
   * which they began.
   */
  protected get estimate(): QueueEstimate {
    const { item } = this.#snapshot;
    const position = 1 + this.ahead.length - this.passable.length;
    const leases = this.#inner.leasesIn(item);
    const leaseCount = Math.max(1, leases.length);
    const holder = leases[(position - 1) % leaseCount];
    const heldMs = holder && Math.max(0, this.core.clock.now() - holder.acquiredAt);
    return { position, round: Math.ceil(position / leaseCount), holds: holdNoteIn(item), heldMs };
  }

  acquire(grant: Grant, passed: readonly LeaseRecord[]): Write {
    const write = this.#inner.acquire(grant, passed);
    if (passed.some((lease) => this.#isReturn(lease, grant))) return write;
    // A try that only recognises an own write may land late: it must not take another waiter's turn.
    const tickets = this.passable.slice(0, removalsBeside(passed));
    return inTurn(write, this.#isTurn ? this.own : undefined, tickets, this.queue.passingOver(tickets));
  }

  /** Removes the expired tickets that the acquiring write cannot remove. */
  clear(passed: readonly LeaseRecord[]): readonly Write[] {
    const { passable } = this;
    const writes = [...(this.#inner.clear?.(passed) ?? [])];
    for (let from = removalsBeside(passed); from < passable.length; from += removalsPerWrite) {
      const tickets = passable.slice(from, from + removalsPerWrite);
      writes.push(removeTickets(this.queue, tickets, this.queue.passingOver(tickets)));
    }
    return writes;
  }

  /** Also notes how long holders keep the lease. */
  release(ending: Ending): Write {
    const write = this.#inner.release(ending);
    if (this.grantedAt === undefined) return write;
    const { fencingToken, acquiredAt } = ending.shown;
    const { cooldown } = ending;
    const cooldownMs = cooldown === undefined ? 0 : cooldown.until - acquiredAt;
    const endedAt = this.core.clock.isTold ? (cooldown?.until ?? ending.now) : undefined;
    const heldMs = Math.max(this.core.clock.monotonic() - this.grantedAt, cooldownMs);
    const estimate = estimateAfter(holdNoteIn(this.#snapshot.item), heldMs);
    const note = holdText({ ...estimate, fencingToken, endedAt });
    return write.and(holdsNoted, { ":holds": note });
  }

  /** When the caller can acquire the lease in its turn, as the item shows it. */
  judge(
    item: Item | undefined,
    asking: { readonly owner: string; readonly resumes: boolean },
    detector: ExpiryDetector,
  ): Availability {
    const { queue } = this;
    const snapshot = queue.see(item);
    this.#snapshot = snapshot;
    const availability = this.#inner.judge(item, asking, detector);
    // An owner that takes over its own lease does not wait for its turn: nobody else could have that lease.
    if (availability.takeovers.some(({ from }) => this.#isReturn(from, asking))) return availability;

    const first = snapshot.tickets.slice(0, 1);
    const isFree = this.#mayJoin(availability, item, first, first.length === 0);
    const expired = availability.takeovers.map(({ from }) => from);
    const areComparable = expired.length > 0 && !expired.some(({ ownClock }) => ownClock);
    const lastExpiry = Math.max(...expired.map(({ expiresAt }) => expiresAt));
    queue.seeFree(isFree, item, areComparable ? lastExpiry + this.core.times.clockSkewMs : undefined);

    const living = queue.living(this.ahead);
    const mayJoin = this.#mayJoin(availability, item, living, true);
    this.#isTurn = mayJoin || living.length === 0;
    if (mayJoin) return availability;
    const { blocker, claimableInMs } = availability;
    const passableIn = queue.passableIn(this.ahead);
    return { blocker, claimableInMs: Math.max(claimableInMs, ...passableIn), takeovers: [] };
  }

  protected ticket(terms: Omit<TicketTerms, "until" | "ownClock" | "shape">): NewTicket {
    const { clock } = this.core;
    const until = clock.now() + terms.leaseMs;
    const text = ticketText({ ...terms, until, ownClock: !clock.isTold, shape: this.form.shape });
    return { id: this.ticketId, text, until };
  }

  /** Joins the line. Throws QueueFullError. */
  protected joining(maxWaiters: number): Write {
    const { clock, times } = this.core;
    const { passable } = this;
    const free = this.queue.passingOver(removable(passable));
    const terms = { maxWaiters, retentionMs: times.retentionMs, now: clock.now(), free };
    return joinIfRoom(this.queue, this.#snapshot, passable, this.newTicket(), terms);
  }

  protected async send(write: Write, budget?: CallBudget): Promise<void> {
    this.learn((await this.core.update(write, budget)).item);
  }

  /** Whether the given waiters could have leases at the same time; including the caller if `withCaller`. */
  #mayJoin(
    { claimableInMs }: Availability,
    item: Item | undefined,
    tickets: readonly QueueTicket[],
    withCaller: boolean,
  ): boolean {
    const asking = withCaller ? [...tickets, this.form] : tickets;
    const asked = asking.map(({ shape = "" }) => shape);
    if (this.#inner.mayJoin === undefined) return claimableInMs <= 0 && asked.length <= 1;
    return this.#inner.mayJoin(item, asked, this.core.detector);
  }

  /**
   * Whether an owner takes over its own unexpired lease. For an expired lease it waits for its turn, as all callers do.
   */
  #isReturn(lease: LeaseRecord, { owner }: { readonly owner: string }): boolean {
    return this.#resumes && isOpenTo(lease, owner) && this.core.clock.now() < lease.expiresAt;
  }
}
