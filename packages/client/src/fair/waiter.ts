import { LeaseServiceError, LeaseUnavailableError } from "../errors/errors.ts";
import type { AcquireAttempt, Granted } from "../protocol/acquire-attempt.ts";
import type { AcquireCall } from "../protocol/acquirer.ts";
import { callBudgetMs, type ProtocolContext, shortestBudgetMs } from "../protocol/context.ts";
import type { LeaseRecord } from "../record.ts";
import { fairLimits, waiterId } from "../schema-fair.ts";
import { sleep } from "../time/clock.ts";
import { WakeableSleep } from "../time/wakeable-sleep.ts";
import type { Companion, Company, Prolonged } from "./company.ts";
import { Line, removable } from "./line.ts";
import type { FairTerms } from "./options.ts";
import { aboutMs } from "./pace.ts";
import type { QueuedForm } from "./queued-form.ts";
import type { Sighting } from "./sighting.ts";
import { placeLeaseMs, Standing } from "./standing.ts";

/** Sleeps are shortened by up to this share, so that waiters do not look in step. */
const jitterShare = 0.1;

/** What one waiter works with. */
export interface WaiterParts {
  readonly call: AcquireCall;
  readonly terms: FairTerms;
  readonly context: ProtocolContext;
  readonly form: QueuedForm;
  readonly company: Company;
  readonly attempt: AcquireAttempt;
  readonly onContended: (record: LeaseRecord) => void;
}

/**
 * One caller's way to a lock, in its turn: straight to it while nobody waits, else by a place in the queue.
 *
 * The token, and with it the place's id, stays the same all the way, so that whatever has landed unknown to us is
 * recognised by the next request.
 */
export class Waiter implements Companion {
  readonly #parts: WaiterParts;
  readonly #id: string;
  readonly #deadline: number;
  readonly #standing: Standing;
  readonly #line: Line;
  readonly #nap: WakeableSleep;
  /** No attempt before this, on the monotonic clock: the last one was refused for what a look cannot show. */
  #notBefore = 0;
  #failure: LeaseServiceError | undefined;
  #lastPlace: number | undefined;
  #arrived: () => void = () => undefined;

