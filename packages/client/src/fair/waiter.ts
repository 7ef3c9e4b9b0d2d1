import { LeaseServiceError, LeaseUnavailableError } from "../errors.ts";
import { join, leave, passOver } from "../expressions-fair.ts";
import type { Acquisition, Granted } from "../protocol/acquisition.ts";
import { callBudgetMs, callStore, type ProtocolContext, shortestBudgetMs } from "../protocol/context.ts";
import type { LeaseRecord } from "../record.ts";
import { attributeNames, timeToLive } from "../schema.ts";
import { fairLimits, waiterId } from "../schema-fair.ts";
import type { UpdateRequest, UpdateResult } from "../store.ts";
import { withBudget } from "../time/budget.ts";
import { sleep } from "../time/clock.ts";
import type { Companion, Company, Prolonged } from "./company.ts";
import { QueueFullError } from "./errors.ts";
import { Nap } from "./nap.ts";
import type { FairTerms } from "./options.ts";
import { aboutMs } from "./pace.ts";
import type { Sighting } from "./sighting.ts";
import { placeLeaseMs, Standing } from "./standing.ts";
import type { TurnStore } from "./turn-store.ts";

/** How often a place is asked for while others keep changing the queue, before the next look. */
const joinTries = 3;

/** Sleeps are shortened by up to this share, so that waiters do not look in step. */
const jitterShare = 0.1;

/** What one waiter works with. */
export interface WaiterParts {
  readonly key: string;
  readonly maxWaiters: number;
  readonly context: ProtocolContext;
  readonly store: TurnStore;
  readonly company: Company;
  readonly acquisition: Acquisition;
  readonly terms: FairTerms;
  readonly onContended: (record: LeaseRecord) => void;
}

/**
 * One caller's way to a fair lock: straight to it while nobody waits, else by a place in the queue.
 *
 * The token, and with it the place's id, stays the same all the way, so that whatever has landed unknown to us is
 * recognised by the next request.
 */
export class Waiter implements Companion {
  readonly #parts: WaiterParts;
  readonly #id: string;
  readonly #deadline: number;
  readonly #standing: Standing;
  readonly #nap: Nap;
  /** Whether a place of ours may be in the table. */
  #mayHavePlace = false;
  /** When our place is over, on the monotonic clock. */
  #placeEnds = 0;
  /** No attempt before this, on the monotonic clock: the last one was refused for what a look cannot show. */
  #notBefore = 0;
  #failure: LeaseServiceError | undefined;
  #lastPlace: number | undefined;
  #arrived: () => void = () => undefined;

  constructor(parts: WaiterParts) {
    this.#parts = parts;
    this.#id = waiterId(parts.acquisition.token);
    this.#nap = new Nap(parts.context.clock);
    this.#standing = new Standing(this.#id, parts.terms, parts.context, parts.company.observer);
    this.#deadline = this.#now() + parts.terms.waitMs;
  }

