import type { LeaseUnavailableError } from "../errors/errors.ts";
import { isOpenTo } from "../record.ts";

/** A permit that somebody holds, as far as is known. */
export interface Holding {
  readonly permit: number;
  readonly owner: string;
  readonly expiresAt: number;
  readonly inCooldown: boolean;
  readonly reentrant: boolean;
  /** When it could be taken over if nothing changes, on the monotonic clock. */
  readonly claimableAt: number;
}

/** The permits that can be taken: those that nobody holds, and those whose holders' time is over. */
export interface Candidates {
  readonly free: readonly number[];
  readonly over: readonly number[];
}

/**
 * What one look at all of a semaphore's permits has shown, and what follows from it for a caller with N permits.
 *
 * Permit `i` may be taken while `i + 1` and the number of live holders above `i` are no more than N together. Where
 * nobody holds a permit beyond N that is always so. After N was lowered it keeps the number of all holders within N
 * without a counter that all would have to write: of the permits taken by callers with this N, the highest one was
 * taken when it and all below it would have fitted beside everybody above, and those above have only become fewer.
 * The lowest permit that is not held always qualifies once fewer than N are held.
 */
export class Survey {
  readonly #permits: number;
  readonly #holdings: Map<number, Holding>;

  constructor(permits: number, holdings: readonly Holding[]) {
    this.#permits = permits;
    this.#holdings = new Map(holdings.map((holding) => [holding.permit, holding]));
  }

  /** Takes note of what a refused attempt has told about a permit. Without a holder it was let go meanwhile. */
  note(permit: number, refusal: LeaseUnavailableError, now: number): void {
    const { holder, expiresAt, inCooldown, retryAfterMs } = refusal;
    if (holder === undefined || expiresAt === undefined) this.#holdings.delete(permit);
    else {
      const claimableAt = now + retryAfterMs;
      // A refused owner is not let in again.
      const reentrant = false;
      this.#holdings.set(permit, { permit, owner: holder, expiresAt, inCooldown, reentrant, claimableAt });
    }
  }

  /** Whether somebody holds a permit beyond N, which was given by a caller with more permits. */
  isCrowded(now: number): boolean {
    return this.#live(now).some(({ permit }) => permit >= this.#permits);
  }

  candidates(now: number): Candidates {
    const free: number[] = [];
    const over: number[] = [];
    const live = new Set(this.#live(now).map(({ permit }) => permit));
    let above = [...live].filter((permit) => permit >= this.#permits).length;
    for (let permit = this.#permits - 1; permit >= 0; permit -= 1) {
      if (live.has(permit)) above += 1;
      else if (permit + 1 + above <= this.#permits) (this.#holdings.has(permit) ? over : free).push(permit);
    }
    return { free, over };
  }

  /** The live permit of an owner, acquired reentrantly, that is entered again; not one that is closed or beyond N. */
  heldBy(owner: string, now: number): number | undefined {
    return this.#live(now).find((holding) => isOpenTo(holding, owner) && holding.permit < this.#permits)
      ?.permit;
  }

  /** How many permits a caller could take, one after the other. */
  freeAt(now: number): number {
    return Math.max(0, this.#permits - this.#live(now).length);
  }

  /** The holder whose end lets the next one in: the first to end, unless more than N hold permits. */
  nextToEnd(now: number): Holding | undefined {
    const live = this.#live(now).sort((one, other) => one.claimableAt - other.claimableAt);
    return live[live.length - this.#permits];
  }

  #live(now: number): Holding[] {
    return [...this.#holdings.values()].filter(({ claimableAt }) => claimableAt > now);
  }
}
