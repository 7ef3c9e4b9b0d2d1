import type { LeaseClient } from "../client.ts";
import { internalsOf } from "../client-internals.ts";
import { untilAborted } from "../errors/aborted.ts";
import { LeaseUnavailableError } from "../errors/errors.ts";
import type { WaitingCaller } from "../fair/queue.ts";
import { type Lease, runUnder } from "../lease.ts";
import { checkKey, checkWork } from "../options/check-values.ts";
import { OwnLeases } from "../own-leases.ts";
import type { LeaseRecord } from "../record.ts";
import { permitNumber } from "../schema-semaphore.ts";
import { FairSearch } from "./fair-search.ts";
import {
  checkPermitOptions,
  checkSemaphoreOptions,
  type PermitOptions,
  type PermitTerms,
  type SemaphoreOptions,
  type TryPermitOptions,
} from "./options.ts";
import { PermitMemory } from "./permit-memory.ts";
import { PermitSearch, type Scene } from "./permit-search.ts";
import { PermitWatch } from "./permit-watch.ts";
import { Turnstile } from "./turnstile.ts";

/** What a look at a semaphore shows. */
export interface SemaphoreState {
  /** How many permits this object gives. */
  readonly permits: number;
  /**
   * Every lease that has not been released, in the order of the permits: also one that has expired, and one of a
   * permit beyond `permits`. The permit is its `place`.
   */
  readonly held: readonly LeaseRecord[];
  /** How many permits could be taken at this moment: those that nobody holds and those whose holders' time is over. */
  readonly free: number;
  /** Those who wait fairly, in the order of their turns; undefined where the object is not fair, which does not look. */
  readonly waiting?: readonly WaitingCaller[];
}

/**
 * Lets at most N callers in at once.
 *
 * Each permit is a lease of its own at `permit#000`, `permit#001` and so on under the key: with its own token,
 * deadline, heartbeat and fencing token, and taken over when its holder is dead. Promised, while clocks differ by no
 * more than `clockSkewMs`: each permit has at most one unexpired holder, and nobody is given a permit beyond its own
 * N. Fencing tokens grow for each permit, not across them: fence what belongs to one permit, such as its share of a
 * resource, by its own number. Not promised, unless it is `fair`: an order among those who wait.
 *
 * N may differ between callers, as while it is being changed. Each goes by its own: there are never more holders than
 * the largest N in use. A caller with a smaller N counts the holders of permits beyond it, as long as their leases
 * stand, whenever it looks: then it takes a permit only if no more than its N are held with it. It looks when an
 * attempt has been refused, and before every attempt while the last look has shown such a holder; with `strict` also
 * before its first one. So after lowering N from 5 to 3 while 5 are held, strict callers get nothing until at most 2
 * are. A caller with a larger N takes the added permits at once.
 *
 * With `fair`, callers are let in as they came: those who have to wait do so in a queue of bounded length, each knows its
 * place, and those who die there are passed over. Promised: nobody who comes by a fair object is let in before a waiter
 * whose place was there before it came and stands. The number of holders does not rest on the queue.
 *
 * Make one object for each key and keep it: it remembers which permits are its own, and which may be free.
 *
 * Every method rejects with InvalidOptionsError before it sends anything, with LeaseTableError,
 * LeaseConfigurationError and LeaseServiceError.
 *
 * ```ts
 * const reports = new Semaphore(client, "report-database", { permits: 5 });
 * await reports.withPermit({ waitMs: 10_000, heartbeat: true }, async (lease) => {
 *   await runReport({ signal: lease.signal });
 * });
 * ```
 */
