/** Callers of locks that write under their leases, rightly or not, on hosts whose clocks are wrong, jump and are suspended. */
import type {
  AcquireOptions,
  Item,
  Lease,
  LeaseClient,
  LeaseClientOptions,
  LeaseEvent,
  LeaseHandle,
  TransactionEntry,
} from "@leasehold/client";
import type { LeaseAdmin } from "@leasehold/client/admin";
import { isCooldownToken, leaseItemKey, leaseSortKey } from "@leasehold/client/schema";
import fc from "fast-check";
import { entriesOf, transactIn } from "../../support/own-transaction.ts";
import {
  Cluster,
  type ClusterOptions,
  clockSkewMs,
  leaseDurationMs,
  type Mishap,
  mishaps,
  type Running,
  retentionMs,
} from "../cluster.ts";
import type { Network } from "../network.ts";
import { drawn, type Scene, type Simulation, stepByStep } from "../simulation.ts";
import type { Change } from "../table.ts";
import type { World } from "../world.ts";
import { ofWorlds } from "./lock-mistakes.ts";

const processes = 4;
const keys = ["k", "l"] as const;
/** Of the items that callers protect with fencing tokens, and of those that they write with the lease's condition check. */
const [resourceSortKey, checkedSortKey] = ["resource", "checked"];
/** Callers that stand for a run stand for the one of these times; some come late. */
const slotMs = 4_000;
const hourMs = 3_600_000;
/** How far the clocks of the service's hosts differ: that is what the allowance is for. */
const serviceSpreadMs = 250;

/** What a lease can be told to do, by the name of its handle. */
type Act = "write" | "check" | "renew" | "release" | "complete" | "hand over" | "revive" | "revoke";

export type LockStep =
  | ({
      readonly kind: "acquire";
      readonly process: number;
      readonly as?: string;
      readonly key?: string;
      /** Whether it is for the slot of the time that it is then. @default false */
      readonly isForSlot?: boolean;
    } & Pick<
      AcquireOptions,
      "waitMs" | "heartbeat" | "slot" | "lockAtLeastForMs" | "leaseDurationMs" | "reentrant" | "owner"
    >)
  /** Of what one process has, by the name of its handle, or of all that callers have. */
  | { readonly kind: Act; readonly process: number; readonly as?: string }
  | { readonly kind: Act; readonly which: number }
  | { readonly kind: "adopt"; readonly process: number; readonly heartbeat?: boolean }
  /** Its machine's wall clock is set. */
  | { readonly kind: "clock"; readonly process: number; readonly aheadMs: number };

const process = fc.nat(processes - 1);
const act = (weight: number, ...kinds: readonly Act[]) => ({
  weight,
  arbitrary: fc.record({ kind: fc.constantFrom(...kinds), which: fc.nat(50) }),
});

const step: fc.Arbitrary<LockStep | Mishap> = fc.oneof(
  drawn(12, "acquire", {
    process,
    as: fc.constantFrom("one", "two"),
    key: fc.constantFrom("k", "k", "k", "l"),
    waitMs: fc.constantFrom(0, 0, 4_000, 10_000),
    heartbeat: fc.boolean(),
    leaseDurationMs: fc.constantFrom(1_000, 2_000, 5_000),
    lockAtLeastForMs: fc.constantFrom(0, 0, 0, 0, 900),
    isForSlot: fc.constantFrom(true, false, false),
  }),
  act(5, "write", "write", "check"),
  act(4, "release", "release", "complete"),
  act(2, "renew", "hand over", "revive"),
  act(1, "revoke"),
  drawn(1, "adopt", { process, heartbeat: fc.boolean() }),
  drawn(1, "clock", { process, aheadMs: fc.integer({ min: -2_000, max: 2_000 }) }),
  drawn(8, "wait", { ms: fc.integer({ min: 1, max: 1_500 }) }),
  ...mishaps(processes),
);

