import { endIfUnrenewed, inTurn, noteHold, type Turn } from "../expressions-fair.ts";
import type { Ending, Grant } from "../protocol/lease-form.ts";
import { LockForm } from "../protocol/lock-form.ts";
import { isOpenTo, type LeaseRecord } from "../record.ts";
import type { Write } from "../store/write.ts";
import type { Item } from "../store.ts";
import type { Clock } from "../time/clock.ts";

/**
 * The form of a fair lock's lease: adds to the lease's own writes what the queue has to do with them.
 *
 * So an acquisition, the removal of its place and the passing over of dead ones are one write, and everything that the
 * protocol does about lost and late answers holds for the queue too.
 */
export class QueuedForm extends LockForm {
  /** What the next attempt has to do with the queue. */
  turn: Turn = { own: undefined, passed: [] };
  /** The only version of the lease that a release may end; undefined for any. */
  endsVersion: number | undefined;
  /** What the release notes; undefined to note nothing. */
  typicalMs: (() => number) | undefined;
  /** What the last answer has shown. */
  shown: readonly LeaseRecord[] = [];
  /** Called when the release has opened the lock. */
  onReleased: () => void = () => undefined;
  /** Whose own lease may be entered past the queue, while it lasts; undefined for nobody's. */
  readonly #reentrantOwner: string | undefined;
  readonly #clock: Clock;
  #opens = true;

  constructor(
    lock: { readonly key: string; readonly sortKey: string },
    clock: Clock,
    reentrantOwner?: string,
  ) {
    super(lock.key, lock.sortKey);
    this.#clock = clock;
    this.#reentrantOwner = reentrantOwner;
  }

  override acquire(grant: Grant, passed: readonly LeaseRecord[]): Write {
    const write = super.acquire(grant, passed);
    return this.#isReturn(passed) ? write : inTurn(write, this.turn);
  }

  override release(ending: Ending): Write {
    this.#opens = ending.cooldown === undefined;
    const write = super.release(ending);
    const noted = this.typicalMs === undefined ? write : noteHold(write, this.typicalMs());
    return this.endsVersion === undefined ? noted : endIfUnrenewed(noted, this.endsVersion);
  }

  override leasesIn(item: Item | undefined): readonly LeaseRecord[] {
    this.shown = super.leasesIn(item);
    return this.shown;
  }

  released(): void {
    if (this.#opens) this.onReleased();
  }

  /** Whether the takeover is an owner's return to its own lease, which nobody else could have. */
  #isReturn([held]: readonly LeaseRecord[]): boolean {
    if (held === undefined || this.#reentrantOwner === undefined) return false;
    if (!isOpenTo(held, this.#reentrantOwner)) return false;
    // One whose time is over by its own clock comes in its turn, as everybody who could take it over.
    return this.#clock.now() < held.expiresAt;
  }
}
