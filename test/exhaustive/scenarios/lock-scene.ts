import {
  type AcquireOptions,
  type Lease,
  type LeaseClient,
  type LeaseClientOptions,
  LeaseError,
  type LeaseHandle,
} from "@leasehold/client";
import { callBudgetMs } from "../../../packages/client/src/base/timed-call.ts";
import {
  Cluster,
  type ClusterOptions,
  clockSkewMs,
  leaseDurationMs,
  type Running,
  retentionMs,
} from "../../worlds/cluster.ts";
import { longestDelayMs, type Network } from "../../worlds/network.ts";
import { LockMonitor } from "../../worlds/primitives/lock-monitor.ts";
import { writeChecked, writeFenced } from "../../worlds/primitives/lock-worker.ts";
import type { Planted } from "../../worlds/simulation.ts";
import type { Change } from "../../worlds/table.ts";
import type { World } from "../../worlds/world.ts";

/** What a lease can be told to do, by the name of its handle. */
type Act = "write" | "check" | "renew" | "release" | "complete" | "hand over" | "revive";

export type LockStep =
  | ({ readonly kind: "acquire"; readonly process: number; readonly as?: string } & Pick<
      AcquireOptions,
      "waitMs" | "heartbeat" | "slot" | "lockAtLeastForMs" | "reentrant" | "owner"
    >)
  | { readonly kind: Act; readonly process: number; readonly as?: string }
  | { readonly kind: "adopt"; readonly process: number; readonly heartbeat?: boolean }
  /** Its machine's wall clock is set. */
  | { readonly kind: "clock"; readonly process: number; readonly aheadMs: number };

interface Caller {
  readonly client: LeaseClient;
  readonly network: Network;
  /** What it was granted or has adopted, by the names of its handles. */
  readonly leases: Map<string, Lease>;
  /** The leases that it has begun to let go. */
  readonly letGo: Set<Lease>;
}

const key = "k";
/** A frozen process may send a request again for as long as its call may take, and that copy may be late. */
const longestUnderWayMs = callBudgetMs + longestDelayMs + clockSkewMs;
const expectedCodes = [
  "LEASE_UNAVAILABLE",
  "LEASE_NO_ANSWER",
  "LEASE_LOST",
  "LEASE_SLOT_DONE",
  "LEASE_CONFLICT",
  "LEASE_THROTTLED",
];

/** Callers of one lock that write under it, rightly or not. */
export class LockScene {
  readonly world: Cluster<Caller>;
  readonly #monitor: LockMonitor;
  readonly #mailbox: LeaseHandle[] = [];
  /** Tokens of the leases that callers were given. */
  readonly #granted = new Set<string>();
  /** Tokens whose lease was seen to end by its own release. */
  readonly #released = new Set<string>();
  /** Slots that a caller was told to be recorded as done. */
  #done = "";

