import { attributeNames, leaseSortKey } from "../../base/schema.ts";
import type { Item } from "../../base/store.ts";
import { inBackground, takeBack } from "../../core/attempt.ts";
import type { Core } from "../../core/core.ts";
import { cancel, revokeToken } from "../../statements/lock.ts";
import type { Write } from "../../statements/statement.ts";

/**
 * One token's claim to several locks: what it has written so far, and how to take that back.
 *
 * Its transactions are all or nothing, so one lock tells about all. If that lock has never had a fencing token as large
 * as theirs, no transaction has landed. While the token is revoked on it, none will land: until its next release.
 */
export class GroupClaim {
  readonly token: string;
  readonly owner: string;
  readonly #core: Core;
  readonly #keys: readonly string[];
  readonly #leaseDurationMs: number;
  /** The least fencing token of its transactions: a lock that one of them has won keeps it, or a larger one. */
  #leastFence = Number.POSITIVE_INFINITY;
  #version = 0;
  /** Whether a transaction of this token may have landed, or may still land, without a reply. */
  isUncertain = false;

  constructor(
    core: Core,
    {
      keys,
      owner,
      leaseDurationMs,
    }: { readonly keys: readonly string[]; readonly owner: string; readonly leaseDurationMs: number },
  ) {
    this.token = core.randomness.token();
    this.owner = owner;
    this.#core = core;
    this.#keys = keys;
    this.#leaseDurationMs = leaseDurationMs;
  }

  /** Gives the next write's version, never used before with this token. */
  nextVersion(fencingToken: number): number {
    this.#leastFence = Math.min(this.#leastFence, fencingToken);
    this.#version += 1;
    return this.#version;
  }

  /**
   * Takes back writes that may have landed, in the background. A lock that cannot be taken back frees itself when its
   * lease ends.
   */
  abandon(): void {
    if (!this.isUncertain) return;
    const { clock, lifecycle } = this.#core;
    const expiresAt = clock.now() + this.#leaseDurationMs;
    const taken = this.#takeBack();
    const [key = ""] = this.#keys;
    const work = { key, sortKey: leaseSortKey, owner: this.owner, operation: "cancel" } as const;
    const passed = inBackground(this.#core, work);
    const [first, ...others] = this.#keys.map((one) => ({ key: one, sortKey: leaseSortKey, expiresAt }));
    if (first !== undefined) lifecycle.remove(first, taken, passed);
    for (const other of others) lifecycle.follow(other, taken);
  }

  /** As {@link takeBack} for the first lock; with one request for each other lock if a transaction may have landed. */
  async #takeBack(): Promise<void> {
    const [first, ...others] = this.#keys;
    if (first === undefined) return;
    const core = this.#core;
    const taken = await takeBack(this.#core, {
      cancel: this.#cancelling(first).returning(),
      revoke: revokeToken({ key: first }, this.token),
      isOurs: (item) => this.#mayHaveLandedIn(item),
    });
    if (taken === undefined) return;
    if (!taken.applied || this.#mayHaveLandedIn(taken.item))
      await Promise.all(others.map((key) => core.gate.giveBack(() => core.update(this.#cancelling(key)))));
  }

  /** The lock may have been broken since, and taken by another: its item alone does not tell whose it was. */
  #mayHaveLandedIn(item: Item | undefined): boolean {
    return Number(item?.[attributeNames.fence]) >= this.#leastFence;
  }

  #cancelling(key: string): Write {
    const { clock, times } = this.#core;
    return cancel({ key }, { token: this.token, now: clock.now(), retentionMs: times.retentionMs });
  }
}