  /**
   * Gives the grant.
   *
   * Rejects with LeaseUnavailableError, QueueFullError, the service's error if that is what the last attempt ended
   * with, or the signal's reason. Then nothing stays held, and its place is given up in the background.
   */
  async grant(): Promise<Granted> {
    const { company, acquisition, terms } = this.#parts;
    try {
      if (terms.waitMs > 0) await this.#queueToArrive();
      company.add(this);
      if (terms.waitMs > 0) this.#standing.learn(company.latest);
      const granted = await this.#waitForTurn();
      // Whoever came back to a lease of its own has not taken its place along.
      if (this.#standing.ownPlace() !== undefined) this.#leave();
      return granted;
    } catch (error) {
      acquisition.abandon();
      if (this.#mayHavePlace) this.#leave();
      throw error;
    } finally {
      this.#arrived();
      company.remove(this);
    }
  }

  prolonged(): Prolonged | undefined {
    const own = this.#standing.ownPlace();
    if (own === undefined) return undefined;
    const { text, ends } = this.#standing.newPlace(this.#leftMs());
    const confirmed = (): void => {
      this.#placeEnds = ends;
    };
    return { place: { id: this.#id, text }, confirmed };
  }

  notice(sighting: Sighting): void {
    if (this.#standing.learn(sighting)) this.#nap.wake();
  }

  released(): void {
    const { sighting } = this.#standing;
    if (sighting === undefined || this.#standing.outlook().place > 1) return;
    this.notice({ ...sighting, record: undefined, claimableAt: this.#now() });
  }

  async #waitForTurn(): Promise<Granted> {
    for (;;) {
      const granted = await this.#attemptInTurn();
      if (granted !== undefined) return granted;
      this.#parts.terms.signal?.throwIfAborted();
      if (this.#leftMs() <= 0) throw this.#failure ?? this.#unavailable();
      await this.#takePlace();
      this.#tellPlace();
      if (!this.#isTurn()) await this.#rest();
    }
  }

  /** Waits until the callers of this process that came before have a place, or have given up. */
  async #queueToArrive(): Promise<void> {
    const { before, arrived } = this.#parts.company.arrive();
    this.#arrived = arrived;
    void before.then(() => this.#nap.wake());
    await this.#nap.sleep(Math.max(this.#leftMs(), 0), this.#parts.terms.signal);
  }

  /** Attempts as long as it is our turn: at once where nobody waits, else as the first of those who live. */
  async #attemptInTurn(): Promise<Granted | undefined> {
    while (this.#isTurn()) {
      const passed = this.#standing.ahead().map(({ id, text }) => ({ id, text }));
      if (passed.length > fairLimits.removalsPerWrite) {
        const some = passed.slice(0, fairLimits.removalsPerWrite);
        await this.#write(passOver(this.#parts.key, some));
        continue;
      }
      const id = this.#standing.ownPlace() && this.#id;
      const isFirst = this.#standing.sighting === undefined && id === undefined;
      this.#parts.store.turn = { id, passed };
      const granted = await this.#attempt();
      if (granted !== undefined) return granted;
      if (!isFirst || this.#failure !== undefined) this.#notBefore = this.#now() + this.#standing.paceMs(1);
    }
    return undefined;
  }

  async #attempt(): Promise<Granted | undefined> {
    const { acquisition, company, store, terms } = this.#parts;
    try {
      const outcome = await acquisition.attempt(this.#budgetMs(), terms.signal);
      if (outcome.granted) {
        this.#learn(company.observer.see(store.lastItem));
        return outcome;
      }
      this.#failure = undefined;
      if (outcome.record !== undefined) this.#parts.onContended(outcome.record);
      this.#learn(company.observer.seeRefused(store.lastItem, outcome.claimableInMs, outcome.offset));
    } catch (error) {
      this.#pass(error);
    }
    return undefined;
  }

  #isTurn(): boolean {
    const sighting = this.#standing.sighting;
    if (this.#now() < this.#notBefore) return false;
    // Nothing is known, and nobody here waits: an attempt tells most.
    if (sighting === undefined) return true;
    if (sighting.record?.token === this.#parts.acquisition.token) return true;
    return this.#standing.isNext();
  }

  /** Joins the queue if our place is not there: for the first time, or because it was passed over. */
  async #takePlace(): Promise<void> {
    const { key, maxWaiters, context } = this.#parts;
    for (let tries = 0; tries < joinTries; tries += 1) {
      const sighting = this.#standing.sighting;
      if (sighting === undefined || this.#standing.ownPlace() !== undefined || this.#isTurn()) break;
      const living = sighting.places.filter((place) => !this.#standing.isOver(place));
      if (living.length >= maxWaiters) throw new QueueFullError(key, living.length, maxWaiters);
      const isFull = sighting.places.length >= maxWaiters;
      const over = isFull ? sighting.places.filter((place) => !living.includes(place)) : [];
      const passed = over.slice(0, fairLimits.removalsPerWrite).map(({ id, text }) => ({ id, text }));
      const { text, until, ends } = this.#standing.newPlace(this.#leftMs());
      const ttlSeen = Number(sighting.item?.[attributeNames.timeToLive] ?? 0);
      const ttl = Math.max(ttlSeen, timeToLive(until, context.retentionMs));
      this.#mayHavePlace = true;
      this.#placeEnds = ends;
      const place = { id: this.#id, text };
      const isAnswered = await this.#write(join({ key, place, maxWaiters, ttl, passed }));
      if (!isAnswered) break;
    }
    if (this.#standing.ownPlace() !== undefined) this.#arrived();
  }

  /** Sends a write of the queue's; tells whether its answer has shown the queue. */
  async #write(request: UpdateRequest): Promise<boolean> {
    const { company, context, terms } = this.#parts;
    const budgetMs = Math.min(this.#budgetMs(), callBudgetMs);
    try {
      const result: UpdateResult = await withBudget(context.clock, budgetMs, terms.signal, (call) =>
        context.store.update(request, call),
      );
      context.noteOffset(result.offset);
      this.#learn(company.observer.see(result.item, result.offset));
      return true;
    } catch (error) {
      this.#pass(error);
      this.#notBefore = this.#now() + this.#standing.paceMs(1);
      return false;
    }
  }

  /** Sleeps as long as our place allows, then looks; ends early when another one here has looked. */
  async #rest(): Promise<void> {
    const { company, terms } = this.#parts;
    const hasPlace = this.#standing.ownPlace() !== undefined;
    const placeLeftMs = this.#placeEnds - this.#now() - placeLeaseMs / 2;
    if (!hasPlace || placeLeftMs > 0) {
      const delayMs = Math.min(this.#sleepMs(), this.#leftMs(), hasPlace ? placeLeftMs : callBudgetMs);
      if (await this.#nap.sleep(Math.max(delayMs, 1), terms.signal)) return;
    }
    const own = this.prolonged();
    const before = this.#placeEnds;
    const isShort = before - this.#now() < this.#standing.paceMs() + placeLeaseMs / 2;
    const budgetMs = Math.min(this.#budgetMs(), callBudgetMs);
    try {
      if (own !== undefined && isShort && this.#leftMs() > 0) {
        this.#learn(await company.lookAndKeep(own, budgetMs, terms.signal));
        if (this.#placeEnds === before) await this.#pause();
      } else this.#learn(await company.look(budgetMs, terms.signal), false);
    } catch (error) {
      this.#pass(error);
      await this.#pause();
    }
  }

  /** What could not be done is done again, even where our place runs out, but not at once. */
  async #pause(): Promise<void> {
    const { context, terms } = this.#parts;
    const delayMs = Math.max(1, Math.min(this.#standing.paceMs(1), this.#leftMs()));
    await sleep(context.clock, delayMs, terms.signal);
  }

  #sleepMs(): number {
    const sighting = this.#standing.sighting;
    const now = this.#now();
    const pace = this.#standing.paceMs() * (1 - jitterShare * this.#parts.context.randomness.fraction());
    if (sighting === undefined) return pace;
    const claimableIn = Math.max(sighting.claimableAt, this.#notBefore) - now;
    const aheadLapse = this.#standing.aheadLapseIn();
    // When nobody else can have the lock, however long our own sleep would be.
    return Math.min(pace, Math.max(claimableIn, aheadLapse));
  }

  #learn(sighting: Sighting, isOwnWrite = true): void {
    if (this.#standing.learn(sighting, isOwnWrite)) this.#parts.company.spread(sighting, this);
  }

  #leave(): void {
    const { key, context } = this.#parts;
    this.#mayHavePlace = false;
    void callStore(context, (store, call) => store.update(leave(key, this.#id), call)).catch(() => undefined);
  }

  #tellPlace(): void {
    const { onPlace } = this.#parts.terms;
    if (onPlace === undefined || this.#standing.ownPlace() === undefined) return;
    const outlook = this.#standing.outlook();
    if (outlook.place === this.#lastPlace) return;
    this.#lastPlace = outlook.place;
    onPlace({ place: outlook.place, aboutMs: aboutMs(outlook) });
  }

  #unavailable(): LeaseUnavailableError {
    const { record, claimableAt = 0 } = this.#standing.sighting ?? {};
    const aheadLapse = this.#standing.aheadLapseIn();
    const retryAfterMs = Math.ceil(Math.max(0, claimableAt - this.#now(), record ? 0 : aheadLapse));
    return new LeaseUnavailableError(this.#parts.key, record, retryAfterMs);
  }

  /** Takes note of an error that may pass; throws every other. */
  #pass(error: unknown): void {
    this.#parts.terms.signal?.throwIfAborted();
    if (!(error instanceof LeaseServiceError && error.retryable)) throw error;
    this.#failure = error;
  }

  #now(): number {
    return this.#parts.context.clock.monotonic();
  }

  #leftMs(): number {
    return this.#deadline - this.#now();
  }

  #budgetMs(): number {
    return this.#parts.terms.waitMs > 0 ? Math.max(this.#leftMs(), shortestBudgetMs) : callBudgetMs;
  }
}
