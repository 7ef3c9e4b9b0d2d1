import { isDeepStrictEqual } from "node:util";
import type { Item, Lease, LeaseEvent, TransactionEntry, UpdateRequest } from "@leasehold/client";
import { actorOf, kindOf } from "../../support/lease-writes.ts";
import type { Host } from "../host.ts";
import type { Traffic } from "../network.ts";
import { epoch, type World } from "../world.ts";

/** The sort key of the items that the workload protects with fencing tokens. */
export const resourceSortKey = "resource";
/** The sort key of the items that the workload writes only together with the lease's condition check. */
export const checkedSortKey = "checked";

/** Watches every write and every belief, and remembers the first thing that must not be. */
export class LockMonitor implements Traffic {
  readonly #world: World;
  readonly #skewMs: number;
  readonly #leases = new Set<{ readonly host: Host; readonly lease: Lease }>();
  readonly #highestFence = new Map<string, number>();
  /** Until when no other caller may take a lock of this token, in true time. */
  readonly #cooldownUntil = new Map<string, number>();
  readonly #highestChecked = new Map<string, number>();
  readonly #endedTokens = new Set<string>();
  /** By key, the token that a release, a cancellation or an operator has revoked last. */
  readonly #revoked = new Map<string, unknown>();
  /** The slot that was done when a token was granted. */
  readonly #doneAtGrant = new Map<string, string>();

  constructor(world: World, skewMs: number) {
    this.#world = world;
    this.#skewMs = skewMs;
  }

  count(what: string): void {
    this.#world.count(what);
  }

