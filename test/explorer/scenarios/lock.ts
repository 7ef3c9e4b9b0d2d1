import {
  type AcquireOptions,
  type Lease,
  type LeaseClient,
  LeaseError,
  SlotDoneError,
} from "@leasehold/client";
import { Cluster, clockSkewMs, leaseDurationMs, type Running } from "../../simulation/cluster.ts";
import type { Network } from "../../simulation/network.ts";
import { LockMonitor } from "../../simulation/primitives/lock-monitor.ts";
import { writeChecked, writeFenced } from "../../simulation/primitives/lock-worker.ts";
import { type Planted, withoutTests } from "../../simulation/simulation.ts";
import type { World } from "../../simulation/world.ts";
import { scenario } from "../scenario.ts";

interface Caller {
  readonly client: LeaseClient;
  readonly network: Network;
  /** The last one that it was granted or has adopted. */
  lease: Lease | undefined;
}

type Step =
  | ({ readonly kind: "acquire"; readonly process: number } & Pick<
      AcquireOptions,
      "waitMs" | "heartbeat" | "slot" | "lockAtLeastForMs"
    >)
  | {
      readonly kind: "write" | "check" | "renew" | "release" | "complete" | "adopt" | "revive";
      readonly process: number;
    };

const key = "k";
const acquire = (process: number, options: object = {}): Step => ({ kind: "acquire", process, ...options });
const step = (kind: Exclude<Step["kind"], "acquire">, process: number): Step => ({ kind, process });

/** Callers of one lock that write under it, rightly or not. */
class Lock {
  readonly world: Cluster<Caller>;
  readonly #monitor: LockMonitor;

  constructor(world: World, { tamper }: Planted) {
    this.#monitor = new LockMonitor(world, clockSkewMs);
    this.world = new Cluster<Caller>(world, {
      processes: 3,
      begin: (client, _process, _index, network) => ({ client, network, lease: undefined }),
      client: (process) => ({
        onEvent: (event) => process.isRunning && this.#monitor.heard(process, event),
      }),
      tamper,
      traffic: this.#monitor,
    });
    world.observe(() => this.#monitor.observe());
  }

  async take(one: Step): Promise<void> {
    const running = this.world.processes[one.process];
    if (running === undefined || !running.process.isRunning) return;
    const { process, parts } = running;
    const { lease } = parts;
    const bench = { world: this.world.world, host: process, network: parts.network, monitor: this.#monitor };
    const holds = (granted: Lease): void => {
      parts.lease = granted;
      this.#monitor.holds(process, granted);
    };
    if (one.kind === "acquire") {
      const { kind: _, process: __, ...options } = one;
      this.#watch(running, parts.client.acquire(key, { heartbeat: false, ...options }), holds);
    } else if (one.kind === "adopt") {
      // As by a message that another process has sent.
      const handle = this.world.processes.find(({ parts: { lease } }) => lease !== undefined)?.parts.lease;
      if (handle !== undefined) holds(parts.client.adopt(handle.toJSON()));
    } else if (lease === undefined) return;
    else if (one.kind === "write") this.#watch(running, writeFenced(bench, lease));
    else if (one.kind === "check") this.#watch(running, writeChecked(bench, lease));
    else if (one.kind === "renew") this.#watch(running, lease.renew());
    else if (one.kind === "revive") {
      this.#monitor.bringsBack(lease);
      this.#watch(running, parts.client.adopt(lease.toJSON()).renew());
    } else {
      this.#monitor.ends(lease);
      this.#watch(running, lease[one.kind]());
    }
    await this.world.clock.advance(0);
  }

  /** All processes die: after a lease and the allowance for skew, a newcomer gets the lock. */
  async expectItToOpen(): Promise<void> {
    const { world } = this;
    world.killAll();
    await world.clearUp();
    const [newcomer] = world.processes;
    if (newcomer === undefined) return;
    let isOpen = false;
    const call = newcomer.parts.client.acquire(key, { waitMs: 2 * leaseDurationMs + 4 * clockSkewMs });
    call.then(
      () => {
        isOpen = true;
      },
      (error: Error) => world.world.tell("newcomer", error.message),
    );
    await world.clock.advance(2 * leaseDurationMs + 4 * clockSkewMs + 1_000);
    if (!isOpen) world.fault("it is stuck past its lease");
  }

  #watch<Value>(
    running: Running<Caller>,
    call: Promise<Value>,
    onValue: (value: Value) => void = () => {},
  ): void {
    this.world.watch(
      running,
      call,
      onValue,
      (error) => error instanceof LeaseError || error instanceof SlotDoneError,
    );
  }
}

const make = (world: World, planted: Planted): Lock => new Lock(world, planted);
const end = (lock: Lock): Promise<void> => lock.expectItToOpen();

export const lock = [
  scenario({
    name: "lock",
    faults: 2,
    kinds: ["request lost", "request late", "answer lost", "answer late", "sent twice", "killed", "frozen"],
    make,
    lanes: [
      { process: 0, steps: [acquire(0), step("write", 0), step("release", 0), step("write", 0)] },
      { process: 1, steps: [acquire(1, { waitMs: 8_000 }), step("write", 1), step("release", 1)] },
    ],
    end,
    mistakes: [
      {
        what: "a release that does not insist on its token",
        tamper: withoutTests(
          ({ attribute, test, write }) =>
            test === "=" && ["token", "fence"].includes(attribute) && ":releasedToken" in write.values,
          (name) => `attribute_exists(${name})`,
        ),
        violation: /./,
      },
    ],
  }),
];