interface Caller {
  readonly client: LeaseClient;
  readonly admin: LeaseAdmin;
  readonly network: Network;
  /** What it was granted or has adopted, by the names of its handles. */
  readonly leases: Map<string, Lease>;
  /** Leases that are renewed in the background, which a hand-over would not end. */
  readonly beating: WeakSet<Lease>;
  /** The leases that it has begun to let go. */
  readonly letGo: Set<Lease>;
}

/** A lease that a caller acts on, and its name there. */
interface Handle {
  readonly running: Running<Caller>;
  readonly as: string;
  readonly lease: Lease;
}

/** How clients and hosts are made. */
interface LockCase extends Omit<Partial<ClusterOptions<Caller>>, "client"> {
  readonly client?: () => Partial<LeaseClientOptions>;
  /** Whether nobody dies or freezes and no request is late: then what no caller was given stays held by nobody. */
  readonly isTidy?: boolean;
}

/** Callers of locks, and what must hold of all that they believe and write. */
export class LockScene implements Scene<LockStep> {
  readonly world: Cluster<Caller>;
  readonly #retentionMs: number;
  readonly #isTidy: boolean;
  readonly #mailbox: LeaseHandle[] = [];
  /** Tokens of the leases that callers were given. */
  readonly #granted = new Set<string>();
  /** Tokens whose lease was seen to end by its own release, and those whose holder was told so. */
  readonly #released = new Set<string>();
  readonly #toldReleased = new Set<string>();
  /** By key, the token that was the last one to be let go, and that no other one was revoked after. */
  readonly #left = new Map<string, string>();
  /** By token, until when nobody else may have the lock, on the world's clock. */
  readonly #closedUntil = new Map<string, number>();
  /** By token, the slot that was done when it was granted. */
  readonly #doneAtGrant = new Map<string, string>();
  /** By key, how many items it has had: ttl removes one, and the next write makes another. */
  readonly #items = new Map<string, number>();
  #acquisitions = 0;

  constructor(world: World, { client = () => ({}), isTidy = false, ...hosts }: LockCase = {}) {
    this.#isTidy = isTidy;
    this.#retentionMs = client().retentionMs ?? retentionMs;
    this.world = new Cluster<Caller>(world, {
      begin: (own, { release }, _index, network) => ({
        client: own,
        admin: new release.LeaseAdmin(own),
        network,
        leases: new Map(),
        beating: new WeakSet(),
        letGo: new Set(),
      }),
      client: (process) => ({
        ...client(),
        onEvent: (event) => process.isRunning && this.#heard(event),
      }),
      onChange: (changes) => this.#changed(changes),
      expected: ["LEASE_UNAVAILABLE", "LEASE_LOST", "LEASE_SLOT_DONE"],
      processes: 3,
      ...(!world.isRandom && { dates: () => "kept" }),
      ...hosts,
    });
  }

  take(one: LockStep): void {
    if (one.kind === "acquire" || one.kind === "adopt" || one.kind === "clock") {
      const running = this.world.at(one.process);
      if (running.process.isRunning) this.#call(running, one);
    } else {
      const meant = this.#meant(one);
      if (meant?.running.process.isRunning) this.#act(meant, one.kind);
    }
  }

  /**
   * All processes die: a newcomer gets each lock soon after its lease is over, and by watching it for a whole lease at the
   * latest. A read that lags may have shown the renewal before the last: that costs another lease.
   */
  async end(): Promise<void> {
    const { world } = this;
    if (this.#isTidy) await this.#expectNothingToStay();
    world.killAll();
    await world.clearUp();
    const waitMs = 2 * leaseDurationMs + 4 * clockSkewMs + 1_000;
    const open = new Set<string>();
    for (const key of keys) {
      world
        .at(0)
        .parts.client.acquire(key, { waitMs })
        .then(
          () => open.add(key),
          (error: Error) => world.world.tell("newcomer", error.message),
        );
    }
    await world.clock.advance(waitMs + 1_000);
    for (const key of keys) if (!open.has(key)) world.fault(`${key} is stuck past its lease`);
  }

  async #expectNothingToStay(): Promise<void> {
    await this.world.clearUp();
    for (const key of keys) {
      const token = this.world.table.peek(leaseItemKey(key))?.token;
      if (token !== undefined && !this.#granted.has(String(token)))
        this.world.fault(`${token} holds the lock, and no caller was given it`);
    }
  }

  #call(running: Running<Caller>, one: Extract<LockStep, { kind: "acquire" | "adopt" | "clock" }>): void {
    const { process } = running;
    if (one.kind === "acquire") this.#acquire(running, one);
    else if (one.kind === "adopt") this.#adopt(running, one.heartbeat);
    else if (process.isSettable) process.setWallOffset(one.aheadMs);
  }

