import { onAbort } from "../base/abort.ts";
import type { Clock } from "../base/clock.ts";
import { LeaseServiceError } from "../base/errors.ts";
import { PriorityQueue } from "../base/priority-queue.ts";

/**
 * By default the SDK has 50 connections, and further requests wait for one in the order in which they were sent. There
 * a renewal would wait behind everything else.
 */
const mostRequests = 48;
/** While there are renewals, a request of another kind is sent only if fewer than this many are under way. */
const mostBesideRenewals = 32;
/** The order of the waiting requests: after every renewal, whose priority is a time, and before every other request. */
const givingBack = Number.MAX_VALUE;
const anyOther = Number.POSITIVE_INFINITY;
/** A waiting request is given up when the service has served none of its kind for this long. */
const longestStallMs = 10_000;

/** How long a request may wait until it is sent. */
export interface GateOptions {
  readonly signal: AbortSignal | undefined;
  readonly withinMs: number;
}

interface Waiter {
  readonly isRenewal: boolean;
  readonly go: () => void;
}

/**
 * Limits how many requests of a client are under way, and sends renewals first.
 *
 * Renewals go in the order of their leases' deadlines. Releases follow, because they let other callers in. All other
 * requests come last. Releases and other requests are each first in, first out. When the service becomes slow, renewals
 * take the room of the others.
 */
export class RequestGate {
  readonly #clock: Clock;
  /** Renewals by their leases' deadlines, then the others. Created when a request has to wait for the first time. */
  #waiting: PriorityQueue<Waiter> | undefined;
  #underWay = 0;
  /** When a request other than a renewal was last served while others waited; on the monotonic clock. */
  #servedAt = Number.NEGATIVE_INFINITY;
  /** How many requests may be under way when a request other than a renewal is sent. */
  #mostOthers = mostBesideRenewals;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sends a request that renews leases; the first of them ends at `deadline`. Rejects with the signal's reason. */
  async renew<T>(deadline: number, signal: AbortSignal | undefined, send: () => Promise<T>): Promise<T> {
    if (!this.#admit(true)) await this.#wait(deadline, true, signal);
    try {
      return await send();
    } finally {
      this.#makeRoom();
    }
  }

  /**
   * Sends a request other than a renewal, as {@link RequestGate.enter} admits it, and tells it how much of `withinMs`
   * is left.
   */
  pass<T>({ signal, withinMs }: GateOptions, send: (leftMs: number) => Promise<T>): Promise<T> {
    return this.#sent(this.enter(withinMs, signal), (waitedMs) => send(withinMs - waitedMs));
  }

  /**
   * Sends a request that gives back a lease or a ticket. It has no time limit of its own: it is given up only when the
   * service serves nothing. Then it rejects with LeaseServiceError, and nothing was sent.
   */
  giveBack<T>(send: () => Promise<T>): Promise<T> {
    return this.#sent(this.enter(Number.POSITIVE_INFINITY, undefined, givingBack), send);
  }

  /** Reserves no more room for renewals: the client is closed, and has none. */
  endRenewals(): void {
    this.#mostOthers = mostRequests;
    this.#letGo();
  }

  /**
   * Admits a request other than a renewal: now if there is room, otherwise when there is. Returns how long it has
   * waited, in milliseconds. The caller must call `leave` afterwards.
   *
   * Rejects with the signal's reason, and with LeaseServiceError when it has waited for too long; then nothing was
   * sent.
   */
  enter(
    withinMs: number,
    signal: AbortSignal | undefined,
    priority: number = anyOther,
  ): number | Promise<number> {
    return this.#admit(false) ? 0 : this.#waitBehindRenewals(signal, withinMs, priority);
  }

  /** Ends an admitted request, with its error if it had one. */
  leave(failure: unknown): void {
    // Every error except the service's shows that the service has answered.
    const isServed = !(failure instanceof LeaseServiceError);
    if (isServed && (this.#waiting?.size ?? 0) > 0) this.#servedAt = this.#clock.monotonic();
    this.#makeRoom();
  }

  /** Takes room if there is some. First in, first out: while a request of its kind waits, there is no room. */
  #admit(isRenewal: boolean): boolean {
    const mayGo = this.#underWay < this.#limitOf(isRenewal);
    if (mayGo) this.#underWay += 1;
    return mayGo;
  }

  #limitOf(isRenewal: boolean): number {
    return isRenewal ? mostRequests : this.#mostOthers;
  }

  /** Sends a request once it is admitted; tells it for how long it has waited. */
  async #sent<T>(entered: number | Promise<number>, send: (waitedMs: number) => Promise<T>): Promise<T> {
    const waitedMs = typeof entered === "number" ? entered : await entered;
    let failure: unknown;
    try {
      return await send(waitedMs);
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      this.leave(failure);
    }
  }

  #makeRoom(): void {
    this.#underWay -= 1;
    this.#letGo();
  }

  #letGo(): void {
    for (;;) {
      const next = this.#waiting?.first?.item;
      if (next === undefined || this.#underWay >= this.#limitOf(next.isRenewal)) return;
      this.#waiting?.delete(next);
      this.#underWay += 1;
      next.go();
    }
  }

  async #waitBehindRenewals(
    signal: AbortSignal | undefined,
    withinMs: number,
    priority: number,
  ): Promise<number> {
    const clock = this.#clock;
    const since = clock.monotonic();
    const over = new AbortController();
    let cancel: () => void = () => undefined;
    const look = (): void => {
      const now = clock.monotonic();
      const until = Math.min(since + withinMs, Math.max(since, this.#servedAt) + longestStallMs);
      if (now >= until) over.abort(notSent(now - since));
      else cancel = clock.schedule(look, until - now);
    };
    look();
    const ignore = onAbort(signal, (reason) => over.abort(reason));
    try {
      await this.#wait(priority, false, over.signal);
    } finally {
      ignore();
      cancel();
    }
    return clock.monotonic() - since;
  }

  /** Waits for room, and takes it. */
  #wait(priority: number, isRenewal: boolean, signal: AbortSignal | undefined): Promise<void> {
    this.#waiting ??= new PriorityQueue();
    const waiting = this.#waiting;
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        isRenewal,
        go() {
          ignore();
          resolve();
        },
      };
      waiting.set(waiter, priority);
      const ignore = onAbort(signal, (reason) => {
        waiting.delete(waiter);
        reject(reason);
      });
    });
  }
}

function notSent(waitedMs: number): LeaseServiceError {
  return new LeaseServiceError(
    "LEASE_THROTTLED",
    `the request was not sent: it waited ${Math.round(waitedMs)} ms behind renewals and earlier requests of this ` +
      "client, which the service did not answer in time; try again later, or acquire fewer leases at the same time",
  );
}
