import { LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
import { metricNames, metricsLine } from "@leasehold/client/metrics";
import type { Context } from "aws-lambda";
import { type Attempt, Attempts } from "./attempts.ts";
import { admit, patienceMs, Superseded } from "./entrance.ts";
import { Hold, type HoldTerms } from "./hold.ts";
import { type Invocation, readInvocation } from "./invocation.ts";
import type { LeaseLockOptions, SkipReason } from "./options.ts";
import { type MakeClient, readOptions, type Settings } from "./settings.ts";
import { stopOnShutdown } from "./shutdown.ts";
import { LockSignal } from "./signal.ts";
import { isHttpRequest, lockedResponse } from "./trigger.ts";

/** An invocation whose handler is not to run, and what it answers instead. */
export interface Skipped {
  readonly skipped: true;
  readonly result: unknown;
}

type JobMetric = "jobSucceeded" | "jobFailed" | "jobSkipped";

/** Lets invocations in, one at a time for each key: what `leaseLock` and `leased` have in common. */
export class Guard<TEvent> {
  readonly #settings: Settings<TEvent>;
  readonly #attempts: Attempts;

  /** Throws InvalidOptionsError. */
  constructor(options: LeaseLockOptions<TEvent>, makeClient: MakeClient) {
    this.#settings = readOptions(options, makeClient);
    this.#attempts = new Attempts(this.#settings.clock);
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
    let waits = true;
    const { client, ownsClient } = settings;
    const isWaiting = (): boolean => waits;
    const stopListening = stopOnShutdown({ client, ownsClient, signal, isWaiting, ended });
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
      const hold = await this.#admit(invocation, signal, ended, callbacks);
      waits = false;
      return hold;
    } catch (error) {
      close();
      if (error instanceof Superseded) return this.#skip(event, context, undefined);
      if (error instanceof SlotDoneError) return this.#skip(event, context, error);
      if (!(error instanceof LeaseUnavailableError)) {
        this.#measure("jobFailed");
        throw error;
      }
      // The work of an attempt that holds the lock is not done: were this one a success, nobody would try again.
      const isOwn = error.holder === invocation.owner && !error.inCooldown;
      if (invocation.whenHeld !== "skip" || isOwn) throw error;
      return this.#skip(event, context, error);
    }
  }

  async #admit(
    invocation: Invocation,
    signal: LockSignal,
    ended: Promise<void>,
    callbacks: Pick<HoldTerms, "close" | "stopListening" | "skipResult">,
  ): Promise<Hold> {
    const settings = this.#settings;
    const { clock, timeoutMarginMs, resume } = settings;
    const waitMs = patienceMs(settings, invocation.remainingMs());
    const deadline = clock.monotonic() + waitMs;
    const attempt: Attempt = { hold: undefined, ended };
    const wait = { alone: resume, deadline, signal: signal.signal };
    const end = await this.#attempts.begin(invocation, attempt, wait);
    const forget = (): void => {
      end();
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

  async #skip(event: TEvent, context: Context, error: SkipReason): Promise<Skipped> {
    this.#measure("jobSkipped");
    return { skipped: true, result: await this.#resultOf(event, context, error) };
  }

  #resultOf(event: TEvent, context: Context, error: SkipReason): unknown {
    const { skipResult } = this.#settings;
    if (typeof skipResult === "function") return skipResult(event, context, error);
    const isRefusal = error instanceof LeaseUnavailableError && isHttpRequest(event);
    return skipResult === undefined && isRefusal ? lockedResponse(error) : skipResult;
  }

  #measure(metric: JobMetric, leaseTable?: string): void {
    const { job, writeMetrics, clock, tableName = leaseTable } = this.#settings;
    if (job === undefined || tableName === undefined) return;
    writeMetrics?.(metricsLine({ tableName, job }, { [metricNames[metric]]: 1 }, clock.now()));
  }
}