  #meant(one: Extract<LockStep, { kind: Act }>): Handle | undefined {
    const all = this.world.processes.flatMap((running) =>
      [...running.parts.leases].map(([as, lease]) => ({ running, as, lease })),
    );
    if ("which" in one) return all[one.which % Math.max(1, all.length)];
    const running = this.world.processes[one.process];
    return all.find((handle) => handle.running === running && handle.as === (one.as ?? ""));
  }

  #acquire(running: Running<Caller>, one: Extract<LockStep, { kind: "acquire" }>): void {
    const { kind: _, process: __, as = "", key = keys[0], isForSlot = false, ...options } = one;
    const { process, parts } = running;
    // A lease with a heartbeat that nobody ends would be held for good, and rightly so.
    if (parts.leases.get(as)?.held) return;
    this.#acquisitions += 1;
    const owner = `${process.name}#${this.#acquisitions}`;
    const slot = isForSlot ? { slot: slotAt(this.world.world.now) } : {};
    const startedAt = this.world.clock.monotonic();
    const call = parts.client.acquire(key, { owner, heartbeat: false, ...slot, ...options });
    const granted = (lease: Lease): void => {
      parts.leases.set(as, lease);
      if (options.heartbeat) parts.beating.add(lease);
      this.#granted.add(lease.token);
      this.#closedUntil.set(lease.token, startedAt + (options.lockAtLeastForMs ?? 0));
      const done = this.#doneAtGrant.get(lease.token);
      if (lease.slot !== undefined && done !== undefined && done >= lease.slot)
        this.world.fault(`${process.name} was granted the slot ${lease.slot}, where ${done} is done`);
      this.#believes(running, lease);
    };
    this.world.watch(running, call, granted);
  }

  #adopt(running: Running<Caller>, heartbeat = false): void {
    const handle = this.#mailbox.shift();
    if (handle === undefined) return;
    const lease = running.parts.client.adopt(handle, { heartbeat });
    if (heartbeat) running.parts.beating.add(lease);
    running.parts.leases.set("", lease);
    this.world.count("adopted");
    this.#believes(running, lease);
  }

  /** Until it is handed over: its giver acts on it no more. */
  #believes({ process, parts }: Running<Caller>, lease: Lease): void {
    const holding = {
      fencingToken: lease.fencingToken,
      get held() {
        return lease.held && [...parts.leases.values()].includes(lease);
      },
    };
    this.world.beliefs.add(process, holding, leaseItemKey(lease.key));
  }

  #act({ running, as, lease }: Handle, kind: Act): void {
    const { process, parts } = running;
    if (kind === "write") this.world.watch(running, this.#writeFenced(running, lease));
    else if (kind === "check") this.world.watch(running, this.#writeChecked(running, lease));
    else if (kind === "renew") this.world.watch(running, lease.renew());
    else if (kind === "revoke")
      this.world.watch(running, parts.admin.requestRevocation(lease.key, { token: lease.token }));
    else if (kind === "revive") {
      if (!this.#toldReleased.has(lease.token)) return;
      const revived = (): void =>
        this.world.fault(`${process.name} renewed ${lease.key} as ${lease.token}, which it had released`);
      this.world.watch(running, parts.client.adopt(lease.toJSON()).renew(), revived);
    } else if (kind === "hand over") {
      if (parts.beating.has(lease) || parts.letGo.has(lease)) return;
      parts.leases.delete(as);
      this.#mailbox.push(lease.toJSON());
    } else this.#release(running, lease, kind);
  }

  #release(running: Running<Caller>, lease: Lease, kind: "release" | "complete"): void {
    const { world } = this;
    const { process, parts } = running;
    if (parts.letGo.has(lease)) return;
    parts.letGo.add(lease);
    const others = [...parts.leases.values()].filter(
      (other) => other.token === lease.token && !parts.letGo.has(other),
    );
    const wereHeld = others.filter(({ held }) => held);
    const item = this.#items.get(lease.key);
    const ended = (wasOurs: boolean): void => {
      // A holder may have slept for longer than a short retention: ttl has removed what it completed.
      const isSame =
        item === this.#items.get(lease.key) && world.table.peek(leaseItemKey(lease.key)) !== undefined;
      this.#ended(lease, wasOurs, kind === "complete" && isSame);
    };
    this.world.watch(running, lease[kind](), ended);
    // What another handle of the owner still holds does not end with this one.
    const lost = wereHeld.filter(({ held }) => !held);
    if (lost.length > 0)
      this.world.fault(`${process.name} let one handle go, and lost ${lost.length} others`);
  }

  #ended({ key, token, fencingToken, slot }: Lease, wasOurs: boolean, showsDone: boolean): void {
    const { world } = this;
    if (!wasOurs) world.count("late release refused");
    // After a later release the table does not show this one any more, which a repeated request would have to see.
    if (!wasOurs && this.#released.has(token) && this.#left.get(key) === token)
      world.fault(`the release of ${token} took effect, and its holder was told that it was lost`);
    const item = world.table.peek(leaseItemKey(key));
    // With another fencing token, a late copy of the acquisition has taken the free lock since, for nobody.
    const isHeld = item?.token === token && item.fence === fencingToken;
    if (!wasOurs || this.#handles(token) > 0) return;
    this.#toldReleased.add(token);
    if (isHeld) world.fault(`${token} was told to be released, and holds the lock`);
    if (showsDone && slot !== undefined && String(item?.doneSlot ?? "") < slot)
      world.fault(`the slot ${slot} was completed, and is not done`);
  }

  #handles(token: string): number {
    return this.world.processes
      .flatMap(({ parts }) => [...parts.leases.values()].filter((lease) => !parts.letGo.has(lease)))
      .filter((lease) => lease.token === token).length;
  }

  /** Writes an item in one transaction with the check that the lease is still held. */
  async #writeChecked({ parts }: Running<Caller>, lease: Lease): Promise<void> {
    const write: TransactionEntry = {
      key: { pk: lease.key, sk: checkedSortKey },
      action: { update: "SET #writer = :writer" },
      condition: "attribute_not_exists(#writer) OR attribute_exists(#writer)",
      names: { "#writer": "writer" },
      values: { ":writer": lease.fencingToken },
    };
    await transactIn(parts.network, [
      ...entriesOf([lease.conditionCheck({ format: "attributeValue" })]),
      write,
    ]);
  }

  /** Writes an item that remembers the highest fencing token. */
  async #writeFenced({ process, parts }: Running<Caller>, lease: Lease): Promise<void> {
    const fence = lease.fence({ format: "native" });
    const request = {
      key: { pk: lease.key, sk: resourceSortKey },
      update: `${fence.UpdateExpression}, #writer = :writer`,
      condition: fence.ConditionExpression,
      names: { ...fence.ExpressionAttributeNames, "#writer": "writer" },
      values: { ...fence.ExpressionAttributeValues, ":writer": process.name },
      returnsItem: false,
    };
    const { signal } = new AbortController();
    const { applied } = await parts.network.update(request, { signal, isCurrent: () => true });
    if (!applied) this.world.count("fenced off");
  }

  #heard(event: LeaseEvent): void {
    const { type } = event;
    const what = type === "takeover" || type === "lost" ? `${type}: ${event.reason}` : type;
    this.world.count(what);
    if (type === "contended" && event.holder === event.owner)
      this.world.fault(`${event.owner} was told that ${event.key} is held by its own acquisition`);
  }

  #changed(changes: readonly Change[]): void {
    for (const { key, before, after } of changes) {
      if (key.sk === leaseSortKey && before === undefined)
        this.#items.set(key.pk, (this.#items.get(key.pk) ?? 0) + 1);
      if (key.sk === leaseSortKey) this.#checkLease(key.pk, before ?? {}, after);
      else if (Number(after?.fence ?? after?.writer) < Number(before?.fence ?? before?.writer ?? 0))
        this.world.fault(`a stale ${key.sk === checkedSortKey ? "checked" : "fenced"} write took effect`);
      else if (key.sk === checkedSortKey) this.world.count("checked write");
    }
  }

  #checkLease(key: string, before: Item, after: Item | undefined): void {
    const { world } = this;
    if (after === undefined) return;
    const [was, is] = [before.token, after.token].map((token) =>
      token === undefined ? undefined : String(token),
    );
    // The service may remove an item when its ttl is over: that must be long after its last use.
    const keptMs = Number(after.ttl) * 1_000 - Number(after.expiresAt);
    if (keptMs < this.#retentionMs) world.fault(`${key} may be removed ${keptMs} ms after its use`);
    if (String(before.doneSlot ?? "") > String(after.doneSlot ?? ""))
      world.fault(`${key} went back from the done slot ${before.doneSlot} to ${after.doneSlot}`);
    if (was === is) {
      // Of two tokens that are revoked after each other, the item keeps the later one.
      if (before.releasedToken !== after.releasedToken) this.#left.delete(key);
      return;
    }
    if (was !== undefined && after.releasedToken === was) this.#released.add(was);
    if (is !== undefined && !isCooldownToken(is)) {
      if (this.#left.get(key) === is) world.fault(`the token ${is} was revoked, and came back`);
      if (before.doneSlot !== undefined) this.#doneAtGrant.set(is, String(before.doneSlot));
      if (was !== undefined && isCooldownToken(was)) world.count("opened after lockAtLeastFor");
      const closedUntil = this.#closedUntil.get(this.#left.get(key) ?? "") ?? 0;
      if (world.clock.monotonic() + clockSkewMs < closedUntil)
        world.fault(`${key} was opened while it was closed`);
    }
    if (was === undefined || isCooldownToken(was)) return;
    // A caller whose lease was taken over may still be waiting, and take it again.
    if (is === undefined || isCooldownToken(is)) this.#left.set(key, was);
    else this.#left.delete(key);
  }
}

