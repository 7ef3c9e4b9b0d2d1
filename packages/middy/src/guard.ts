import type { Lease } from "@leasehold/client";
import { deferred, LeaseUnavailableError, onAbort, SlotDoneError, settles } from "@leasehold/client/internal";
import type { Context } from "aws-lambda";
import { admit, patienceMs, Superseded } from "./entrance.ts";
import { Hold } from "./hold.ts";
import { type Invocation, readInvocation } from "./invocation.ts";
import type { LeaseLockOptions, SkipReason } from "./options.ts";
import { type MakeClient, type MiddlewareSettings, readSettings } from "./settings.ts";
import { type EventAttempt, stopOnShutdown } from "./shutdown.ts";
import { InvocationEndingError, LockSignal } from "./signal.ts";
import { refusalTo } from "./trigger.ts";

/** An invocation whose handler does not run, and its answer. */
export interface Skipped {
  readonly skipped: true;
  readonly result: unknown;
}

/** Admits invocations, one at a time for each key: the common part of `leaseLock` and `leased`. */
export class Guard<TEvent> {
  readonly settings: MiddlewareSettings<TEvent>;
  /** With `resume`, this process's latest attempts at events, by key and owner. */
  readonly #attempts = new Map<string, EventAttempt>();

  /** Throws InvalidOptionsError. */
  constructor(options: LeaseLockOptions<TEvent>, makeClient: MakeClient) {
    this.settings = readSettings(options, makeClient);
  }

  /** Acquires the lock for an invocation, or returns its answer without running its handler. */
  async enter(event: TEvent, context: Context, outer?: AbortSignal): Promise<Hold | Skipped> {
    const settings = this.settings;
    const { clock, metrics } = settings;
    const invocation = readInvocation(settings, event, context);
    const id = JSON.stringify([invocation.key, invocation.owner]);
    const signal = new LockSignal(clock);
    signal.follow(outer);
    onAbort(signal.signal, (reason) => {
      // Lambda may kill the process before the invocation's end.
      if (reason instanceof InvocationEndingError) metrics?.write();
    });
    const { promise: ended, resolve: end } = deferred<void>();
    const since = clock.monotonic();
    const attempt: EventAttempt = { settings, signal, hold: undefined, ended };
    const stopListening = stopOnShutdown(attempt);
    const close = (): void => {
      if (this.#attempts.get(id) === attempt) this.#attempts.delete(id);
      stopListening();
      signal.dispose();
      end();
    };
    let lease: Lease | undefined;
    metrics?.begin(context);
    try {
      const deadline = since + patienceMs(settings, invocation.remainingMs());
      if (settings.resume) await this.#untilAlone(id, attempt, invocation, deadline);
      const leftMs = Math.max(0, Math.floor(deadline - clock.monotonic()));
      const admission = await admit(settings, invocation, leftMs, signal.signal);
      lease = admission.lease;
      metrics?.granted(lease);
      signal.follow(lease.signal);
      // Reading `held` looks at the clock. Nothing begins that was told to stop while the answer was on its way.
      void lease.held;
      signal.signal.throwIfAborted();
      const workMs = invocation.workMs();
      if (workMs !== undefined) signal.timeoutIn(workMs);
      attempt.hold = new Hold({
        settings,
        invocation,
        ...admission,
        signal,
        close,
        stopListening,
        skipResult: () => this.#resultOf(event, context, undefined),
        measure: (outcome) => metrics?.end(context, outcome),
      });
      return attempt.hold;
    } catch (error) {
      // Ignored: why the handler does not run comes first, and the `error` event reports a mistake.
      await lease?.release().catch(() => undefined);
      close();
      const isHeld = error instanceof LeaseUnavailableError;
      // An attempt that holds the lock has not done its work. If this one counted as a success, nobody would try again.
      const isOwn = isHeld && error.holder === invocation.owner && !error.inCooldown;
      const isSkipped = isHeld ? invocation.whenHeld === "skip" && !isOwn : error instanceof SlotDoneError;
      if (isSkipped || error instanceof Superseded) {
        metrics?.end(context, isHeld && error.pause !== undefined ? "jobPaused" : "jobSkipped");
        const reason = isSkipped ? (error as SkipReason) : undefined;
        return { skipped: true, result: await this.#resultOf(event, context, reason) };
      }
      metrics?.end(context, isHeld ? undefined : "jobFailed");
      throw isHeld ? advised(error, this.#adviceOn(invocation, isOwn), clock.monotonic() - since) : error;
    }
  }

  /**
   * Waits until an earlier attempt at the same event has ended, which means that its lease has ended. With `resume`, an
   * attempt takes an earlier attempt's lease over at once, because that attempt is dead. But in the same process it may
   * be alive: an early timeout has ended its invocation, and its handler still runs. Then this attempt is the one that
   * later attempts wait for.
   *
   * Rejects with LeaseUnavailableError at the deadline, on the monotonic clock, and with the signal's reason.
   */
  async #untilAlone(
    id: string,
    attempt: EventAttempt,
    { key, owner }: Invocation,
    deadline: number,
  ): Promise<void> {
    const { clock } = this.settings;
    for (;;) {
      const earlier = this.#attempts.get(id);
      const lease = earlier?.hold?.lock.lease;
      // Reading the loss looks at the clock: timers do not run in a frozen process.
      if (earlier === undefined || lease?.loss !== undefined) {
        // At once: several may have waited for the same attempt.
        this.#attempts.set(id, attempt);
        return;
      }
      const leftMs = deadline - clock.monotonic();
      if (leftMs <= 0) {
        const expiresAt = lease?.expiresAt ?? clock.now();
        throw new LeaseUnavailableError(
          key,
          { owner, expiresAt, inCooldown: false },
          Math.ceil(lease?.remainingMs() ?? 0),
        );
      }
      await settles(clock, earlier.ended, leftMs, attempt.signal.signal);
    }
  }

  /** The advice for a refusal, in the words of the caller's own options. */
  #adviceOn({ whenHeld }: Invocation, isOwn: boolean): string {
    const { once } = this.settings;
    if (isOwn && once === false) {
      return "take over from the earlier attempt at this event, which holds it, with resume: true";
    }
    return whenHeld === "wait" || whenHeld === "replace"
      ? "leave the wait more time with a smaller reserveMs or a longer timeout"
      : 'wait for it with whenHeld: "wait"';
  }

  #resultOf(event: TEvent, context: Context, reason: SkipReason): unknown {
    const { skipResult } = this.settings;
    if (typeof skipResult === "function") return skipResult(event, context, reason);
    const isRefusal = skipResult === undefined && reason instanceof LeaseUnavailableError;
    return isRefusal ? refusalTo(event, reason) : skipResult;
  }
}

/** The same refusal with another advice. */
function advised(error: LeaseUnavailableError, advice: string, waitedMs: number): LeaseUnavailableError {
  const { key, holder: owner, expiresAt, inCooldown, pause, retryAfterMs } = error;
  const held =
    owner === undefined || expiresAt === undefined
      ? undefined
      : { owner, expiresAt, inCooldown, ...(pause && { pause }) };
  return new LeaseUnavailableError(key, held, retryAfterMs, { advice, waitedMs });
}
