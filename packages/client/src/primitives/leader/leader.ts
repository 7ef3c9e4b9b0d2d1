/// <reference lib="esnext.disposable" preserve="true" />

import { isAbortOf, onAbort, untilAborted } from "../../base/abort.ts";
import { check, checkKey, checkOptions, checkSignal, type Rules } from "../../base/check-values.ts";
import { settles } from "../../base/clock.ts";
import { InvalidOptionsError, LeaseLostError, LeaseUnavailableError } from "../../base/errors.ts";
import { ifOperational, passing } from "../../base/operational.ts";
import { retryPauses } from "../../base/retry.ts";
import { callBudgetMs } from "../../base/timed-call.ts";
import type { LeaseClient } from "../../core/client.ts";
import { type Core, coreOf } from "../../core/core.ts";
import { hasProtected, type Lease } from "../../core/lease.ts";
import { sleepWhileOpen, whileOpen } from "../../core/lifecycle.ts";
import { runTraced } from "../../core/work-trace.ts";
import {
  checkObserveOptions,
  type LeaderRecord,
  type ObserveOptions,
  readLeader,
  watchLeader,
} from "./observation.ts";
import { checkLeaderOptions, type LeaderOptions, type LeaderTerms } from "./options.ts";

/**
 * The leadership: the lease of the election's key, with its `signal`, `fencingToken`, `fence` and `conditionCheck`.
 */
export type Leadership = Lease;

/** Options of a campaign. */
interface Campaign {
  /** Ends the campaign. @default - none */
  readonly signal?: AbortSignal;
}

/**
 * One candidate in an election: of all candidates for a key, at most one leads.
 *
 * A leader holds the key's lease and renews it. When a leader dies, another candidate succeeds it after the end of
 * its lease. When a leader was frozen and wakes, it finds its signal aborted. As with every lease, nothing stops the
 * work of a leader that ignores its signal: fence its writes.
 *
 * ```ts
 * const leader = new Leader(client, "scheduler", { data: { address: "10.0.0.7:8080" } });
 * const untilShutdown = new AbortController();
 * await leader.lead((leadership, signal) => importAll({ signal }), { signal: untilShutdown.signal });
 * ```
 */