function slotAt(ms: number): string {
  return String(Math.floor(ms / slotMs)).padStart(6, "0");
}

/** A scene whose clocks, retention and allowances are as wrong, short and small as chance has it. */
function byChance(world: World): LockScene {
  const { random } = world;
  // Short in some worlds, so that ttl comes into play, but longer than any request is under way and any wall clock is
  // wrong: that much retention is asked of users.
  const retentionMs = random.pick([8_000, 60_000, 24 * hourMs]);
  return new LockScene(world, {
    client: () => ({
      retentionMs,
      clockSkewMs: random.pick([serviceSpreadMs, clockSkewMs, 2 * clockSkewMs, Number.POSITIVE_INFINITY]),
    }),
    processes,
    wallErrorMs: retentionMs > hourMs ? 3 * hourMs : 2_000,
    serviceSpreadMs,
  });
}

export const lock: Simulation = {
  name: "lock",
  claim:
    "a lock has one holder at most, its fencing tokens grow, no stale write takes effect, and it opens again",
  worlds: 300,
  mustHappen: [
    "acquired",
    "adopted",
    "checked write",
    "contended",
    "fenced off",
    "late release refused",
    "lost: expired",
    "lost: revoked",
    "opened after lockAtLeastFor",
    "rejected: LeaseUnavailableError",
    "rejected: SlotDoneError",
    "renewed",
    "takeover: observation",
    "takeover: serviceClock",
    "ttl removed an item",
  ],
  mistakes: ofWorlds,
  play: stepByStep({ step, mostSteps: 90, make: byChance }),
};
