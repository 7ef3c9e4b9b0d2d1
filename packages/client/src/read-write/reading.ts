import { LeaseServiceError, LeaseUnavailableError } from "../errors/errors.ts";
import type { Lease } from "../lease.ts";
import type { AcquisitionTerms } from "../options/check-options.ts";
import { contentionOf } from "../protocol/announcement.ts";
import { isOpenTo, type LeaseRecord } from "../record.ts";
import { readerPlace, writerPlace } from "../schema-read-write.ts";
import type { Obstacle } from "./participants.ts";
import { Patience, retryable } from "./patience.ts";
import { type Scene, unavailable } from "./scene.ts";

/** How many places are tried in a row; each refusal means that another reader has that one. */
const mostTries = 8;

/**
 * One caller's way to a read lock: it first writes its own lease, and only then looks at the gate.
 *
 * A writer does the same the other way round: it first shuts the gate, and only then looks at the readers. Each
 * writes before it reads, so that whatever the order, at least one of the two sees the other. A reader that sees a
 * live writer withdraws; it holds nothing while it waits.
 */
export class Reading {
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
   * Rejects with LeaseUnavailableError, with the service's error if that is what the last round ended with, or with
   * the signal's reason. Nothing stays held then.
   */
  async admission(known?: Lease): Promise<Lease> {
    if (known !== undefined) {
      const lease = await this.#again(known);
      if (lease !== undefined) return lease;
    }
    for (;;) {
      const outcome = await this.#round();
      if ("lease" in outcome) return outcome.lease;
      await this.#untilWorthwhile(outcome);
    }
  }

  async #again(known: Lease): Promise<Lease | undefined> {
    const { client, key } = this.#scene;
    const place = known.toJSON().sortKey ?? "";
    const lease = await this.#patience.bounded((options) => client.acquireAt(key, place, options));
    if (lease.token === known.token) return lease;
    // It ended meanwhile, and this one has not been past the gate.
    await this.#patience.letGo(lease);
    return undefined;
  }

  async #round(): Promise<{ readonly lease: Lease } | Hindrance> {
    try {
      const lease = await this.#place();
      try {
        const obstacle = await this.#look(lease);
        if (obstacle === undefined) return { lease };
        this.#announce(obstacle.record);
        await this.#patience.letGo(lease);
        return { obstacle, failure: undefined };
      } catch (error) {
        await this.#patience.letGo(lease);
        throw error;
      }
    } catch (error) {
      if (error instanceof LeaseUnavailableError) return { obstacle: undefined, failure: error };
      return { obstacle: undefined, failure: retryable(error, this.#patience.terms.signal) };
    }
  }

  /** Writes a lease of its own: 1 request, and 1 more for each place that another reader has. */
  async #place(): Promise<Lease> {
    const { client, key, places } = this.#scene;
    const tried: number[] = [];
    let refusal = unavailable(this.#scene, [], 0);
    try {
      while (tried.length < mostTries) {
        const number = places.take(client.context.randomness.fraction());
        if (number === undefined) break;
        tried.push(number);
        try {
          const place = readerPlace(number);
          const lease = await this.#patience.bounded((options) => client.acquireAt(key, place, options));
          places.won(number, lease);
          return lease;
        } catch (error) {
          if (!(error instanceof LeaseUnavailableError)) throw error;
          places.widen();
          refusal = error;
        }
      }
      throw refusal;
    } finally {
      places.giveBack(tried);
    }
  }

  /** Looks at the gate; gives who holds it, once a dead writer's lease has been taken away. */
  async #look(lease: Lease): Promise<Obstacle | undefined> {
    const { participants } = this.#scene;
    const { budgetMs, terms } = this.#patience;
    const look = { budgetMs, signal: terms.signal };
    const seen = await participants.gate({ ...look, consistent: true });
    let obstacle = this.#obstacle(seen);
    if (seen !== undefined && obstacle !== undefined && participants.isOver(obstacle)) {
      obstacle = this.#obstacle(await participants.remove(seen, look));
    }
    if (obstacle === undefined && !lease.held) {
      throw new LeaseServiceError(
        "LEASE_NO_ANSWER",
        `the answers for the lock ${JSON.stringify(this.#scene.key)} take longer than its lease`,
      );
    }
    return obstacle;
  }

  /** Sleeps and looks until another round can hope for success; rejects when there is no time left for one. */
  async #untilWorthwhile({ obstacle: first, failure }: Hindrance): Promise<void> {
    const { participants, client } = this.#scene;
    let obstacle = first;
    for (;;) {
      const { leftMs, terms } = this.#patience;
      if (leftMs <= 0)
        throw failure ?? unavailable(this.#scene, obstacle ? [obstacle] : [], this.#patience.terms.waitMs);
      const claimableAt = obstacle?.claimableAt ?? Number.POSITIVE_INFINITY;
      await this.#patience.pause(claimableAt - client.context.clock.monotonic());
      if (obstacle === undefined || participants.isOver(obstacle)) return;
      const { budgetMs } = this.#patience;
      try {
        const record = await participants.gate({ consistent: false, budgetMs, signal: terms.signal });
        obstacle = this.#obstacle(record);
        if (obstacle === undefined) return;
      } catch (error) {
        // The next look makes it good.
        retryable(error, terms.signal);
      }
    }
  }

  /** What the holder of the gate is to this caller: a reentrant owner passes its own. */
  #obstacle(record: LeaseRecord | undefined): Obstacle | undefined {
    if (record === undefined || record.sortKey !== writerPlace) return undefined;
    const { reentrant, owner } = this.#patience.terms;
    return reentrant && isOpenTo(record, owner) ? undefined : this.#scene.participants.judged(record);
  }
}

/** Why a round has not succeeded: somebody in the way, or nothing learnt. */
interface Hindrance {
  readonly obstacle: Obstacle | undefined;
  readonly failure: LeaseServiceError | LeaseUnavailableError | undefined;
}
