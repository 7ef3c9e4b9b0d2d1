import { LeaseLostError, type LeaseServiceError } from "../errors/errors.ts";
import { isOperational } from "../errors/operational.ts";
import type { Lease } from "../lease.ts";
import type { AcquisitionTerms } from "../options/check-options.ts";
import { contentionOf } from "../protocol/announcement.ts";
import { shortestBudgetMs } from "../protocol/context.ts";
import type { LeaseRecord } from "../record.ts";
import { writerPlace } from "../schema-read-write.ts";
import type { Obstacle } from "./participants.ts";
import { Patience, retryable } from "./patience.ts";
import { longestOf, type Scene, unavailable } from "./scene.ts";

/** How many dead readers are removed at the same time. */
const removalsAtOnce = 10;

/**
 * One caller's way to the write lock: it first shuts the gate, and only then looks at the readers.
 *
 * Whoever is not among the readers of the first look wrote its lease after the gate was shut, so that it will find
 * it shut and withdraw. So a writer waits for those of its first look alone, however many come after them: readers
 * cannot starve it.
 */
export class Writing {
  readonly #scene: Scene;
  readonly #patience: Patience;
  readonly #announce: ReturnType<typeof contentionOf>;

  constructor(scene: Scene, terms: AcquisitionTerms) {
    this.#scene = scene;
    this.#patience = new Patience(scene.client.context, terms);
    this.#announce = contentionOf(scene.client.context, terms.owner);
  }

  /**
   * Gives the lease; `known` is this owner's own, to be entered again.
   *
   * Rejects with LeaseUnavailableError, with the service's error if that is what the last look ended with, or with
   * the signal's reason. Nothing stays held then.
   */
  async admission(known?: Lease): Promise<Lease> {
    for (;;) {
      const gate = await this.#shutGate();
      if (gate.token === known?.token) return gate;
      try {
        await this.#untilAlone(gate);
        if (gate.held) return gate;
      } catch (error) {
        if (!(error instanceof LeaseLostError)) {
          await this.#patience.letGo(gate);
          throw error;
        }
      }
      // The gate was lost during the wait: the process froze, or an operator broke it.
      await this.#patience.letGo(gate);
      if (this.#patience.leftMs <= 0) throw unavailable(this.#scene, [], this.#patience.terms.waitMs);
    }
  }

  #shutGate(): Promise<Lease> {
    const { client, key } = this.#scene;
    const { leftMs, terms } = this.#patience;
    const wait = terms.waitMs === 0 ? {} : { waitMs: Math.ceil(leftMs), retry: terms.retry };
    return client.acquireAt(key, writerPlace, { ...this.#patience.wishes(terms.signal), ...wait });
  }

  /** Waits for the readers that the first look shows; rejects when patience is over, or the gate is lost. */
  async #untilAlone(gate: Lease): Promise<void> {
    let awaited: ReadonlySet<string> | undefined;
    let obstacles: readonly Obstacle[] = [];
    let failure: LeaseServiceError | undefined;
    let isToConfirm = false;
    for (;;) {
      // Looks in between may lag; nothing follows from not seeing a reader in one of those.
      const consistent = awaited === undefined || isToConfirm;
      isToConfirm = false;
      try {
        const readers = await this.#look(consistent);
        const hasWaited = awaited !== undefined;
        awaited ??= new Set(readers.map(({ token }) => token));
        const known = awaited;
        obstacles = await this.#sift(readers.filter(({ token }) => known.has(token)));
        failure = undefined;
        if (obstacles.length === 0 && consistent) return await this.#confirm(gate, hasWaited);
        isToConfirm = obstacles.length === 0;
        this.#announce(longestOf(obstacles)?.record);
      } catch (error) {
        if (error instanceof LeaseLostError) throw error;
        failure = retryable(error, this.#patience.terms.signal);
      }
      throwIfLost(gate);
      if (isToConfirm) continue;
      if (this.#patience.leftMs <= 0)
        throw failure ?? unavailable(this.#scene, obstacles, this.#patience.terms.waitMs);
      await this.#pause(gate, obstacles);
    }
  }

  async #look(consistent: boolean): Promise<readonly LeaseRecord[]> {
    const look = { consistent, budgetMs: this.#budgetMs(), signal: this.#patience.terms.signal };
    return (await this.#scene.participants.read(look)).readers;
  }

  /** Removes those whose time is over: 2 requests each. Gives those that are in the way still. */
  async #sift(readers: readonly LeaseRecord[]): Promise<Obstacle[]> {
    const { participants } = this.#scene;
    const alive: Obstacle[] = [];
    const over: LeaseRecord[] = [];
    for (const reader of readers) {
      const obstacle = participants.judged(reader);
      if (participants.isOver(obstacle)) over.push(reader);
      else alive.push(obstacle);
    }
    const look = { budgetMs: this.#budgetMs(), signal: this.#patience.terms.signal };
    for (let start = 0; start < over.length; start += removalsAtOnce) {
      const removals = over.slice(start, start + removalsAtOnce).map(async (reader) => {
        const instead = await participants.remove(reader, look);
        // Another one at its place came after the gate was shut.
        if (instead?.token === reader.token) alive.push(participants.judged(instead));
      });
      // All of them settle first: none goes on beside what follows.
      const results = await Promise.allSettled(removals);
      const failures = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
      const mistake = failures.find((error) => !isOperational(error));
      if (failures.length > 0) throw mistake ?? failures[0];
    }
    return alive;
  }

  /** Sleeps until the next look, and keeps the gate shut meanwhile: without it every wait would start again. */
  async #pause(gate: Lease, obstacles: readonly Obstacle[]): Promise<void> {
    const { clock } = this.#scene.client.context;
    const { leaseDurationMs, signal } = this.#patience.terms;
    const thirdMs = leaseDurationMs / 3;
    if (gate.remainingMs() < 2 * thirdMs) await renewed(gate, signal);
    const firstToEnd = Math.min(...obstacles.map(({ claimableAt }) => claimableAt));
    await this.#patience.pause(firstToEnd - clock.monotonic(), thirdMs);
    throwIfLost(gate);
  }

  /**
   * Makes sure of the gate, and of most of a lease. Whoever broke it during a wait has let readers in that nobody looked
   * for: only a renewal that is confirmed shows that it was shut all the time.
   */
  async #confirm(gate: Lease, hasWaited: boolean): Promise<void> {
    const { leaseDurationMs, signal } = this.#patience.terms;
    if (hasWaited) await gate.renew();
    else if (gate.remainingMs() < leaseDurationMs / 2) await renewed(gate, signal);
  }

  /** A look that hangs must not outlast the gate. */
  #budgetMs(): number {
    const shareMs = Math.max(this.#patience.terms.leaseDurationMs / 3, shortestBudgetMs);
    return Math.min(this.#patience.budgetMs, shareMs);
  }
}

/** Prolongs the gate; a failure that may pass leaves it as it is. */
async function renewed(gate: Lease, signal: AbortSignal | undefined): Promise<void> {
  try {
    await gate.renew();
  } catch (error) {
    if (error instanceof LeaseLostError) throw error;
    retryable(error, signal);
  }
}

function throwIfLost(gate: Lease): void {
  const { loss } = gate;
  if (loss !== undefined) throw loss;
}
