import { type Lease, LeaseLostError, type LeaseLostReason } from "@leasehold/client";
import { hasProtected } from "@leasehold/client/internal";
import type { DurableLock } from "./durable-lock.ts";
import { isPassing, portably } from "./failures.ts";

/** Counts the work that runs under a lease in this process. */
export class Workload {
  #running = 0;
  #whenIdle: (() => void)[] = [];

  get isWorking(): boolean {
    return this.#running > 0;
  }

  async run<T>(body: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await body();
    } finally {
      this.#running -= 1;
      if (this.#running === 0) for (const callBack of this.#whenIdle.splice(0)) callBack();
    }
  }

  /** Resolves when nothing runs. */
  async idle(): Promise<void> {
    if (this.isWorking) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }
}

/** How a lease was lost, in the form in which a checkpoint keeps it. */
export interface Loss {
  readonly state: "lost";
  readonly reason: LeaseLostReason;
  readonly message: string;
}

/** The result of a renewal. */
export type Beat = { readonly state: "renewed" | "unanswered" } | Loss;

/** How the release has ended; unknown when an earlier attempt may have done it. */
export type ReleaseOutcome = "released" | "unknown" | Loss;

/** A lease that a durable execution holds, as one of its invocations sees it. */
export class ExecutionLease {
  readonly lease: Lease;
  readonly #lock: DurableLock;
  readonly #workload: Workload;
  /** A step that starts while more than this is left sends nothing. */
  readonly #enoughMs: number;
  /** What this invocation has seen first of the work: that it runs, or that it has ended. */
  readonly #work = Promise.withResolvers<"runs" | "ended">();
  /** Whether this invocation has begun to release it. */
  #isEnding = false;

  constructor(lease: Lease, lock: DurableLock, workload: Workload) {
    this.lease = lease;
    this.#lock = lock;
    this.#workload = workload;
    this.#enoughMs = (lock.leaseDurationMs * 2) / 3;
  }

  /** Tells that the work runs in this invocation, or that it has ended, perhaps in an earlier one. */
  workIs(state: "runs" | "ended"): void {
    this.#work.resolve(state);
  }

  /**
   * Runs a piece of the work, if the lease protects it. 1 request for the first piece of an invocation, and for a
   * piece that starts when a third of the lease is over.
   *
   * Before the work has begun, it rejects when the lease is lost, or when that is not known, with an error that a
   * checkpoint keeps. After that it rejects with the work's own error.
   */
  async run<T>(body: () => Promise<T>): Promise<T> {
    return await this.#workload.run(async () => {
      await portably(() => this.#check());
      return await body();
    });
  }

  async #check(): Promise<void> {
    const { lease } = this;
    if (lease.remainingMs() > this.#enoughMs) return;
    try {
      await lease.renew();
    } catch (error) {
      // It was confirmed in this invocation, and its time is not over.
      if (isPassing(error) && lease.held) return;
      throw error;
    }
  }

  /**
   * Renews the lease while the work goes on: 1 request; 1 more when the lease was released.
   *
   * A release by this execution is no loss: an earlier invocation may have died before it could say so. Then the
   * repeated release reports how the lease has ended.
   */
  async beat(): Promise<Beat> {
    // An invocation may have released the lease and died before it could say so, and another caller may have it.
    if ((await this.#work.promise) === "ended") return { state: "unanswered" };
    try {
      await this.lease.renew();
      return { state: "renewed" };
    } catch (error) {
      if (isPassing(error)) return { state: "unanswered" };
      if (!(error instanceof LeaseLostError)) throw error;
      return (await this.#isOwnRelease(error)) ? { state: "unanswered" } : lossOf(error);
    }
  }

  async #isOwnRelease({ reason }: LeaseLostError): Promise<boolean> {
    if (reason !== "released") return false;
    if (this.#isEnding) return true;
    try {
      return await this.#lock.wasReleasedByHolder(this.lease.token);
    } catch (error) {
      // The next renewal looks again.
      if (isPassing(error)) return true;
      throw error;
    }
  }

  /**
   * Releases the lock when nothing runs under it any more, and records its slot as done when the work was completed.
   * 1 request; none when the lock is known to be another caller's; 1 more to find how it was lost.
   */
  async end(completed: boolean, isRepeated: boolean): Promise<ReleaseOutcome> {
    await this.#workload.idle();
    const { loss } = this.lease;
    this.#isEnding = true;
    const wasOurs =
      completed && loss === undefined ? await this.lease.complete() : await this.lease.release();
    if (wasOurs && hasProtected(loss)) return "released";
    if (isRepeated) return "unknown";
    const found = loss ?? (await this.#lock.lossOf(this.lease.toJSON()));
    return found === undefined ? "unknown" : lossOf(found);
  }
}

function lossOf({ reason, message }: LeaseLostError): Loss {
  return { state: "lost", reason, message };
}
