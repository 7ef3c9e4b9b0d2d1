import type { ProtocolContext } from "../protocol/context.ts";
import type { ExpiryDetector } from "../protocol/expiry-detector.ts";
import { estimateAfter } from "../protocol/hold-estimate.ts";
import {
  type Cancellation,
  type Ending,
  type Grant,
  type LeaseForm,
  leaseOf,
  type Prospect,
  type Renewal,
} from "../protocol/lease-form.ts";
import { isOpenTo, type LeaseRecord } from "../record.ts";
import type { Condition, Write } from "../store/write.ts";
import type { Item } from "../store.ts";
import type { LocalWaiters } from "./local-waiters.ts";
import type { QueueEstimate } from "./queue-estimate.ts";
import type { QueueSnapshot } from "./queue-reader.ts";
import { holdText, type QueueTicket } from "./queue-ticket.ts";
import { inTurn, noteHold, removable, type Turn } from "./queue-writes.ts";

/**
 * A lease's form with a line of waiters in its item: taking the lease, leaving the line and passing expired tickets are one
 * write. So everything that the protocol does about lost and late answers holds for the line, too.
 *
 * One for each caller: it knows that caller's position.
 */
export class QueuedForm implements LeaseForm {
  readonly key: string;
  readonly sortKey: string;
  readonly shareKey?: string;
  readonly shape?: string;
  readonly describe?: (blocker: LeaseRecord | undefined) => string;
  /** The id of the caller's ticket, whether it has one or not. To be set before the first judgement. */
  ticketId = "";
  /** When the caller got the lease, on the monotonic clock. */
  grantedAt: number | undefined;
  readonly #context: ProtocolContext;
  readonly #inner: LeaseForm;
  readonly #waiters: LocalWaiters;
  readonly #resumes: boolean;
  #snapshot: QueueSnapshot;

  /** `resumes`: whether the caller may come back to a lease of its own owner without waiting for its turn. */
  constructor(context: ProtocolContext, inner: LeaseForm, waiters: LocalWaiters, resumes: boolean) {
    this.key = inner.key;
    this.sortKey = inner.sortKey;
    if (inner.shareKey !== undefined) this.shareKey = inner.shareKey;
    if (inner.shape !== undefined) this.shape = inner.shape;
    if (inner.describe !== undefined) this.describe = inner.describe.bind(inner);
    this.#resumes = resumes;
    this.#context = context;
    this.#inner = inner;
    this.#waiters = waiters;
    this.#snapshot = waiters.reader.see(undefined);
  }

  get snapshot(): QueueSnapshot {
    return this.#snapshot;
  }

  /** The caller's ticket; undefined while it has none. */
  get own(): QueueTicket | undefined {
    return this.#snapshot.tickets.find(({ id }) => id === this.ticketId);
  }

  /** The tickets in front of the caller's own, or all while it has none. */
  get ahead(): readonly QueueTicket[] {
    const number = this.own?.number ?? Number.POSITIVE_INFINITY;
    return this.#snapshot.tickets.filter((ticket) => ticket.number < number);
  }