  /** A process believes in this lease from now on. */
  holds(host: Host, lease: Lease): void {
    this.#leases.add({ host, lease });
    const done = this.#doneAtGrant.get(lease.token);
    if (lease.slot !== undefined && done !== undefined && done >= lease.slot) {
      this.#world.fault(
        `${host.name} was granted the slot ${lease.slot} of ${lease.key}, where ${done} is done`,
      );
    }
  }

  /** A process lets another one go on with its lease. */
  handsOver(lease: Lease): void {
    for (const belief of this.#leases) if (belief.lease === lease) this.#leases.delete(belief);
    this.count("handed over");
  }

  /** A process will try to renew a lease that it has released, from its handle. */
  bringsBack(lease: Lease): void {
    this.#endedTokens.delete(lease.token);
  }

  /** A lease that was released must not be renewed. */
  revived(host: Host, lease: Lease): void {
    this.#world.fault(`${host.name} renewed ${lease.key} as ${lease.token}, which it had released`);
  }

  /** A process has begun to release this lease. */
  ends(lease: Lease): void {
    this.#endedTokens.add(lease.token);
  }

  heard(host: Host, event: LeaseEvent): void {
    this.count(
      event.type === "takeover"
        ? `takeover by ${event.reason}`
        : event.type === "lost"
          ? `lost: ${event.reason}`
          : event.type,
    );
    if (event.type === "contended" && event.holder === event.owner) {
      this.#world.fault(
        `${host.name} was told that ${event.key} is held by its own acquisition ${event.owner}`,
      );
    }
  }

  sent(host: Host, request: UpdateRequest): void {
    const token = actorOf(request.values);
    const { ":token": set, ":leaseDurationMs": lasting } = request.values;
    const kind = kindOf(request);
    if (kind === "end" && set !== undefined) {
      this.#cooldownUntil.set(String(set), this.#world.now + Number(lasting));
    }
    if (kind === "renew" && this.#endedTokens.has(String(token))) {
      this.#world.fault(`${host.name} sent a renewal of ${request.key.pk} after it had begun to release it`);
    }
  }

  applied(host: Host, request: UpdateRequest, before: Item | undefined, after: Item | undefined): void {
    const key = request.key.pk;
    if (request.key.sk === resourceSortKey) {
      this.#world.tell("table", () => `${key}: fenced write ${after?.fence} by ${host.name}`);
      if (Number(after?.fence) < Number(before?.fence ?? 0)) {
        this.#world.fault(
          `a stale fenced write to ${key} took effect: ${after?.fence} after ${before?.fence}`,
        );
      }
      return;
    }
    const actor = actorOf(request.values);
    const [was, is] = [before?.token, after?.token];
    if (String(before?.doneSlot ?? "") > String(after?.doneSlot ?? "")) {
      this.#world.fault(`${key} went back from the done slot ${before?.doneSlot} to ${after?.doneSlot}`);
    }
    this.#world.tell("table", () => `${key}: ${change(before, after)}, written by ${host.name}`);
    if (request.values[":releasedToken"] !== undefined) this.#revoked.set(key, actor);
    if (is === actor && was !== actor) {
      if (this.#revoked.get(key) === is) this.#world.fault(`the token ${is} was revoked, and came back`);
      this.#granted(key, before, after);
    } else if (was !== undefined && was !== actor && !isMarkOnly(before, after)) {
      this.#world.fault(`a stale write of ${host.name} (${actor}) changed ${key}, which ${was} holds`);
    }
  }

  transacted(host: Host, entries: readonly TransactionEntry[]): void {
    for (const { key, values } of entries) {
      if (key.sk !== checkedSortKey) continue;
      const fence = Number(values[":writer"]);
      const highest = this.#highestChecked.get(key.pk) ?? 0;
      this.#world.tell("table", () => `${key.pk}: checked write ${fence} by ${host.name}`);
      if (fence < highest) {
        this.#world.fault(`a stale checked write to ${key.pk} took effect: ${fence} after ${highest}`);
      }
      this.#highestChecked.set(key.pk, Math.max(fence, highest));
      this.count("checked write");
    }
  }

  #granted(key: string, before: Item | undefined, after: Item | undefined): void {
    const fence = Number(after?.fence);
    const highest = this.#highestFence.get(key);
    if (highest !== undefined && fence <= highest)
      this.#world.fault(`the fencing token of ${key} went from ${highest} to ${fence}`);
    this.#highestFence.set(key, fence);
    if (before?.doneSlot !== undefined) this.#doneAtGrant.set(String(after?.token), String(before.doneSlot));
    const isClosed = String(before?.token ?? "").startsWith("closed:");
    if (isClosed) this.count("opened after lockAtLeastFor");
    if (isClosed && this.#world.now + this.#skewMs < (this.#cooldownUntil.get(String(before?.token)) ?? 0))
      this.#world.fault(`${key} was opened while it was closed`);
  }

  /** Asks every process that could act now what it believes. */
  observe(): void {
    const believers = new Map<string, { host: Host; lease: Lease }>();
    for (const belief of this.#leases) {
      const { host, lease } = belief;
      if (host.isDead) {
        this.#leases.delete(belief);
        continue;
      }
      if (!host.isRunning) continue;
      if (!lease.held) {
        this.#leases.delete(belief);
        continue;
      }
      const other = believers.get(lease.key);
      if (other !== undefined && other.lease.token !== lease.token) {
        this.#world.fault(
          `${lease.key} is held by ${other.host.name} (${other.lease.token}) and by ${host.name} (${lease.token})`,
        );
      }
      believers.set(lease.key, belief);
    }
  }
}

/** Whether a write did nothing but mark a token as revoked, which leaves the holder's lease as it is. */
function isMarkOnly(before: Item | undefined, after: Item | undefined): boolean {
  const { releasedToken: _, ...was } = before ?? {};
  const { releasedToken: __, ...is } = after ?? {};
  return isDeepStrictEqual(was, is);
}

function change(before: Item | undefined, after: Item | undefined): string {
  const [was, is] = [before?.token, after?.token];
  if (is === undefined) return was === undefined ? "revoked a token" : `released by ${was}`;
  if (is === was) return `${is} version ${after?.version} until ${Number(after?.expiresAt) - epoch}`;
  return `${was ?? "free"} -> ${is}, fence ${after?.fence}, until ${Number(after?.expiresAt) - epoch}`;
}
