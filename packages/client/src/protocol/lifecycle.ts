import { ClientClosedError, CloseIncompleteError, type Leftover } from "../errors/closing.ts";
import { callBudgetMs } from "../store/timed-store.ts";
import { type Clock, type Deferred, deferred, pause, settles, sleep } from "../time/clock.ts";
import { onAbort } from "../time/on-abort.ts";
import type { ProtocolContext } from "./context.ts";
import type { HeldLease } from "./held-lease.ts";

/** What a write in the background removes, and what stays until it ends by itself if the write fails. */
export type Removal = Omit<Leftover, "error">;

/** A call that is under way; `end` it when it has settled. */
export interface OpenCall {
  readonly signal: AbortSignal;
  end(): void;
}

/** Ends a call that is under way. */
type CallOff = (reason: ClientClosedError) => void;

/**
 * What one client holds, which of its calls are under way, and what it still removes in the background: so that all of
 * it can be listed, ended and waited for.
 */
export class Lifecycle {
  readonly #clock: Clock;
  readonly #held = new Set<HeldLease>();
  readonly #calls = new Set<CallOff>();
  readonly #removals = new Set<{ readonly removal: Removal }>();
  /** What could not be removed since the client was closed. */
  readonly #failed = new Map<Removal, unknown>();
  /** How much the service has confirmed as removed. */
  #removed = 0;
  /** Settles when nothing is under way any more; there while somebody waits for that. */
  #idle: Deferred<void> | undefined;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What is held and has not ended, in the order of acquisition. */
  get held(): readonly HeldLease[] {
    return [...this.#held];
  }

  /** Throws ClientClosedError once the client is closed. */
  throwIfClosed(): void {
    if (this.#isClosed) throw new ClientClosedError();
  }

  /** Takes note of a lease until it ends. One that is won while the client closes is let go at once. */
  hold(lease: HeldLease): void {
    if (this.#held.has(lease) || lease.deadline.lost !== undefined) return;
    this.#held.add(lease);
    if (this.#isClosed) lease.letGo();
  }

  /** Takes note of the end of a lease. */
  forget(lease: HeldLease): void {
    this.#held.delete(lease);
  }

  /** Takes note of a call until the function that this returns is called. Throws ClientClosedError. */
  enter(callOff: CallOff): () => void {
    this.throwIfClosed();
    this.#calls.add(callOff);
    return () => {
      this.#calls.delete(callOff);
      this.#tellIfIdle();
    };
  }

  /**
   * Begins a call whose signal aborts with the caller's, and with ClientClosedError when the client is closed. Throws the
   * reason of a signal that has aborted, and ClientClosedError.
   *
   * Not AbortSignal.any: what it makes stays known to a source that lives as long as the client, and forgets one that
   * nobody else refers to.
   */
  begin(signal: AbortSignal | undefined): OpenCall {
    signal?.throwIfAborted();
    const cut = new AbortController();
    const leave = this.enter((reason) => cut.abort(reason));
    const ignore = onAbort(signal, (reason) => cut.abort(reason));
    return {
      signal: cut.signal,
      end() {
        ignore();
        leave();
      },
    };
  }

  /** Takes note of a write that nobody else waits for; what becomes of an error of it is `failed`'s to decide. */
  remove(removal: Removal, write: Promise<unknown>, failed: (error: unknown) => void): void {
    this.follow(removal, write);
    void write.catch(failed);
  }

  /** Takes note of a write whose caller hears of its errors. */
  follow(removal: Removal, write: Promise<unknown>): void {
    const entry = { removal };
    this.#removals.add(entry);
    const settled = (error?: unknown): void => {
      this.#removals.delete(entry);
      if (error === undefined) {
        this.#removed += 1;
        this.#failed.delete(removal);
      } else if (this.#isClosed) this.#failed.set(removal, error);
      this.#tellIfIdle();
    };
    void write.then(() => settled(), settled);
  }

  /**
   * Calls everything off, lets everything go, and waits until all of it has settled, but no longer than `timeoutMs`, or
   * without that for as long as the service confirms some of it in each ten seconds. Rejects with CloseIncompleteError where the service has not confirmed it all by then.
   */
  async close(timeoutMs: number | undefined): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true;
      for (const callOff of [...this.#calls]) callOff(new ClientClosedError());
      for (const lease of [...this.#held]) lease.letGo();
    }
    await this.#untilIdle(timeoutMs);
    const left = new Map<Removal, unknown>(this.#failed);
    for (const { removal } of this.#removals) left.set(removal, undefined);
    if (left.size === 0 && this.#calls.size === 0) return;
    throw new CloseIncompleteError(
      [...left].map(([{ key, sortKey, expiresAt }, error]) => ({ key, sortKey, expiresAt, error })),
      this.#calls.size,
    );
  }

  get #underWay(): number {
    return this.#calls.size + this.#removals.size;
  }

  #tellIfIdle(): void {
    if (this.#underWay > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  async #untilIdle(timeoutMs: number | undefined): Promise<void> {
    let before: number;
    do {
      if (this.#underWay === 0) return;
      before = this.#removed;
      this.#idle ??= deferred();
      await settles(this.#clock, this.#idle.promise, timeoutMs ?? callBudgetMs);
    } while (timeoutMs === undefined && this.#removed > before);
  }
}

/** Makes a call within {@link Lifecycle.begin} and its end. */
export async function whileOpen<T>(
  lifecycle: Lifecycle,
  signal: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const open = lifecycle.begin(signal);
  try {
    const result = await call(open.signal);
    lifecycle.throwIfClosed();
    return result;
  } finally {
    open.end();
  }
}

/** Sleeps; rejects with the signal's reason, and with ClientClosedError when the client is closed. */
export function sleepWhileOpen(
  { clock, lifecycle }: Pick<ProtocolContext, "clock" | "lifecycle">,
  delayMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  return whileOpen(lifecycle, signal, (either) => sleep(clock, delayMs, either));
}

/** Sleeps until the signal aborts at the latest; rejects with ClientClosedError when the client is closed. */
export async function pauseWhileOpen(
  { clock, lifecycle }: Pick<ProtocolContext, "clock" | "lifecycle">,
  delayMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (signal?.aborted) return;
  await whileOpen(lifecycle, signal, (either) => pause(clock, delayMs, either));
}
