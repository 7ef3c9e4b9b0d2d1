import { cancel, revokeToken } from "../expressions.ts";
import { inBackground, type ProtocolContext } from "../protocol/context.ts";
import { takeBack } from "../protocol/take-back.ts";
import { isHeldBy } from "../record.ts";
import { attributeNames, leaseSortKey } from "../schema.ts";
import type { Write } from "../store/write.ts";

/**
 * One token's claim to several locks: what it has written so far, and how to take that back.
 *
 * Its transactions are all or nothing, so one lock tells about all. If that lock does not have the token, no
 * transaction has landed. While the token is revoked on it, none will land: until the next release of that lock.
 */
export class GroupClaim {
  readonly token: string;
  readonly owner: string;
  readonly #context: ProtocolContext;
  readonly #keys: readonly string[];
  readonly #leaseDurationMs: number;
  /** The fencing tokens of its transactions; a tombstone keeps the one that it had. */
  readonly #fences = new Set<number>();
  #version = 0;
  /** Whether a transaction of this token may have landed, or may still land, without a reply. */
  isUncertain = false;

  constructor(
    context: ProtocolContext,
    {
      keys,
      owner,
      leaseDurationMs,
    }: { readonly keys: readonly string[]; readonly owner: string; readonly leaseDurationMs: number },
  ) {
    this.token = context.randomness.token();
    this.owner = owner;
    this.#context = context;
    this.#keys = keys;
    this.#leaseDurationMs = leaseDurationMs;
  }

  /** Gives the next write's version, never used before with this token. */
  nextVersion(fencingToken: number): number {
    this.#fences.add(fencingToken);
    this.#version += 1;
    return this.#version;
  }

  /**
   * Takes back writes that may have landed, in the background. A lock that cannot be taken back frees itself when its
   * lease ends.
   */
  abandon(): void {
    if (!this.isUncertain) return;
    const { clock, lifecycle } = this.#context;
    const expiresAt = clock.now() + this.#leaseDurationMs;
    const taken = this.#takeBack();
    const [key = ""] = this.#keys;
    const work = { key, sortKey: leaseSortKey, owner: this.owner, operation: "cancel" } as const;
    const passed = inBackground(this.#context, work);
    const [first, ...others] = this.#keys.map((one) => ({ key: one, sortKey: leaseSortKey, expiresAt }));
    if (first !== undefined) lifecycle.remove(first, taken, passed);
    for (const other of others) lifecycle.follow(other, taken);
  }

  /** As {@link takeBack} for the first lock; with one request for each other lock if a transaction may have landed. */
  async #takeBack(): Promise<void> {
    const [first, ...others] = this.#keys;
    if (first === undefined) return;
    const { table } = this.#context;
    const taken = await takeBack(table, {
      cancel: { ...this.#cancelling(first), returnsItem: true },
      revoke: revokeToken({ key: first }, this.token),
      isOurs: (item) => isHeldBy(item, this),
    });
    if (taken === undefined) return;
    const hadLanded = !taken.applied || this.#fences.has(Number(taken.item?.[attributeNames.fence]));
    if (hadLanded) await Promise.all(others.map((key) => table.update(this.#cancelling(key))));
  }

  #cancelling(key: string): Write {
    const { clock, retentionMs } = this.#context;
    return cancel({ key }, { token: this.token, now: clock.now(), retentionMs });
  }
}
