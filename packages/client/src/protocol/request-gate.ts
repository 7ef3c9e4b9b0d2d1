import { LeaseServiceError } from "../errors/errors.ts";
import type { Clock } from "../time/clock.ts";
import { onAbort } from "../time/on-abort.ts";
import { PriorityQueue } from "./priority-queue.ts";

/**
 * By default the SDK has 50 connections, and further requests wait for one in the order of their sending: there a
 * renewal would wait behind everything else.
 */
const mostRequests = 48;
/** Of these, at most so many are under way when another one than a renewal is sent, while there are renewals. */
const mostBesideRenewals = 32;
/** In the order of what waits: behind every renewal, whose priority is a time, and before every other request. */
const givingBack = Number.MAX_VALUE;
const anyOther = Number.POSITIVE_INFINITY;
/** A request that waits is given up when the service has served none of its kind for so long. */
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
 * Bounds how many requests of a client are under way, and sends renewals first.
 *
 * Renewals go in the order of their leases' deadlines. What gives something back follows: it lets others in. Then come all
 * others. Both go in the order of their arrival. When the service becomes slow, renewals take the room of the others.
 */
export class RequestGate {
  readonly #clock: Clock;
  /** Renewals by their leases' deadlines, the others behind them. Made when a request has to wait for the first time. */
  #waiting: PriorityQueue<Waiter> | undefined;
  #underWay = 0;
  /** When a request that is no renewal was served last, while others waited; on the monotonic clock. */
  #servedAt = Number.NEGATIVE_INFINITY;
  /** How many requests may be under way when another one than a renewal is sent. */
  #mostOthers = mostBesideRenewals;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sends a request that renews leases, of which the first ends at `deadline`. Rejects with the signal's reason. */
  async renew<T>(deadline: number, signal: AbortSignal | undefined, send: () => Promise<T>): Promise<T> {
    if (!this.#admit(true)) await this.#wait(deadline, true, signal);
    try {
      return await send();
    } finally {
      this.#makeRoom();
    }
  }

  /** Sends another request, as {@link RequestGate.enter} admits it, and tells it how much of `withinMs` is left. */
  async pass<T>({ signal, withinMs }: GateOptions, send: (leftMs: number) => Promise<T>): Promise<T> {
    const entered = this.enter(withinMs, signal);
    const waitedMs = typeof entered === "number" ? entered : await entered;
    return await this.#sent(() => send(withinMs - waitedMs));
  }

  /**
   * Sends what gives a lease or a ticket back. No caller waits for less: it is given up only when the service serves
   * nothing. Rejects with LeaseServiceError then, and nothing was sent.
   */
  async giveBack<T>(send: () => Promise<T>): Promise<T> {
    if (!this.#admit(false)) {
      await this.#waitBehindRenewals(undefined, Number.POSITIVE_INFINITY, givingBack);
    }
    return await this.#sent(send);
  }

  /** Keeps no room for renewals any more: the client is closed, and there are none. */
  endRenewals(): void {
    this.#mostOthers = mostRequests;
    this.#letGo();
  }

  /**
   * Lets another request than a renewal in: at once where there is room, else once there is. Gives for how long it has
   * waited, in milliseconds; `leave` has to follow.
   *
   * Rejects with the signal's reason, and with LeaseServiceError when it has waited for too long; then nothing was sent.
   */
  enter(withinMs: number, signal: AbortSignal | undefined): number | Promise<number> {
    return this.#admit(false) ? 0 : this.#waitBehindRenewals(signal, withinMs, anyOther);
  }

  /** Ends a request that was let in, with the error that it met, if it met one. */
  leave(failure: unknown): void {
    // Any error but the service's says that the service has answered.
    const isServed = !(failure instanceof LeaseServiceError);
    if (isServed && (this.#waiting?.size ?? 0) > 0) this.#servedAt = this.#clock.monotonic();
    this.#makeRoom();
  }

  /** Takes room where there is some. It overtakes no earlier request: while one of its kind waits, there is none. */
  #admit(isRenewal: boolean): boolean {
    const mayGo = this.#underWay < this.#limitOf(isRenewal);
    if (mayGo) this.#underWay += 1;
    return mayGo;
  }

  #limitOf(isRenewal: boolean): number {
    return isRenewal ? mostRequests : this.#mostOthers;
  }

  /** Sends a request that was let in. */
  async #sent<T>(send: () => Promise<T>): Promise<T> {
    let failure: unknown;
    try {
      return await send();
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
    const tooLong = new AbortController();
    let cancel: () => void = () => undefined;
    const look = (): void => {
      const now = clock.monotonic();
      const until = Math.min(since + withinMs, Math.max(since, this.#servedAt) + longestStallMs);
      if (now >= until) tooLong.abort(notSent(now - since));
      else cancel = clock.schedule(look, until - now);
    };
    look();
    try {
      const either = signal === undefined ? tooLong.signal : AbortSignal.any([signal, tooLong.signal]);
      await this.#wait(priority, false, either);
    } finally {
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
