/// <reference lib="esnext.disposable" preserve="true" />

import { onAbort } from "../../base/abort.ts";
import { LeaseLostError } from "../../base/errors.ts";
import { ifOperational, isOperational } from "../../base/operational.ts";
import type { ConditionCheckOptions, LeaseConditionCheck } from "../../core/fencing.ts";
import type { HeldLease } from "../../core/held-lease.ts";
import { Lease } from "../../core/lease.ts";
import { UpdateBatch } from "../../core/together.ts";

/**
 * Several locks that were acquired together, as one.
 *
 * They share one token and one fencing token, which is larger than every earlier one of each lock. When one lock is
 * lost, the group protects nothing any more. The other locks stay held until the group is released, because the work
 * may still be stopping.
 *
 * ```ts
 * await using accounts = await acquireAll(client, ["account/1", "account/2"], { heartbeat: true });
 * await importAll({ signal: accounts.signal });
 * ```
 */
export class LeaseGroup implements AsyncDisposable {
  /** The locks' names, in the order of the call. */
  readonly keys: readonly string[];
  /** The single leases, in the same order: each can be fenced, checked, handed to another process or released early. */
  readonly leases: ReadonlyMap<string, Lease>;
  /** Readable label of the holder. */
  readonly owner: string;
  /**
   * Unique id of this acquisition. Locks that a reentrant owner had before keep their own; when it had all of them, this
   * is the first one's.
   */
  readonly token: string;
  /**
   * Larger than that of every earlier holder of any of the locks. When a reentrant owner had some of them before, it
   * is the smallest of theirs: then fence each resource with the lease of its own lock.
   */
  readonly fencingToken: number;
  readonly #held: readonly HeldLease[];
  readonly #lost = new AbortController();

  /** @internal Groups are made by {@link acquireAll}; `won` is a lease of this call, if it has won any. */
  constructor(held: readonly [HeldLease, ...HeldLease[]], won: HeldLease = held[0]) {
    this.owner = won.record.owner;
    this.token = won.record.token;
    this.fencingToken = Math.min(...held.map(({ record }) => record.fencingToken));
    this.#held = held;
    this.leases = new Map(held.map((lease) => [lease.key, new Lease(lease, undefined)]));
    this.keys = [...this.leases.keys()];
    for (const { signal } of this.#handles) onAbort(signal, (reason) => this.#lost.abort(reason));
  }

  /** Whether all of them protect their holder at this moment, by the holder's own clock. Sends nothing. */
  get held(): boolean {
    return this.remainingMs() > 0;
  }

  /** How much longer all of them protect their holder, in milliseconds; 0 when one does not. Sends nothing. */
  remainingMs(): number {
    return Math.min(...this.#handles.map((lease) => lease.remainingMs()));
  }

  /** When the first of them ends unless they are renewed, in epoch milliseconds of the holder's clock. */
  get expiresAt(): number {
    return Math.min(...this.#handles.map((lease) => lease.expiresAt));
  }

  /**
   * Aborts as soon as one of them does not protect its holder any more, with the LeaseLostError of the first such
   * lock; see {@link Lease.signal}.
   */
  get signal(): AbortSignal {
    // Looks at the clock: a timer can fire late in a process that was frozen.
    this.remainingMs();
    return this.#lost.signal;
  }

  /**
   * Prolongs all of them by their duration, counted from now.
   *
   * 1 request for each 25 locks; 1 for each lock when the service or a policy does not take batches. Rejects with
   * LeaseLostError when one of them is lost or released; the others are prolonged then too. Rejects with
   * LeaseServiceError when the service did not confirm: then they are held until their deadline, and the call may be
   * repeated.
   */
  async renew(): Promise<void> {
    const [{ core }] = this.#held as readonly [HeldLease];
    const batch = new UpdateBatch(core, core.clock.monotonic() + this.remainingMs());
    const handles = this.#handles;
    const renewals = this.#held.map(async (lease, index) => {
      const { key, held, loss } = handles[index] as Lease;
      // Its owner may go on to hold it by another handle.
      if (!held && loss === undefined) throw new LeaseLostError(key, "released");
      await lease.renew((write, call) => batch.update(write, call));
    });
    void batch.send();
    const failures = failuresOf(await Promise.allSettled(renewals));
    if (failures.length > 0) throw worstOf(failures);
  }

  /**
   * Releases all of them, each by itself: a lost lock does not prevent the release of the others.
   *
   * 1 request for each lock, at the same time; none for a lock that is known to be another caller's. Resolves to
   * whether all of them were still this group's to release; calling it again gives the same answer. Rejects with
   * LeaseServiceError when the service did not confirm them all: call it again, which repeats only those, or let them
   * expire.
   */
  async release(): Promise<boolean> {
    const results = await Promise.allSettled(this.#handles.map((lease) => lease.release()));
    const failures = failuresOf(results);
    if (failures.length > 0) throw worstOf(failures);
    return results.every((result) => result.status === "fulfilled" && result.value);
  }

  /**
   * Releases them. A failure of the service is no error here: a lock that cannot be released now frees itself when
   * its lease ends.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(ifOperational(undefined));
  }

  /**
   * Gives the entries for your own transaction, which then succeeds only while this group holds every lock.
   *
   * One entry of 2 write units for each lock, of the 100 that a transaction can have; see
   * {@link Lease.conditionCheck}. Sends nothing by itself. Throws InvalidOptionsError.
   */
  conditionChecks(options: ConditionCheckOptions = {}): LeaseConditionCheck[] {
    return this.#handles.map((lease) => lease.conditionCheck(options));
  }

  get #handles(): readonly Lease[] {
    return [...this.leases.values()];
  }
}

function failuresOf(results: readonly PromiseSettledResult<unknown>[]): unknown[] {
  return results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
}

/** A mistake in the program comes first, then a loss. */
function worstOf(failures: readonly unknown[]): unknown {
  const mistake = failures.find((error) => !isOperational(error));
  return mistake ?? failures.find((error) => error instanceof LeaseLostError) ?? failures[0];
}