export class Leader implements AsyncDisposable {
  /** The election's name, which is its lock's key. */
  readonly key: string;
  readonly #client: LeaseClient;
  readonly #core: Core;
  readonly #terms: LeaderTerms;
  #leadership: Leadership | undefined;
  #isCampaigning = false;
  #isLooping = false;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, key: string, options: LeaderOptions = {}) {
    this.#core = coreOf(client);
    this.key = checkKey(key);
    this.#client = client;
    this.#terms = checkLeaderOptions(options, this.#core);
  }

  /** The lease of this candidate while it leads. Looks at the clock; sends nothing. */
  get leadership(): Leadership | undefined {
    return this.#leadership?.held ? this.#leadership : undefined;
  }

  /**
   * Stands for election, and resolves when it is won; at once when this candidate leads already.
   *
   * 1 request when there is no leader, 2 to succeed a leader whose lease has ended. While another candidate leads, 1
   * read for each look in the rhythm of `retry`: by default every 2.5 to 7.5 s, and when the leader's lease could
   * end. Waits without a limit, and keeps the process alive meanwhile. It goes on after errors of the service.
   * Rejects with every other error, and with LeaseAbortedError when the `signal` aborts. Nothing stays held then. A
   * candidate has one campaign at a time.
   */
  async campaign(options: Campaign = {}): Promise<Leadership> {
    const signal = checkCampaign(options);
    return await untilAborted(this.key, signal, () => this.#campaign(signal));
  }

  async #campaign(signal: AbortSignal | undefined): Promise<Leadership> {
    const { leadership } = this;
    if (leadership !== undefined) return leadership;
    refuseSecond(this.#isCampaigning, "campaign");
    this.#isCampaigning = true;
    try {
      // A lost lease may still have this candidate's token in the table, and would keep the candidate itself out.
      const resigned = this.resign().catch(ifOperational(undefined));
      const { clock, lifecycle } = this.#core;
      await whileOpen(lifecycle, signal, (either) => settles(clock, resigned, callBudgetMs, either));
      await resigned;
      const won = await this.#win(signal);
      this.#leadership = won;
      this.#follow(won);
      this.#tell(() => this.#terms.listeners.onElected?.(won));
      return won;
    } finally {
      this.#isCampaigning = false;
    }
  }

  /**
   * Leads whenever it is elected, until the signal aborts: campaigns, runs the work, resigns, and campaigns again.
   *
   * The work's signal aborts when the leadership is lost or resigned, or when the outer signal aborts. The next
   * campaign begins when the work has ended, so this candidate never runs the work twice at a time. After work
   * that has ended by itself, a resignation, or a request to stop, a pause of `pauseMs` comes before it, in which others
   * may be elected.
   *
   * Resolves when the outer signal has aborted and the work has ended. Rejects with the work's error, after
   * resigning, and as `campaign` does. It does not reject with an error that came after the work's signal had aborted
   * and is that signal's reason or an AbortError.
   */
  async lead(
    work: (leadership: Leadership, signal: AbortSignal) => Promise<unknown> | unknown,
    options: Campaign = {},
  ): Promise<void> {
    if (typeof work !== "function")
      throw new InvalidOptionsError("work", work, "a function of the leadership");
    const signal = checkCampaign(options);
    refuseSecond(this.#isLooping, "lead");
    this.#isLooping = true;
    try {
      while (!signal?.aborted) await this.#leadOnce(work, signal);
    } catch (error) {
      if (!isAbortOf(error, signal)) throw error;
    } finally {
      this.#isLooping = false;
    }
  }

  /**
   * Resigns the leadership. The other candidates see it at their next look.
   *
   * 1 request; none when this candidate does not lead. Resolves to whether it was still the leader. Rejects with
   * LeaseServiceError when the service did not confirm: call it again, or let the lease end.
   */
  async resign(): Promise<boolean> {
    const leadership = this.#leadership;
    if (leadership === undefined) return false;
    const wasLeader = await leadership.release();
    if (this.#leadership === leadership) this.#leadership = undefined;
    return wasLeader;
  }

  /**
   * Reads the leader; undefined when there is none. 1 read, which may lag a moment behind and costs half a consistent
   * one.
   */
  async current(): Promise<LeaderRecord | undefined> {
    return await readLeader(this.#core, this.key);
  }

  /**
   * Yields the present leader, and then every change.
   *
   * 1 read for each look, as `current`: about 0.5 s after the start or a change, then after twice that each time, up
   * to `everyMs`. Each pause is between a half and one and a half of that. It does not see a leader that begins and
   * ends between two looks, and gives no leader after a later one. The next look makes up for one that failed because
   * of the service. Ends with its signal, without an error.
   *
   * ```ts
   * const observer = new Leader(client, "scheduler");
   * for await (const leader of observer.observe()) console.log(leader?.owner ?? "nobody", "leads");
   * ```
   */
  observe(options: ObserveOptions = {}): AsyncGenerator<LeaderRecord | undefined, void, undefined> {
    return watchLeader(this.#core, this.key, checkObserveOptions(options));
  }

  /** Resigns. A failure of the service is no error here: a lease that cannot be released now ends by itself. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.resign().catch(ifOperational(undefined));
  }

  async #leadOnce(
    work: (leadership: Leadership, signal: AbortSignal) => Promise<unknown> | unknown,
    outer: AbortSignal | undefined,
  ): Promise<void> {
    const leadership = await this.campaign(outer ? { signal: outer } : {});
    const signal = outer ? AbortSignal.any([leadership.signal, outer]) : leadership.signal;
    try {
      // A listener may have resigned, or stopped it, at the election: a signal that has aborted tells work nothing.
      if (!signal.aborted) await runTraced(leadership, () => work(leadership, signal));
    } catch (error) {
      if (!isExpectedAbort(error, signal)) {
        // Ignored: the work's own error comes first, and the `error` event reports a mistake.
        await this.resign().catch(() => undefined);
        throw error;
      }
    }
    const loss = lossOfLeadership(leadership);
    await this.resign().catch(ifOperational(undefined));
    if (hasProtected(loss)) await sleepWhileOpen(this.#core, this.#terms.pauseMs, outer);
  }

  async #win(signal: AbortSignal | undefined): Promise<Leadership> {
    const nextPauseMs = retryPauses(this.#core, { strategy: "untilExpiry" });
    for (;;) {
      try {
        return await this.#client.acquire(this.key, {
          ...this.#terms.acquisition,
          ...(signal ? { signal } : {}),
        });
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof LeaseUnavailableError)) passing(error);
        await sleepWhileOpen(this.#core, nextPauseMs(), signal);
      }
    }
  }

  #follow(leadership: Leadership): void {
    const { onLost, onResigned } = this.#terms.listeners;
    const { signal } = leadership;
    const onEnd = (): void => {
      // The signal aborts during a release; only afterwards it is known whether that was a resignation.
      queueMicrotask(() => {
        const loss = lossOfLeadership(leadership);
        this.#tell(() => (loss ? onLost?.(loss, leadership) : onResigned?.(leadership)));
      });
    };
    onAbort(signal, onEnd);
  }

  /** A listener that throws cannot disturb the election: its error surfaces as an uncaught exception. */
  #tell(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
    }
  }
}

const campaignRules: Rules<Campaign> = { signal: checkSignal };

function checkCampaign(options: Campaign): AbortSignal | undefined {
  return checkOptions(options, campaignRules).signal;
}

function refuseSecond(isUnderWay: boolean, call: string): void {
  check(!isUnderWay, call, "called while another is under way", "one at a time for each Leader");
}

/** Why a leadership was lost, also if it was released after that; undefined if it was resigned. */
function lossOfLeadership(leadership: Leadership): LeaseLostError | undefined {
  const reason = leadership.signal.reason as LeaseLostError | undefined;
  // A broken lease and a release have the same reason.
  return reason === undefined || reason.reason === "released" ? leadership.loss : reason;
}

/** Whether an error only says that the work's signal has aborted. */
function isExpectedAbort(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false;
  const isAbort = error instanceof Error && error.name === "AbortError";
  return isAbort || isAbortOf(error, signal) || error instanceof LeaseLostError;
}
