import { LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
import { metricNames, metricsLine } from "@leasehold/client/metrics";
import type { Context } from "aws-lambda";
import { admit, patienceMs, Superseded } from "./entrance.ts";
import { Hold, type HoldTerms } from "./hold.ts";
import { type Invocation, readInvocation } from "./invocation.ts";
import { type LeaseLockOptions, readOptions, type Settings, type SkipReason } from "./options.ts";
import { stopOnShutdown } from "./shutdown.ts";
import { LockSignal } from "./signal.ts";

/** An invocation whose handler is not to run, and what it answers instead. */
export interface Skipped {
  readonly skipped: true;
  readonly result: unknown;
}

/** An attempt at an invocation: Lambda may make another one while this one's handler still runs, unnoticed. */
interface Attempt {
  hold: Hold | undefined;
  readonly ended: Promise<void>;
}

type JobMetric = "jobSucceeded" | "jobFailed" | "jobSkipped";

/** Lets invocations in, one at a time for each key: what `leaseLock` and `leased` have in common. */
export class Guard<TEvent> {
  readonly #settings: Settings<TEvent>;
  /** By key and owner. */
  readonly #attempts = new Map<string, Attempt>();

  /** Throws InvalidOptionsError. */
  constructor(options: LeaseLockOptions<TEvent>) {
    this.#settings = readOptions(options);
  }

  /** Wins the lock for an invocation, or says what it answers without running its handler. */
  async enter(event: TEvent, context: Context, outer?: AbortSignal): Promise<Hold | Skipped> {
    const settings = this.#settings;
    const invocation = readInvocation(settings, event, context);
    const signal = new LockSignal(settings.clock);
    signal.follow(outer);
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const stopListening = stopOnShutdown({ signal, ended });
    const close = (): void => {
      stopListening();
      signal.dispose();
      end();
    };
    try {
      const callbacks = {
        close,
        stopListening,
        skipResult: (): unknown => this.#resultOf(event, context, undefined),
      };
      return await this.#admit(invocation, signal, { hold: undefined, ended }, callbacks);
    } catch (error) {
      close();
      if (error instanceof Superseded) return this.#skip(event, context, undefined);
      if (error instanceof SlotDoneError) return this.#skip(event, context, error);
      if (!(error instanceof LeaseUnavailableError)) {
        this.#measure("jobFailed");
        throw error;
      }
      if (settings.whenHeld !== "skip" || error instanceof StillRunningError) throw error;
      return this.#skip(event, context, error);
    }
  }

  async #admit(
    invocation: Invocation,
    signal: LockSignal,
    attempt: Attempt,
    callbacks: Pick<HoldTerms, "close" | "stopListening" | "skipResult">,
  ): Promise<Hold> {
    const settings = this.#settings;
    const { clock, timeoutMarginMs } = settings;
    const id = JSON.stringify([invocation.key, invocation.owner]);
    const waitMs = patienceMs(settings, invocation.remainingMs());
    const deadline = clock.monotonic() + waitMs;
    await this.#endOfEarlier(id, invocation, deadline, signal);
    this.#attempts.set(id, attempt);
    const forget = (): void => {
      if (this.#attempts.get(id) === attempt) this.#attempts.delete(id);
      callbacks.close();
    };
    try {
      const leftMs = Math.max(0, Math.floor(deadline - clock.monotonic()));
      const { lease, renewEveryMs } = await admit(settings, invocation, leftMs, signal.signal);
      if (!lease.held) throw lease.signal.reason;
      signal.follow(lease.signal);
      const remainingMs = invocation.remainingMs();
      if (remainingMs !== undefined) {
        signal.timeoutIn(remainingMs - Math.min(timeoutMarginMs, remainingMs / 4));
      }
      const hold = new Hold({
        settings,
        invocation,
        lease,
        renewEveryMs,
        signal,
        ...callbacks,
        close: forget,
        measure: (metric) => this.#measure(metric, lease.toJSON().tableName),
      });
      attempt.hold = hold;
      return hold;
    } catch (error) {
      forget();
      throw error;
    }
  }

  /**
   * Waits for an earlier attempt at the same event in this very process, whose handler may still run: the client would
   * let its owner share the lease. It is over when its lease is.
   */
  async #endOfEarlier(
    id: string,
    { key, owner }: Invocation,
    deadline: number,
    signal: LockSignal,
  ): Promise<void> {
    const { clock } = this.#settings;
    for (;;) {
      const earlier = this.#attempts.get(id);
      // Asking for the loss looks at the clock: timers do not run in a frozen process.
      if (earlier === undefined || earlier.hold?.lock.lease.loss !== undefined) return;
      const leftMs = deadline - clock.monotonic();
      if (leftMs <= 0) {
        const { expiresAt = clock.now() } = earlier.hold?.lock.lease ?? {};
        const retryAfterMs = Math.max(0, expiresAt - clock.now());
        throw new StillRunningError(key, { owner, expiresAt, closed: false }, retryAfterMs);
      }
      signal.signal.throwIfAborted();
      await new Promise<void>((resolve) => {
        const cancel = clock.schedule(resolve, leftMs);
        const onEnd = (): void => {
          cancel();
          resolve();
        };
        void earlier.ended.then(onEnd);
        signal.signal.addEventListener("abort", onEnd, { once: true });
      });
    }
  }

  async #skip(event: TEvent, context: Context, error: SkipReason): Promise<Skipped> {
    this.#measure("jobSkipped");
    return { skipped: true, result: await this.#resultOf(event, context, error) };
  }

  #resultOf(event: TEvent, context: Context, error: SkipReason): unknown {
    const { skipResult } = this.#settings;
    return typeof skipResult === "function" ? skipResult(event, context, error) : skipResult;
  }

  #measure(metric: JobMetric, leaseTable?: string): void {
    const { job, writeMetrics, clock, tableName = leaseTable } = this.#settings;
    if (job === undefined || tableName === undefined) return;
    writeMetrics?.(metricsLine({ tableName, job }, { [metricNames[metric]]: 1 }, clock.now()));
  }
}

/** An earlier attempt at the same event has the lock: its work is not done, and so it is never skipped. */
class StillRunningError extends LeaseUnavailableError {
  override readonly name = "LeaseUnavailableError";
}
