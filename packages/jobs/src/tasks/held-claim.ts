import type { LeaseEvent } from "@leasehold/client";
import {
  type Belief,
  type Ended,
  HeldLease,
  type HeldLeaseTerms,
  LeaseServiceError,
  LockForm,
  type ProtocolContext,
  type SendUpdate,
} from "@leasehold/client/internal";

/**
 * A worker's hold on a task: renewed like any lease, and ended by the task's own writes.
 *
 * No renewal runs while such a write is in progress, and none begins before its result is known.
 */
export class HeldClaim extends HeldLease {
  readonly #context: ProtocolContext;
  readonly #endedByWorker: { value: boolean };
  #giveBack: () => Promise<boolean> = () => Promise.resolve(false);
  #isPaused = false;

  constructor(context: ProtocolContext, terms: HeldLeaseTerms, belief: Belief) {
    const endedByWorker = { value: false };
    // A lease that ends without its own release is lost, but here the worker has ended the task.
    const publish = (event: LeaseEvent): void => {
      if (!(event.type === "lost" && endedByWorker.value)) context.publish(event);
    };
    super({ ...context, publish }, new LockForm(terms.record.key, terms.record.sortKey), terms, belief);
    this.#context = context;
    this.#endedByWorker = endedByWorker;
  }

  /** Sets how the task is given back when its claim is released like any lease. */
  releaseBy(giveBack: () => Promise<boolean>): void {
    this.#giveBack = giveBack;
  }

  override async release(): Promise<Ended> {
    return { wasOurs: await this.#giveBack(), isRecorded: false };
  }

  override letGo(): void {
    this.#context.lifecycle.follow(this, this.#giveBack());
  }

  override renew(send?: SendUpdate): Promise<void> {
    if (!this.#isPaused) return super.renew(send);
    const message = "the task is being ended: renew it only after that has failed";
    return Promise.reject(new LeaseServiceError("LEASE_CONFLICT", message));
  }

  /** Lets a renewal in progress finish, or cuts it off. No renewal begins until `resume`. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    await this.settleRenewal();
  }

  /** Allows renewals again: the task is not known to have ended. */
  resume(): void {
    this.#isPaused = false;
  }

  /** The worker has ended the task, or has learnt that another worker has it (`confirmed` is false). */
  close(confirmed: boolean): void {
    const { key, sortKey, owner, fencingToken, acquiredAt } = this.terms.record;
    this.#endedByWorker.value = true;
    this.deadline.end(confirmed ? "released" : "taken");
    const heldMs = Math.max(0, this.#context.clock.now() - acquiredAt);
    this.#context.publish({ type: "released", key, sortKey, owner, fencingToken, heldMs, confirmed });
  }
}
