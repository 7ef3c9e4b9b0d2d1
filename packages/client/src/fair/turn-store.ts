import { kindOf, type LeaseWrite } from "../expressions.ts";
import { endIfUnrenewed, inTurn, noteHold, type Turn } from "../expressions-fair.ts";
import { PassingStore } from "../passing-store.ts";
import { isOpenTo, readRecord } from "../record.ts";
import type { CallOptions, Item, LeaseStore, UpdateRequest, UpdateResult } from "../store.ts";
import type { Clock } from "../time/clock.ts";

/**
 * The store of one acquisition of a fair lock: adds to the lease's own writes what the queue has to do with them.
 *
 * So an acquisition, the removal of its place and the passing over of dead ones are one write, and everything that the
 * protocol does about lost and late answers holds for the queue too.
 */
export class TurnStore extends PassingStore {
  /** What the next attempt has to do with the queue. */
  turn: Turn = { own: undefined, passed: [] };
  /** The lock's item as the last write has shown it. */
  lastItem: Item | undefined;
  /** The only version of the lease that a release may end; undefined for any. */
  endsVersion: number | undefined;
  /** What the release notes; undefined to note nothing. */
  typicalMs: (() => number) | undefined;
  /** Called when the release has opened the lock. */
  onReleased: () => void = () => undefined;
  /** Whose own lease may be entered past the queue, while it lasts; undefined for nobody's. */
  readonly #reentrantOwner: string | undefined;
  readonly #clock: Clock;

  constructor(store: LeaseStore, clock: Clock, reentrantOwner?: string) {
    super(store);
    this.#clock = clock;
    this.#reentrantOwner = reentrantOwner;
  }

  override async update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult> {
    const kind = kindOf(request);
    const result = await this.store.update(this.#laden(request, kind), options);
    const isRefusedEnd = kind === "end" && !result.applied;
    if (kind === "acquire" || kind === "takeOver" || isRefusedEnd) this.lastItem = result.item;
    else if (kind === "end" && result.applied && request.values[":closedUntil"] === undefined)
      this.onReleased();
    return result;
  }

  #laden(request: UpdateRequest, kind: LeaseWrite): UpdateRequest {
    if (kind === "end") {
      const ending = this.typicalMs === undefined ? request : noteHold(request, this.typicalMs());
      return this.endsVersion === undefined ? ending : endIfUnrenewed(ending, this.endsVersion);
    }
    if (kind === "acquire") return inTurn(request, this.turn);
    if (kind === "takeOver") return this.#isReturn() ? request : inTurn(request, this.turn);
    return request;
  }

  /** Whether the takeover is an owner's return to its own lease, which nobody else could have. */
  #isReturn(): boolean {
    const held = readRecord(this.lastItem);
    if (held === undefined || this.#reentrantOwner === undefined) return false;
    if (!isOpenTo(held, this.#reentrantOwner)) return false;
    // One whose time is over by its own clock comes in its turn, as everybody who could take it over.
    return this.#clock.now() < held.expiresAt;
  }
}