export class Semaphore {
  /** The key that its permits are under. */
  readonly key: string;
  /** How many may hold a permit at once, as this object sees it. */
  readonly permits: number;
  /** How many may wait in turn, as this object sees it; undefined where it is not fair. */
  readonly maxWaiters: number | undefined;
  readonly #scene: Scene;
  /** Undefined where it is not fair. */
  readonly #turnstile: Turnstile | undefined;
  readonly #owned: OwnLeases;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, key: string, options: SemaphoreOptions) {
    const made = internalsOf(client);
    this.key = checkKey(key);
    this.#owned = new OwnLeases(key, made.context.clock);
    const { permits, strict, maxWaiters } = checkSemaphoreOptions(options);
    this.permits = permits;
    this.maxWaiters = maxWaiters;
    this.#turnstile = maxWaiters === undefined ? undefined : new Turnstile(made, key);
    this.#scene = {
      key,
      permits,
      client: made,
      memory: new PermitMemory(permits, strict),
      watch: new PermitWatch(made.context, key, permits),
    };
  }

  /**
   * Acquires a permit, waiting up to `waitMs` for one.
   *
   * 1 request where the first permit that is tried is free: the one that was released here last, or a random one.
   * 2 more where it is not but another is; 1 more to take over from a holder whose time is over. 2 requests to learn
   * that all are held; while it waits, 1 read for each look, however many permits there are. With `fair` 1 read more, to
   * see whether others wait, and 2 writes where they do; then those of a fair lock's queue, until its turn comes.
   *
   * `reentrant` lets the same owner into its own permit: without a request where this object has it, otherwise a look
   * comes first. Rejects with {@link LeaseUnavailableError}, which tells of the permit whose end lets the next caller
   * in, and with LeaseAbortedError when the signal aborts; a fair one with QueueFullError when as many wait as may, and with
   * LeaseUnavailableError at once where `waitMs` is 0 and others wait. In every case of failure nothing stays held.
   */
  async acquire(options: PermitOptions = {}): Promise<Lease> {
    return await this.#acquire(options, true);
  }

  /** Like {@link Semaphore.acquire}, but never waits, and gives undefined when no permit is to be had. */
  async tryAcquire(options: TryPermitOptions = {}): Promise<Lease | undefined> {
    try {
      return await this.#acquire(options, false);
    } catch (error) {
      if (error instanceof LeaseUnavailableError) return undefined;
      throw error;
    }
  }

  /**
   * Acquires a permit, runs the work, and releases the permit whatever becomes of the work.
   *
   * Resolves to the work's result if the lease protected it to its end, or was revoked; rejects with LeaseLostError if
   * it did not, for then one more than N may have been at work: also where nothing but the release finds that it was
   * broken meanwhile. The work's own error comes first. A release that fails does not hide the result: the permit frees
   * itself when the lease ends.
   */
  async withPermit<T>(options: PermitOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    checkWork(work);
    return await runUnder(await this.acquire(options), work);
  }

  /** Reads who holds permits. 1 consistent read of all of them; with `fair` another one, of those who wait. */
  async inspect(): Promise<SemaphoreState> {
    const { watch, client } = this.#scene;
    const [held, seen] = await Promise.all([watch.read({ consistent: true }), this.#turnstile?.look()]);
    const free = watch.survey(held).freeAt(client.context.clock.monotonic());
    const state = { permits: this.permits, held, free };
    return seen === undefined ? state : { ...state, waiting: seen.waiting };
  }

  async #acquire(options: PermitOptions, mayWait: boolean): Promise<Lease> {
    const { terms, fair } = checkPermitOptions(options, mayWait, this.maxWaiters, this.#scene.client);
    const { lifecycle } = this.#scene.client.context;
    return await untilAborted(this.key, terms.signal, () =>
      lifecycle.run(terms.signal, (signal) => this.#find({ terms: { ...terms, signal }, fair })),
    );
  }

  async #find({ terms, fair }: PermitTerms): Promise<Lease> {
    const turnstile = this.#turnstile;
    const search =
      fair === undefined || turnstile === undefined
        ? new PermitSearch(this.#scene, terms)
        : new FairSearch({ ...this.#scene, turnstile }, terms, fair);
    if (!terms.reentrant) return await search.find();
    return await this.#owned.enter(
      terms,
      () => search.find(),
      (lease) => search.find(permitNumber(lease.toJSON().sortKey ?? "")),
    );
  }
}
