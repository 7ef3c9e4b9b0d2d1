import { LeaseServiceError } from "../errors/errors.ts";
import { join, leave, passOver, type WrittenPlace } from "../expressions-fair.ts";
import type { AcquireCall } from "../protocol/acquirer.ts";
import { callBudgetMs, callStore, inBackground, type ProtocolContext } from "../protocol/context.ts";
import { attributeNames, timeToLive } from "../schema.ts";
import { fairLimits } from "../schema-fair.ts";
import { optionalWholeIn } from "../store/item-values.ts";
import type { UpdateRequest } from "../store.ts";
import { withBudget } from "../time/budget.ts";
import type { Company, Prolonged } from "./company.ts";
import { QueueFullError } from "./errors.ts";
import type { FairTerms } from "./options.ts";
import type { Sighting } from "./sighting.ts";
import type { Standing } from "./standing.ts";

/** How often a place is asked for while others keep changing the queue, before the next look. */
const joinTries = 3;

/** What one waiter's line works with. */
export interface LineParts {
  readonly id: string;
  readonly call: AcquireCall;
  readonly terms: FairTerms;
  readonly context: ProtocolContext;
  readonly company: Company;
  readonly standing: Standing;
  /** Takes on what an answer has shown. */
  readonly learn: (sighting: Sighting) => void;
}

/** The queue as one waiter writes to it: joins it, stays in it, passes over the dead, leaves it. */
export class Line {
  readonly #parts: LineParts;
  /** When our place is over, on the monotonic clock. */
  #ends = 0;
  /** Whether a place of ours may be in the table. */
  #mayStand = false;

  constructor(parts: LineParts) {
    this.#parts = parts;
  }

  /** When our place is over unless it is prolonged, on the monotonic clock. */
  get ends(): number {
    return this.#ends;
  }

  /** Our place with a lease for the next sleep; undefined while we have none. */
  prolonged(leftMs: number): Prolonged | undefined {
    const { id, standing } = this.#parts;
    const own = standing.ownPlace();
    if (own === undefined) return undefined;
    const { text, ends } = standing.newPlace(leftMs);
    const confirmed = (): void => {
      this.#ends = ends;
    };
    return { place: { id, text, ticket: own.ticket }, confirmed };
  }

  /**
   * Joins the queue if our place is not there: for the first time, or because it was passed over; not while
   * `isPointless`. Rejects with QueueFullError. Gives the error that may pass which has kept it from an answer.
   */
  async take(
    isPointless: () => boolean,
    leftMs: () => number,
    budgetMs: number,
  ): Promise<LeaseServiceError | undefined> {
    const { id, call, terms, context, standing } = this.#parts;
    for (let tries = 0; tries < joinTries; tries += 1) {
      const { sighting } = standing;
      if (sighting === undefined || standing.ownPlace() !== undefined || isPointless()) break;
      const { text, until, ends } = standing.newPlace(leftMs());
      const request = joining(call, terms.maxWaiters, standing, { id, text, until }, context.retentionMs);
      this.#mayStand = true;
      this.#ends = ends;
      const failure = await this.#write(request, budgetMs);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  /** Passes over as many of the dead as one write can. Gives the error that may pass, if it ended with one. */
  async passOver(over: readonly WrittenPlace[], budgetMs: number): Promise<LeaseServiceError | undefined> {
    return await this.#write(passOver(this.#parts.call, removable(over)), budgetMs);
  }

  /** Gives our place up in the background, if there may be one. */
  leave(): void {
    if (!this.#mayStand) return;
    this.#mayStand = false;
    const { id, call, context } = this.#parts;
    const { key, sortKey, owner } = call;
    const expiresAt = Math.ceil(context.clock.now() + this.#ends - context.clock.monotonic());
    const left = callStore(context, (store, options) => store.update(leave({ key, sortKey }, id), options));
    const passed = inBackground(context, { key, sortKey, owner, operation: "leaveQueue" });
    context.lifecycle.remove({ key, sortKey, expiresAt }, left, passed);
  }

  async #write(request: UpdateRequest, budgetMs: number): Promise<LeaseServiceError | undefined> {
    const { call, company, context, learn } = this.#parts;
    const budget = Math.min(budgetMs, callBudgetMs);
    try {
      const result = await withBudget(context.clock, budget, call.signal, (options) =>
        context.store.update(request, options),
      );
      learn(company.observer.see(result.item));
      return undefined;
    } catch (error) {
      call.signal?.throwIfAborted();
      if (error instanceof LeaseServiceError && error.retryable) return error;
      throw error;
    }
  }
}

/** As many places as one write can remove, as they were judged. */
export function removable(places: readonly WrittenPlace[]): WrittenPlace[] {
  return places.slice(0, fairLimits.removalsPerWrite).map(({ id, text }) => ({ id, text }));
}

/** The write that joins the queue; those whose time is over make room where it is full. Throws QueueFullError. */
export function joining(
  lock: { readonly key: string; readonly sortKey: string },
  maxWaiters: number,
  standing: Standing,
  { id, text, until }: WrittenPlace & { readonly until: number },
  retentionMs: number,
): UpdateRequest {
  const { item, places = [] } = standing.sighting ?? {};
  const over = places.filter((place) => standing.isOver(place));
  const living = places.length - over.length;
  if (living >= maxWaiters) throw new QueueFullError(lock.key, living, maxWaiters);
  const passed = places.length >= maxWaiters ? removable(over) : [];
  const ttlSeen = (item && optionalWholeIn(item, attributeNames.timeToLive)) ?? 0;
  const ttl = Math.max(ttlSeen, timeToLive(until, retentionMs));
  return join(lock, { id, text, maxWaiters, ttl, passed });
}
