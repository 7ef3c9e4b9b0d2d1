import type { ClientInternals } from "../client-internals.ts";
import { LeaseUnavailableError } from "../errors/errors.ts";
import type { LeaseAddress } from "../expressions.ts";
import { lockWithQueue } from "../expressions-fair.ts";
import { type Arrival, Arrivals } from "../fair/arrivals.ts";
import { QueueFullError } from "../fair/errors.ts";
import type { FairTerms } from "../fair/options.ts";
import { inLine, shortOwner, type WaitingCaller } from "../fair/queue.ts";
import type { Observer } from "../fair/sighting.ts";
import type { Lease } from "../lease.ts";
import type { LookOptions } from "../looks.ts";
import { callBudgetMs } from "../protocol/context.ts";
import { claimableIn } from "../protocol/expiry-detector.ts";
import type { LeaseRecord } from "../record.ts";
import { turnPlace } from "../schema-semaphore.ts";
import { withBudget } from "../time/budget.ts";

/** A dead one in the turnstile keeps the others waiting for no longer than the dead head of a fair lock's queue does. */
const turnLeaseMs = 10_000;

/** What one look at the turnstile has shown. */
export interface TurnstileState {
  /** Those who live: the one in the turnstile, and then its queue. */
  readonly waiting: readonly WaitingCaller[];
  /** What a caller that does not wait is told where permits are free, but not for it. */
  readonly refusal: LeaseUnavailableError;
}

/** One who wants to pass. */
export interface Passer {
  readonly owner: string;
  /** When it came, in epoch milliseconds. */
  readonly since: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly fair: FairTerms;
}

/**
 * Where those who wait for a permit of a fair semaphore do so: one in it, who alone looks for a permit, and a queue
 * behind it. It is a fair lock's lease with its queue, held for as long as its holder takes to find a permit.
 *
 * The number of permits that are out does not rest on it, but on the permits' own leases.
 */
export class Turnstile {
  readonly #client: ClientInternals;
  readonly #key: string;
  readonly #lock: LeaseAddress;
  /** How many callers of one object are in it or behind it. */
  #here = 0;
  readonly #arrivals = new Arrivals();

  constructor(client: ClientInternals, key: string) {
    this.#client = client;
    this.#key = key;
    this.#lock = { key, sortKey: turnPlace };
  }

  /** Whether a caller of this object waits: then whoever comes after it need not look to know. */
  get isUsedHere(): boolean {
    return this.#here > 0;
  }

  /**
   * How long it typically takes from one permit that becomes free to the next while others wait: for so long each
   * holds the turnstile. Undefined while nothing is known of it.
   */
  get typicalMs(): number | undefined {
    return this.#observer.typicalMs;
  }

  get #observer(): Observer {
    return this.#client.queues.company(this.#lock).observer;
  }

  /** Callers of one object that have to wait begin to in the order of their calls. */
  arrive(): Arrival {
    return this.#arrivals.arrive();
  }

  /** Looks who waits: 1 consistent read. */
  async look({
    budgetMs = callBudgetMs,
    signal,
  }: Omit<LookOptions, "consistent"> = {}): Promise<TurnstileState> {
    const { clock, store } = this.#client.context;
    const request = lockWithQueue(this.#lock, true);
    const item = await withBudget(clock, budgetMs, signal, (call) => store.get(request, call));
    const observer = this.#observer;
    const { record, places } = observer.see(item);
    const heldForMs = record === undefined ? 0 : claimableIn(this.#client.context.detector.judge(record));
    const living = observer.living(places);
    const passing = heldForMs > 0 ? record : undefined;
    const waiting = inLine([...(passing === undefined ? [] : [waiterIn(passing)]), ...living]);
    const endsInMs = Math.max(heldForMs, ...living.map((place) => observer.lapses.lapsesIn(place)));
    const what = `the turn at the semaphore ${JSON.stringify(this.#key)} is`;
    const details = { what, waiting: living.length };
    return {
      waiting,
      refusal: new LeaseUnavailableError(this.#key, passing, Math.ceil(endsInMs), details),
    };
  }

  /** Refuses one more waiter where as many wait as may. */
  checkRoom(waiting: number, { maxWaiters }: FairTerms): void {
    if (waiting >= maxWaiters) throw new QueueFullError(this.#key, waiting, maxWaiters);
  }

  /** Counts one who waits, from now until the work is over. */
  async count<T>(work: () => Promise<T>): Promise<T> {
    this.#here += 1;
    try {
      return await work();
    } finally {
      this.#here -= 1;
    }
  }

  /**
   * Waits for one's turn in the turnstile, and tells one's place on the way: 2 at the head of its queue.
   *
   * Rejects as every fair acquisition does.
   */
  async enter({ owner, since, waitMs, signal, fair }: Passer): Promise<Lease> {
    const { maxWaiters, onPlace } = fair;
    const { acquireAt, times } = this.#client;
    const options = {
      owner,
      leaseDurationMs: Math.max(turnLeaseMs, times.shortestLeaseMs),
      heartbeat: true,
      data: { since },
      waitMs,
      ...(signal === undefined ? {} : { signal }),
    };
    // The one in the turnstile waits too, but is not in its queue.
    const behind: FairTerms = {
      maxWaiters: maxWaiters - 1,
      onPlace:
        onPlace && (({ place, aboutMs }) => onPlace({ place: place + 1, aboutMs: this.#later(aboutMs) })),
    };
    try {
      return await acquireAt(this.#key, turnPlace, options, behind);
    } catch (error) {
      if (error instanceof QueueFullError) throw new QueueFullError(this.#key, error.waiting + 1, maxWaiters);
      throw error;
    }
  }

  /** From one's turn in the turnstile it is one typical hold of it to a permit. */
  #later(aboutMs: number | undefined): number | undefined {
    const { typicalMs } = this;
    return aboutMs === undefined || typicalMs === undefined ? undefined : aboutMs + typicalMs;
  }
}

/** The one in the turnstile, who may have come long before its turn. */
function waiterIn({ owner, acquiredAt, data }: LeaseRecord): Pick<WaitingCaller, "owner" | "since"> {
  const since = (data as { readonly since?: unknown } | undefined)?.since;
  return { owner: shortOwner(owner), since: typeof since === "number" ? since : acquiredAt };
}
