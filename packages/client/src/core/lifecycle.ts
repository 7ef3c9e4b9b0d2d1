import { onAbort } from "../base/abort.ts";
import { brandClass } from "../base/brand.ts";
import { type Clock, type Deferred, deferred, pause, settles, sleep } from "../base/clock.ts";
import { isoTime, LeaseError, quoted } from "../base/errors.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import { callBudgetMs } from "../base/timed-call.ts";

/** The client is closed: it acquires nothing any more, and waiting calls have ended. Nothing is held. */
export class ClientClosedError extends LeaseError {
  static {
    brandClass(ClientClosedError, "ClientClosedError");
  }

  constructor() {
    super("LEASE_CLIENT_CLOSED", "the client is closed");
  }
}

/** A lease, or a ticket in a queue, that a closed client may have left in the table. */
export interface Leftover {
  readonly key: string;
  /** The sort key of the item under the key. */
  readonly sortKey: string;
  /** When it ends by itself, in epoch milliseconds of this machine's clock. */
  readonly expiresAt: number;
  /** Why it could not be removed; undefined when the service has not replied yet. */
  readonly error: unknown;
}

/** The message names at most this many keys; `left` has all of them. */
const mostNamed = 5;

/** The client is closed, but the service did not confirm everything in time: some leases may stay until they expire. */
export class CloseIncompleteError extends LeaseError {
  static {
    brandClass(CloseIncompleteError, "CloseIncompleteError");
  }
  declare readonly left: readonly Leftover[];
  /** How many calls have not ended yet. The process still releases at once what they acquire later. */
  declare readonly callsUnderWay: number;

  constructor(left: readonly Leftover[], callsUnderWay: number) {
    const named = left
      .slice(0, mostNamed)
      .map(({ key, expiresAt }) => `${quoted(key)} until ${isoTime(expiresAt)}`);
    super(
      "LEASE_CLOSE_INCOMPLETE",
      `the client is closed, but the service did not confirm everything in time: ${left.length} keys may stay held ` +
        `(${named.join(", ")}), ${callsUnderWay} calls have not ended`,
      { cause: left.find(({ error }) => error !== undefined)?.error, left, callsUnderWay },
    );
  }
}

/** An item that a background write should remove; if the write fails, the item stays until it ends by itself. */
export type Removal = Omit<Leftover, "error">;

/** A lease that a client holds. */
export interface Held extends Removal {
  readonly record: LeaseRecord;
  /** The handles that have not been released. */
  readonly handles: readonly object[];
  /** How much longer the lease protects its holder, in milliseconds; 0 once it does not. Looks at the clock. */
  remainingMs(): number;
  /** Why it has ended; undefined until the end has been noticed. */
  readonly lost: string | undefined;
  /** Releases it in the background. */
  letGo(): void;
}

/** A call that is under way; `end` it when it has settled. */
export interface OpenCall {
  readonly signal: AbortSignal;
  end(): void;
}

/** Ends a call that is under way. */
type CallOff = (reason: ClientClosedError) => void;

/**
 * Everything that one client has to end: the leases that it holds, the calls that are under way, and the removals in
 * the background. So all of it can be listed, ended and waited for.
 */
export class Lifecycle {
  readonly #clock: Clock;
  readonly #held = new Set<Held>();
  readonly #calls = new Set<CallOff>();
  readonly #removals = new Set<{ readonly removal: Removal }>();
  /** The removals that have failed since the client was closed. */
  readonly #failed = new Map<Removal, unknown>();
  /** How many removals the service has confirmed. */
  #removed = 0;
  /** Settles when nothing is under way any more; set while a caller waits for that. */
  #idle: Deferred<void> | undefined;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The leases that are held and have not ended, in the order of acquisition. */
  get held(): readonly Held[] {
    return [...this.#held];
  }

  /** Throws ClientClosedError once the client is closed. */
  throwIfClosed(): void {
    if (this.#isClosed) throw new ClientClosedError();
  }

  /** Takes note of a lease until it ends. If the client is closing, the lease is released at once. */
  hold(lease: Held): void {
    if (lease.lost !== undefined) return;
    this.#held.add(lease);
    if (this.#isClosed) lease.letGo();
  }

  /** Takes note of the end of a lease. */
  forget(lease: Held): void {
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
   * Not AbortSignal.any, which leaks here: a source that lives as long as the client keeps the derived signals. It also
   * loses a source that nothing else refers to.
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

  /** Takes note of a write that no caller waits for; `failed` handles its error. */
  remove(removal: Removal, write: Promise<unknown>, failed: (error: unknown) => void): void {
    this.follow(removal, write);
    void write.catch(failed);
  }

  /** Takes note of a write whose caller gets its errors. */
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
   * Ends all calls, releases all leases, and waits until everything has settled, at most `timeoutMs`. Without a timeout
   * it waits as long as the service confirms something in each ten seconds. Rejects with CloseIncompleteError if the
   * service has not confirmed everything by then.
   */
  async close(timeoutMs: number | undefined): Promise<void> {
    this.#isClosed = true;
    for (const callOff of [...this.#calls]) callOff(new ClientClosedError());
    for (const lease of [...this.#held]) lease.letGo();
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

/** Makes a call between {@link Lifecycle.begin} and its end. */
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
  { clock, lifecycle }: { readonly clock: Clock; readonly lifecycle: Lifecycle },
  delayMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  return whileOpen(lifecycle, signal, (either) => sleep(clock, delayMs, either));
}

/** Sleeps until the signal aborts at the latest; rejects with ClientClosedError when the client is closed. */
export async function pauseWhileOpen(
  { clock, lifecycle }: { readonly clock: Clock; readonly lifecycle: Lifecycle },
  delayMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (signal?.aborted) return;
  await whileOpen(lifecycle, signal, (either) => pause(clock, delayMs, either));
}
