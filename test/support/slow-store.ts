import {
  type CallOptions,
  LeaseServiceError,
  type LeaseStore,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import { type ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";

interface Waiting {
  readonly writes: number;
  readonly isWanted: () => boolean;
  readonly serve: () => void;
}

/**
 * A table that serves a known number of writes in a second, on a clock that stands still until it is moved.
 *
 * As with the SDK, requests go over a number of connections, and wait for one in the order of their sending; the
 * service shares its time among the connections. A batch of 25 writes takes as long as 25 single writes.
 */
export class SlowStore extends MemoryLeaseStore implements LeaseStore {
  readonly #clock: ManualClock;
  readonly writesPerSecond: number;
  readonly #connections: number;
  readonly #queue: Waiting[] = [];
  /** By connection: what is being served, and how many writes of it are left. */
  readonly #served: { readonly request: Waiting; left: number }[] = [];
  #isTicking = false;
  /** How many requests were sent for each method. */
  readonly sent = { update: 0, updateMany: 0 };
  /** The most requests that waited for a connection at one time. */
  longestQueue = 0;

  constructor(clock: ManualClock, writesPerSecond: number, connections = 50) {
    super();
    this.#clock = clock;
    this.writesPerSecond = writesPerSecond;
    this.#connections = connections;
  }

  override update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult> {
    this.sent.update += 1;
    return this.#send(1, options, () => this.updateNow(request));
  }

  override updateMany(requests: readonly UpdateRequest[], options: CallOptions): Promise<UpdateResult[]> {
    this.sent.updateMany += 1;
    return this.#send(requests.length, options, () => requests.map((request) => this.updateNow(request)));
  }

  #send<Result>(writes: number, { signal, isCurrent }: CallOptions, apply: () => Result): Promise<Result> {
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new LeaseServiceError("LEASE_NO_ANSWER", "cut off")));
      const isWanted = (): boolean => !signal.aborted && isCurrent();
      this.#queue.push({ writes, isWanted, serve: () => resolve(apply()) });
      this.#connect();
      this.longestQueue = Math.max(this.longestQueue, this.#queue.length);
      this.#tick();
    });
  }

  #connect(): void {
    while (this.#served.length < this.#connections) {
      const request = this.#queue.shift();
      if (request === undefined) return;
      // What was cut off while it waited for a connection is never sent.
      if (request.isWanted()) this.#served.push({ request, left: request.writes });
    }
  }

  /** One write at a time, taken from each connection in turn. */
  #tick(): void {
    if (this.#isTicking || this.#served.length === 0) return;
    this.#isTicking = true;
    this.#clock.schedule(() => {
      this.#isTicking = false;
      const next = this.#served.shift();
      if (next !== undefined) {
        next.left -= 1;
        if (next.left > 0) this.#served.push(next);
        else next.request.serve();
      }
      this.#connect();
      this.#tick();
    }, 1_000 / this.writesPerSecond);
  }
}