  constructor(
    world: World,
    { tamper }: Planted,
    options: Partial<LeaseClientOptions> = {},
    hosts: Pick<ClusterOptions<Caller>, "dates" | "serviceAheadMs"> = {},
  ) {
    this.#monitor = new LockMonitor(world, clockSkewMs);
    this.world = new Cluster<Caller>(world, {
      processes: 3,
      begin: (client, _process, _index, network) => ({
        client,
        network,
        leases: new Map(),
        letGo: new Set(),
      }),
      client: (process) => ({
        ...options,
        onEvent: (event) => process.isRunning && this.#monitor.heard(process, event),
      }),
      onChange: (changes) => this.#changed(changes),
      dates: () => "kept",
      ...hosts,
      tamper,
      traffic: this.#monitor,
    });
    world.observe(() => this.#monitor.observe());
  }

  async take(one: LockStep): Promise<void> {
    const running = this.world.processes[one.process];
    if (running === undefined || !running.process.isRunning) return;
    if (one.kind === "acquire") this.#acquire(running, one);
    else if (one.kind === "clock") running.process.setWallOffset(one.aheadMs);
    else if (one.kind === "adopt") this.#adopt(running, one.heartbeat);
    else {
      const lease = running.parts.leases.get(one.as ?? "");
      if (lease !== undefined) this.#act(running, lease, one);
    }
    await this.world.clock.advance(0);
  }

  /** What no caller was given stays held by nobody, as long as nobody dies or freezes and no request is late. */
  async expectNothingToStay(): Promise<void> {
    await this.world.clearUp();
    const token = this.world.table.peek({ pk: key, sk: "lease" })?.token;
    if (token !== undefined && !this.#granted.has(String(token)))
      this.world.fault(`${token} holds the lock, and no caller was given it`);
    await this.expectItToOpen();
  }

  /** All processes die: after a lease and the allowance for skew, a newcomer gets the lock. */
  async expectItToOpen(): Promise<void> {
    const { world } = this;
    world.killAll();
    await world.clearUp();
    const [newcomer] = world.processes;
    if (newcomer === undefined) return;
    let isOpen = false;
    const waitMs = 2 * leaseDurationMs + 4 * clockSkewMs;
    const call = newcomer.parts.client.acquire(key, { waitMs });
    call.then(
      () => {
        isOpen = true;
      },
      (error: Error) => world.world.tell("newcomer", error.message),
    );
    await world.clock.advance(waitMs + 1_000);
    if (!isOpen) world.fault("it is stuck past its lease");
  }

  #acquire(running: Running<Caller>, one: Extract<LockStep, { kind: "acquire" }>): void {
    const { kind: _, process: __, as = "", ...options } = one;
    const call = running.parts.client.acquire(key, { heartbeat: false, ...options });
    const granted = (lease: Lease): void => {
      running.parts.leases.set(as, lease);
      this.#granted.add(lease.token);
      this.#monitor.holds(running.process, lease);
      if (lease.slot !== undefined && lease.slot <= this.#done)
        this.world.fault(`${running.process.name} was granted the slot ${lease.slot}, which is done`);
    };
    this.#watch(running, call, granted);
  }

  #adopt(running: Running<Caller>, heartbeat = false): void {
    const handle = this.#mailbox.shift();
    if (handle === undefined) return;
    const lease = running.parts.client.adopt(handle, { heartbeat });
    running.parts.leases.set("", lease);
    this.#monitor.holds(running.process, lease);
  }

  #act(running: Running<Caller>, lease: Lease, { kind }: Extract<LockStep, { kind: Act }>): void {
    const { process, parts } = running;
    const bench = { world: this.world.world, host: process, network: parts.network, monitor: this.#monitor };
    if (kind === "write") this.#watch(running, writeFenced(bench, lease));
    else if (kind === "check") this.#watch(running, writeChecked(bench, lease));
    else if (kind === "renew") this.#watch(running, lease.renew());
    else if (kind === "revive") {
      this.#monitor.bringsBack(lease);
      const revived = (): void => this.#monitor.revived(process, lease);
      this.#watch(running, parts.client.adopt(lease.toJSON()).renew(), revived);
    } else if (kind === "hand over") {
      this.#monitor.handsOver(lease);
      this.#mailbox.push(lease.toJSON());
    } else {
      parts.letGo.add(lease);
      const others = [...parts.leases.values()].filter(
        (other) => other.token === lease.token && !parts.letGo.has(other),
      );
      const wereHeld = others.filter(({ held }) => held);
      if (others.length === 0) this.#monitor.ends(lease);
      const ended = (wasOurs: boolean): void => this.#ended(lease, wasOurs, kind === "complete");
      this.#watch(running, lease[kind](), ended);
      // What another handle of the owner still holds does not end with this one.
      const lost = wereHeld.filter(({ held }) => !held);
      if (lost.length > 0)
        this.world.fault(`${process.name} let one handle go, and lost ${lost.length} others`);
    }
  }

  #ended({ token, fencingToken, slot }: Lease, wasOurs: boolean, isCompleted: boolean): void {
    const { world } = this;
    if (!wasOurs && this.#released.has(token))
      world.fault(`the release of ${token} took effect, and its holder was told that it was lost`);
    const item = world.table.peek({ pk: key, sk: "lease" });
    // With another fencing token, a late copy of the acquisition has taken the free lock since, for nobody.
    const isHeld = item?.token === token && item.fence === fencingToken;
    if (wasOurs && isHeld && this.#handles(token) === 0)
      world.fault(`${token} was told to be released, and holds the lock`);
    if (!wasOurs || !isCompleted || slot === undefined) return;
    if (String(item?.doneSlot ?? "") < slot) world.fault(`the slot ${slot} was completed, and is not done`);
    this.#done = slot > this.#done ? slot : this.#done;
  }

  #handles(token: string): number {
    return this.world.processes
      .flatMap(({ parts }) => [...parts.leases.values()].filter((lease) => !parts.letGo.has(lease)))
      .filter((lease) => lease.token === token).length;
  }

  #changed(changes: readonly Change[]): void {
    for (const { key: changed, before, after } of changes) {
      if (changed.sk !== "lease") continue;
      const [was, is] = [before?.token, after?.token];
      if (was !== undefined && is !== was && after?.releasedToken === was) this.#released.add(String(was));
      // The service may remove an item when its ttl is over: that must be long after its last use.
      const usedUntil = Number(after?.expiresAt ?? this.world.clock.now() - longestUnderWayMs);
      const keptUntil = Number(after?.ttl) * 1_000;
      if (after !== undefined && keptUntil < usedUntil + retentionMs)
        this.world.fault(`${changed.pk} may be removed ${keptUntil - usedUntil} ms after its use`);
    }
  }

  #watch<Value>(
    running: Running<Caller>,
    call: Promise<Value>,
    onValue: (value: Value) => void = () => {},
  ): void {
    const isExpected = (error: unknown): boolean =>
      error instanceof LeaseError && expectedCodes.includes(error.code);
    this.world.watch(running, call, onValue, isExpected);
  }
}
