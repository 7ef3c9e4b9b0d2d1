import type { LeaseEvent } from "@leasehold/client";
import {
  type Belief,
  type Ended,
  LeaseServiceError,
  type ProtocolContext,
  pause,
  type SendUpdate,
  Tenancy,
  type TenancyTerms,
} from "@leasehold/client/internal";

/** An ending waits this long for a renewal that is under way before it cuts it off. */
const renewalGraceMs = 1_000;

/**
 * A worker's hold on a task: renewed as any lease is, and ended by writes of the task's own.
 *
 * No renewal runs beside such a write, and none begins before its outcome is known.
 */
export class ClaimTenancy extends Tenancy {
  readonly #context: ProtocolContext;
  readonly #endedByWorker: { value: boolean };
  #giveBack: () => Promise<boolean> = () => Promise.resolve(false);
  #renewing: { readonly done: Promise<void>; readonly cut: AbortController } | undefined;
  #isPaused = false;

  constructor(context: ProtocolContext, terms: TenancyTerms, belief: Belief) {
    const endedByWorker = { value: false };
    // To a lease, an end without its own release is a loss; here the worker has ended it.
    const publish = (event: LeaseEvent): void => {
      if (!(event.type === "lost" && endedByWorker.value)) context.publish(event);
    };
    super({ ...context, publish }, terms, belief);
    this.#context = context;
    this.#endedByWorker = endedByWorker;
  }

  /** How the task is given back where its claim is released as any lease is. */
  releaseBy(giveBack: () => Promise<boolean>): void {
    this.#giveBack = giveBack;
  }

  override async release(): Promise<Ended> {
    return { wasOurs: await this.#giveBack(), isRecorded: false };
  }

  override letGo(): void {
    this.#context.lifecycle.follow(this.removal, this.#giveBack());
  }

  override renew(send: SendUpdate): Promise<void> {
    if (this.#isPaused) {
      const message = "the task is being ended: renew it where that has failed";
      return Promise.reject(new LeaseServiceError("LEASE_CONFLICT", message));
    }
    const cut = this.#renewing?.cut ?? new AbortController();
    const done = super.renew((request, options) =>
      send(request, { ...options, signal: AbortSignal.any([options.signal, cut.signal]) }),
    );
    const renewing = { done, cut };
    this.#renewing = renewing;
    const forget = (): void => {
      if (this.#renewing === renewing) this.#renewing = undefined;
    };
    // Ignored: the caller of this very renewal has the error.
    done.then(forget, forget);
    return done;
  }

  /** Lets a renewal that is under way finish, or cuts it off; none begins until `resume`. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    const renewing = this.#renewing;
    if (renewing === undefined) return;
    // Ignored: the renewal's own caller has its error.
    const done = renewing.done.catch(() => undefined);
    const grace = new AbortController();
    const graceIsOver = pause(this.#context.clock, renewalGraceMs, grace.signal);
    await Promise.race([done, graceIsOver]);
    grace.abort();
    renewing.cut.abort(new LeaseServiceError("LEASE_NO_ANSWER", "cut off by the end of its task"));
    await done;
  }

  /** Lets renewals begin again, for it is not known to have ended. */
  resume(): void {
    this.#isPaused = false;
  }

  /** The worker has ended it, or has learnt that it is not the worker's any more (`confirmed` is false). */
  close(confirmed: boolean): void {
    const { key, place, owner, fencingToken, acquiredAt } = this.terms.record;
    this.#endedByWorker.value = true;
    this.validity.end(confirmed ? "released" : "taken");
    const heldMs = Math.max(0, this.#context.clock.now() - acquiredAt);
    this.#context.publish({ type: "released", key, place, owner, fencingToken, heldMs, confirmed });
  }
}