  /** The tickets in front that may be passed. */
  get passable(): readonly QueueTicket[] {
    return this.ahead.filter((ticket) => !this.#waiters.reader.isLiving(ticket));
  }

  /** The caller's position, and what the snapshot lets it expect: leases side by side end in the order of their age. */
  get estimate(): QueueEstimate {
    const { item, holds } = this.#snapshot;
    const position = 1 + this.ahead.length - this.passable.length;
    const leases = [...this.#inner.leasesIn(item)].sort((one, other) => one.acquiredAt - other.acquiredAt);
    const beside = Math.max(1, leases.length);
    const holder = leases[(position - 1) % beside];
    const heldMs = holder && Math.max(0, this.#context.clock.now() - holder.acquiredAt);
    return { position, round: Math.ceil(position / beside), holds, heldMs };
  }

  acquire(grant: Grant, passed: readonly LeaseRecord[]): Write {
    const write = this.#inner.acquire(grant, passed);
    return passed.some((lease) => this.#isReturn(lease, grant)) ? write : inTurn(write, this.#turn());
  }

  renew(renewal: Renewal): Write {
    return this.#inner.renew(renewal);
  }

  release(ending: Ending): Write {
    const write = this.#inner.release(ending);
    if (this.grantedAt === undefined) return write;
    const { fencingToken, acquiredAt } = ending.shown;
    const endedAt = ending.cooldown?.until ?? ending.now;
    const heldMs = this.#context.clock.monotonic() - this.grantedAt;
    const closedMs = ending.cooldown === undefined ? 0 : endedAt - acquiredAt;
    const holds = estimateAfter(this.#snapshot.holds, Math.max(heldMs, closedMs));
    return noteHold(write, holdText({ ...holds, fencingToken, endedAt }));
  }

  cancel(cancellation: Cancellation): Write {
    return this.#inner.cancel(cancellation);
  }

  revoke(cancellation: Cancellation, passes: boolean): Write | undefined {
    return this.#inner.revoke(cancellation, passes);
  }

  clear(passed: readonly LeaseRecord[]): readonly Write[] {
    return this.#inner.clear?.(passed) ?? [];
  }

  proof(lease: LeaseRecord): readonly Condition[] {
    return this.#inner.proof(lease);
  }

  leaseIn(item: Item | undefined, token: string): LeaseRecord | undefined {
    return leaseOf(this.#inner, item, token);
  }

  leasesIn(item: Item | undefined): readonly LeaseRecord[] {
    return this.#inner.leasesIn(item);
  }

  /** What an item promises the caller in its turn. */
  judge(
    item: Item | undefined,
    caller: { readonly owner: string; readonly resumes: boolean },
    detector: ExpiryDetector,
  ): Prospect {
    const { reader } = this.#waiters;
    const snapshot = reader.see(item);
    this.#snapshot = snapshot;
    const prospect = this.#inner.judge(item, caller, detector);
    // An owner that comes back to a lease of its own, which nobody else could have, does not wait for its turn.
    if (prospect.takeovers.some(({ from }) => this.#isReturn(from, caller))) return prospect;

    const [first] = snapshot.tickets;
    const inFront = first === undefined ? [] : [first];
    const isVacant = this.#hasRoom(prospect, item, inFront, first === undefined);
    const expiries = prospect.takeovers.map(({ from }) => from.expiresAt + this.#context.clockSkewMs);
    reader.seeVacancy(isVacant, snapshot, expiries.length > 0 ? Math.max(...expiries) : undefined);

    const living = this.ahead.filter((ticket) => reader.isLiving(ticket));
    if (this.#hasRoom(prospect, item, living, true)) return prospect;
    const { blocker, claimableInMs } = prospect;
    const passableIn = living.map((ticket) => reader.passableIn(ticket));
    return { blocker, claimableInMs: Math.max(claimableInMs, ...passableIn), takeovers: [] };
  }

  confirmed(item: Item | undefined): void {
    this.#inner.confirmed?.(item);
  }

  released(): void {
    this.#inner.released?.();
    this.#waiters.released();
  }

  /** Whether the given waiters could have leases at once, the caller beside them if `withCaller`. */
  #hasRoom(
    { claimableInMs }: Prospect,
    item: Item | undefined,
    tickets: readonly QueueTicket[],
    withCaller: boolean,
  ): boolean {
    const isSoon = claimableInMs <= 0;
    const shapes = tickets.map(({ shape = "" }) => shape);
    const asked = withCaller ? [...shapes, this.shape ?? ""] : shapes;
    if (this.#inner.roomFor === undefined) return isSoon && asked.length <= 1;
    return (isSoon || !withCaller) && this.#inner.roomFor(item, asked, this.#context.detector);
  }

  #turn(): Turn {
    return { own: this.own, passed: removable(this.passable) };
  }

  /** Whether an owner comes back to its own lease while that lasts. One that has expired is taken in turn, as by everybody. */
  #isReturn(lease: LeaseRecord, { owner }: { readonly owner: string }): boolean {
    return this.#resumes && isOpenTo(lease, owner) && this.#context.clock.now() < lease.expiresAt;
  }
}