  constructor(parts: WaiterParts) {
    const { attempt, call, terms, context, company } = parts;
    this.#parts = parts;
    this.#id = waiterId(attempt.token);
    this.#nap = new WakeableSleep(context.clock);
    const standing = new Standing(this.#id, call.owner, context, company.observer);
    this.#standing = standing;
    const learn = (sighting: Sighting): void => this.#learn(sighting);
    this.#line = new Line({ id: this.#id, call, terms, context, company, standing, learn });
    this.#deadline = this.#now() + call.waitMs;
  }

  /**
   * Gives the grant.
   *
   * Rejects with LeaseUnavailableError, QueueFullError, the service's error if that is what the last attempt ended
   * with, or the signal's reason. Then its place is given up in the background, and the caller abandons the acquisition.
   */
  async grant(): Promise<Granted> {
    const { company, call } = this.#parts;
    try {
      if (call.waitMs > 0) await this.#queueToArrive();
      company.add(this);
      if (call.waitMs > 0) this.#standing.learn(company.latest);
      const granted = await this.#waitForTurn();
      // Whoever came back to a lease of its own has not taken its place along.
      if (this.#standing.ownPlace() !== undefined) this.#line.leave();
      return granted;
    } catch (error) {
      this.#line.leave();
      throw error;
    } finally {
      this.#arrived();
      company.remove(this);
    }
  }

  prolonged(): Prolonged | undefined {
    return this.#line.prolonged(this.#leftMs());
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
      this.#parts.call.signal?.throwIfAborted();
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
    await this.#nap.sleep(Math.max(this.#leftMs(), 0), this.#parts.call.signal);
  }

  /** Attempts as long as it is our turn: at once where nobody waits, else as the first of those who live. */
  async #attemptInTurn(): Promise<Granted | undefined> {
    while (this.#isTurn()) {
      const ahead = this.#standing.ahead();
      if (ahead.length > fairLimits.removalsPerWrite) {
        const failure = await this.#line.passOver(ahead, this.#budgetMs());
        if (failure !== undefined) this.#hold(failure);
        continue;
      }
      const passed = removable(ahead);
      const own = this.#standing.ownPlace();
      const isFirst = this.#standing.sighting === undefined && own === undefined;
      this.#parts.form.turn = { own, passed };
      const granted = await this.#attempt();
      if (granted !== undefined) return granted;
      if (!isFirst || this.#failure !== undefined) this.#notBefore = this.#now() + this.#standing.paceMs(1);
    }
    return undefined;
  }

  async #attempt(): Promise<Granted | undefined> {
    const { attempt, call, company } = this.#parts;
    try {
      const outcome = await attempt.try({ withinMs: this.#budgetMs(), signal: call.signal });
      if (outcome.granted) {
        this.#learn(company.observer.see(outcome.item));
        return outcome;
      }
      this.#failure = undefined;
      const { blocker, claimableInMs } = outcome.prospect;
      if (blocker !== undefined) this.#parts.onContended(blocker);
      this.#learn(company.observer.seeRefused(outcome.item, claimableInMs));
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
    if (sighting.record?.token === this.#parts.attempt.token) return true;
    return this.#standing.isNext();
  }

  async #takePlace(): Promise<void> {
    const leftMs = (): number => this.#leftMs();
    const failure = await this.#line.take(() => this.#isTurn(), leftMs, this.#budgetMs());
    if (failure !== undefined) this.#hold(failure);
    if (this.#standing.ownPlace() !== undefined) this.#arrived();
  }

  /** Nothing was answered: the next attempt has to wait a little. */
  #hold(failure: LeaseServiceError): void {
    this.#failure = failure;
    this.#notBefore = this.#now() + this.#standing.paceMs(1);
  }

  /** Sleeps as long as our place allows, then looks; ends early when another one here has looked. */
  async #rest(): Promise<void> {
    const { company, call } = this.#parts;
    const hasPlace = this.#standing.ownPlace() !== undefined;
    const placeLeftMs = this.#line.ends - this.#now() - placeLeaseMs / 2;
    if (!hasPlace || placeLeftMs > 0) {
      const delayMs = Math.min(this.#sleepMs(), this.#leftMs(), hasPlace ? placeLeftMs : callBudgetMs);
      if (await this.#nap.sleep(Math.max(delayMs, 1), call.signal)) return;
    }
    const own = this.prolonged();
    const before = this.#line.ends;
    const isShort = before - this.#now() < this.#standing.paceMs() + placeLeaseMs / 2;
    const budgetMs = Math.min(this.#budgetMs(), callBudgetMs);
    try {
      if (own !== undefined && isShort && this.#leftMs() > 0) {
        this.#learn(await company.lookAndKeep(own, budgetMs, call.signal));
        if (this.#line.ends === before) await this.#pause();
      } else this.#learn(await company.look(budgetMs, call.signal), false);
    } catch (error) {
      this.#pass(error);
      await this.#pause();
    }
  }

  /** What could not be done is done again, even where our place runs out, but not at once. */
  async #pause(): Promise<void> {
    const { context, call } = this.#parts;
    const delayMs = Math.max(1, Math.min(this.#standing.paceMs(1), this.#leftMs()));
    await sleep(context.clock, delayMs, call.signal);
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
    const { key, owner, reentrant, waitMs } = this.#parts.call;
    const isOwn = record?.owner === owner && !record.inCooldown && !reentrant;
    const waiting = this.#standing.outlook().place - 1;
    return new LeaseUnavailableError(key, record, retryAfterMs, { waitedMs: waitMs, waiting, isOwn });
  }

  /** Takes note of an error that may pass; throws every other. */
  #pass(error: unknown): void {
    this.#parts.call.signal?.throwIfAborted();
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
    return this.#parts.call.waitMs > 0 ? Math.max(this.#leftMs(), shortestBudgetMs) : callBudgetMs;
  }
}
