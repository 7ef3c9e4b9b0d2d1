import type { ClientInternals } from "../client-internals.ts";
import { LeaseServiceError, LeaseUnavailableError } from "../errors/errors.ts";
import type { Lease } from "../lease.ts";
import type { AcquisitionTerms } from "../options/check-options.ts";
import type { WaitOptions } from "../options/options.ts";
import { callBudgetMs, shortestBudgetMs } from "../protocol/context.ts";
import { permitPlace } from "../schema-semaphore.ts";
import { bounded } from "../time/bounded.ts";
import { sleep } from "../time/clock.ts";
import { retryDelayMs } from "../time/retry.ts";
import type { PermitMemory } from "./permit-memory.ts";
import type { PermitWatch } from "./permit-watch.ts";
import type { Survey } from "./survey.ts";

/** How many permits are tried after one look; each refusal means that somebody else was quicker. */
const triesPerLook = 4;

/** How often a caller looks again at once, where others were quicker but permits are left. */
const looksAtOnce = 3;

/**
 * After N was lowered, a look is good for no longer than this: a process may freeze over it, and a holder that seems dead
 * when it wakes may have renewed meanwhile, and would not be counted.
 */
const longestLookMs = 1_000;

/** What the callers of one Semaphore object share. */
export interface Scene {
  readonly key: string;
  readonly permits: number;
  readonly client: ClientInternals;
  readonly memory: PermitMemory;
  readonly watch: PermitWatch;
}

/** What is known before a rest. */
export interface Prospect {
  /** 1 for the first look. */
  readonly looks: number;
  /** When an attempt can hope to succeed if nothing changes; infinite where the last round has told nothing. */
  readonly claimableInMs: number;
  readonly leftMs: number;
}

/** How a search rests before its next look. Tells whether the permit that was released here last may be tried without. */
export type Rest = (prospect: Prospect) => Promise<boolean>;

/**
 * One caller's search for a permit: tries one blindly, then looks at all of them and goes for one that can be taken,
 * until one is its own or its patience is over.
 *
 * Between attempts it looks with reads that may lag: one query, however many permits there are.
 */
export class PermitSearch {
  readonly #scene: Scene;
  readonly #terms: AcquisitionTerms;
  readonly #deadline: number;
  #survey: Survey | undefined;
  /** Why the last round has told nothing. */
  #failure: LeaseServiceError | undefined;

  constructor(scene: Scene, terms: AcquisitionTerms) {
    this.#scene = scene;
    this.#terms = terms;
    this.#deadline = scene.client.context.clock.monotonic() + terms.waitMs;
  }

  /**
   * Gives the lease of a permit; `first` is tried before everything else.
   *
   * Rejects with LeaseUnavailableError, with the service's error if that is what the last round ended with, or with
   * the signal's reason. Nothing stays held then.
   */
  async find(first?: number): Promise<Lease> {
    return (await this.attempt(first)) ?? (await this.persist((prospect) => this.#pause(prospect)));
  }

  /** Goes for a permit without waiting; undefined where none is to be had, or the service fails in a way that may pass. */
  async attempt(first?: number): Promise<Lease | undefined> {
    return await this.#patiently(() => this.#begin(first));
  }

  /** As `find`, but begins with a rest, and looks before every attempt. */
  async persist(rest: Rest): Promise<Lease> {
    for (let looks = 1; ; looks += 1) {
      const leftMs = this.#leftMs();
      if (leftMs <= 0) throw this.refusal();
      const claimableInMs = this.#failure ? Number.POSITIVE_INFINITY : this.#claimableInMs();
      const isReleased = await rest({ looks, claimableInMs, leftMs });
      const lease = await this.#patiently(() => this.#again(isReleased));
      if (lease !== undefined) return lease;
    }
  }

  /** Enters the permit that the same owner has: `known`, or the one that a look shows; undefined where it has none. */
  async resume(known?: number): Promise<Lease | undefined> {
    return await this.#patiently(async () => {
      const own = known ?? (await this.#look(true)).heldBy(this.#terms.owner, this.#now());
      return own === undefined ? undefined : await this.#try(own);
    });
  }

  /** Why there is none: the service's error if that is what the last round ended with. */
  refusal(): Error {
    return this.#failure ?? this.#unavailable();
  }

  /** Looks once more, to tell of the permit whose end lets the next one in; `otherwise` where some are free. */
  async explain(otherwise: LeaseUnavailableError): Promise<LeaseUnavailableError> {
    let isFull = false;
    await this.#patiently(async () => {
      isFull = (await this.#look(false)).nextToEnd(this.#now()) !== undefined;
      return undefined;
    });
    return isFull ? this.#unavailable() : otherwise;
  }

  async #begin(first: number | undefined): Promise<Lease | undefined> {
    const { memory } = this.#scene;
    const looksFirst = this.#terms.reentrant || memory.mustLook;
    const choice = first ?? (looksFirst ? undefined : memory.firstChoice(this.#fraction()));
    let lease = choice === undefined ? undefined : await this.#try(choice);
    for (let looks = 0; lease === undefined && looks < looksAtOnce; looks += 1) {
      lease = await this.#lookAndTry(true);
      if (!this.#hasCandidates()) break;
    }
    return lease;
  }

  async #again(isReleased: boolean): Promise<Lease | undefined> {
    const { memory } = this.#scene;
    const released = isReleased && !memory.mustLook ? memory.takeReleased() : undefined;
    const lease = released === undefined ? undefined : await this.#try(released);
    return lease ?? (await this.#lookAndTry(memory.mustLook));
  }

  async #look(consistent: boolean): Promise<Survey> {
    const { watch, memory } = this.#scene;
    const budgetMs = Math.min(this.#budgetMs(), callBudgetMs);
    const { signal } = this.#terms;
    const sentAt = this.#now();
    const held = await watch.read({ consistent, budgetMs, signal });
    if (watch.hasBeyond(held) && this.#now() - sentAt > longestLookMs) throw tooOld(this.#scene.key);
    const survey = watch.survey(held);
    this.#survey = survey;
    const isCrowded = survey.isCrowded(this.#now());
    if (isCrowded || consistent) memory.mustLook = isCrowded;
    return survey;
  }

  async #lookAndTry(consistent: boolean): Promise<Lease | undefined> {
    const { memory } = this.#scene;
    const { reentrant, owner } = this.#terms;
    const survey = await this.#look(consistent);
    const now = this.#now();
    const own = reentrant ? survey.heldBy(owner, now) : undefined;
    const resumed = own === undefined ? undefined : await this.#try(own);
    if (resumed !== undefined) return resumed;

    const { free, over } = survey.candidates(now);
    const tried = new Set<number>();
    for (let tries = 0; tries < triesPerLook; tries += 1) {
      const isLeft = (permit: number): boolean => !tried.has(permit);
      const permit =
        memory.choose(free.filter(isLeft), this.#fraction()) ??
        memory.choose(over.filter(isLeft), this.#fraction());
      if (permit === undefined) return undefined;
      tried.add(permit);
      const lease = await this.#try(permit);
      if (lease !== undefined) return lease;
    }
    return undefined;
  }

  /** Tries one permit without waiting for it: 1 request, or 2 when its holder's time is over. */
  async #try(permit: number): Promise<Lease | undefined> {
    const { key, client, memory, watch } = this.#scene;
    const { owner, leaseDurationMs, heartbeatMs, data, lockAtLeastForMs, reentrant } = this.#terms;
    const options = { owner, leaseDurationMs, data, lockAtLeastForMs, reentrant, heartbeat: heartbeatMs };
    memory.tries(permit);
    let lease: Lease | undefined;
    try {
      lease = await this.#bounded((bound) =>
        client.acquireAt(key, permitPlace(permit), given(options, bound)),
      );
    } catch (error) {
      if (!(error instanceof LeaseUnavailableError)) throw error;
      watch.note(permit, error);
      this.#survey?.note(permit, error, this.#now());
    } finally {
      memory.tried(permit, lease);
    }
    return lease;
  }

  /** Runs an attempt that is given up when the caller's patience is over, but not before it had a fair chance. */
  async #bounded<T>(attempt: (signal: AbortSignal | undefined) => Promise<T>): Promise<T> {
    const { signal } = this.#terms;
    const budgetMs = this.#budgetMs();
    if (budgetMs >= callBudgetMs) return await attempt(signal);
    return await bounded(this.#scene.client.context.clock, budgetMs, signal, attempt);
  }

  /** Takes a round that failed for one that has told nothing, where the failure may pass. */
  async #patiently(round: () => Promise<Lease | undefined>): Promise<Lease | undefined> {
    this.#failure = undefined;
    try {
      return await round();
    } catch (error) {
      this.#terms.signal?.throwIfAborted();
      if (!(error instanceof LeaseServiceError && error.retryable)) throw error;
      this.#failure = error;
      return undefined;
    }
  }

  #hasCandidates(): boolean {
    const candidates = this.#survey?.candidates(this.#now());
    return candidates !== undefined && candidates.free.length + candidates.over.length > 0;
  }

  async #pause({ looks, claimableInMs, leftMs }: Prospect): Promise<boolean> {
    const { clock } = this.#scene.client.context;
    const fraction = this.#fraction();
    const delayMs = retryDelayMs(this.#terms.retry, { attempt: looks, claimableInMs, fraction });
    await sleep(clock, Math.min(delayMs, leftMs), this.#terms.signal);
    return false;
  }

  #claimableInMs(): number {
    const now = this.#now();
    return Math.max(0, (this.#survey?.nextToEnd(now)?.claimableAt ?? now) - now);
  }

  #unavailable(): LeaseUnavailableError {
    const holding = this.#survey?.nextToEnd(this.#now());
    const { key, permits } = this.#scene;
    const semaphore = `of the ${permits} permits of the semaphore ${JSON.stringify(key)}`;
    const what =
      holding === undefined ? `one ${semaphore} is` : `none ${semaphore} is free, and the next to end is`;
    const { waitMs: waitedMs } = this.#terms;
    return new LeaseUnavailableError(key, holding, Math.ceil(this.#claimableInMs()), { what, waitedMs });
  }

  #now(): number {
    return this.#scene.client.context.clock.monotonic();
  }

  #fraction(): number {
    return this.#scene.client.context.randomness.fraction();
  }

  #leftMs(): number {
    return this.#deadline - this.#now();
  }

  #budgetMs(): number {
    return this.#terms.waitMs > 0 ? Math.max(this.#leftMs(), shortestBudgetMs) : callBudgetMs;
  }
}

function tooOld(key: string): LeaseServiceError {
  return new LeaseServiceError(
    "LEASE_NO_ANSWER",
    `the look at the permits of ${JSON.stringify(key)} took longer than ${longestLookMs} ms: try again`,
  );
}

/** Leaves out what was not given, for an option that is undefined is not one that is absent. */
function given(
  { heartbeat, ...options }: Omit<WaitOptions, "heartbeat" | "signal"> & { heartbeat: number | undefined },
  signal: AbortSignal | undefined,
): WaitOptions {
  return {
    ...options,
    ...(heartbeat === undefined ? {} : { heartbeat }),
    ...(signal === undefined ? {} : { signal }),
  };
}
