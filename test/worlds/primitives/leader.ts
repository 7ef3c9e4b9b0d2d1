import { leaseItemKey } from "@leasehold/client/schema";
import fc from "fast-check";
import type { Leader, Leadership } from "../../../packages/client/src/entries/leader.ts";
import { Cluster, everyMishap, leaseDurationMs, type Mishap, mishaps, retentionMs } from "../cluster.ts";
import type { Host } from "../host.ts";
import { drawn, type Scene, type Simulation, stepByStep } from "../simulation.ts";
import type { World } from "../world.ts";
import { foreignRelease, heldGrant, staleTakeover } from "./lease-mistakes.ts";

const processes = 4;
const election = "scheduler";

export type LeaderStep =
  | { readonly kind: "vacancy" }
  | { readonly kind: "lead" | "stop" | "resign"; readonly process: number };

const candidate = fc.nat(processes - 1);
const step: fc.Arbitrary<LeaderStep | Mishap> = fc.oneof(
  drawn(3, "resign", { process: candidate }),
  drawn(1, "stop", { process: candidate }),
  drawn(2, "lead", { process: candidate }),
  drawn(1, "vacancy", {}),
  ...mishaps(processes),
);

/** A process that stands for election, and observes it. */
interface Candidate {
  readonly leader: Leader;
  /** Defined while it leads or campaigns. */
  until: AbortController | undefined;
}

export class Election implements Scene<LeaderStep> {
  readonly world: Cluster<Candidate>;
  /** Whether leaders have work for ever. */
  #isSteady: boolean;

  constructor(world: World, { candidates = processes, isSteady = false, observes = true } = {}) {
    this.#isSteady = isSteady;
    this.world = new Cluster<Candidate>(world, {
      processes: candidates,
      begin: (client, process) => {
        const leader = new process.release.Leader(client, election, {
          data: { address: process.name },
          onElected: (leadership) => this.#elected(process, leadership),
          onLost: () => this.world.count("lost"),
          onResigned: () => this.world.count("resigned"),
        });
        if (observes) void this.#observe(process, leader);
        return { leader, until: undefined };
      },
      expected: [],
    });
  }

  async take(one: LeaderStep): Promise<void> {
    if (one.kind === "vacancy") await this.#vacate();
    else if (one.kind === "lead") this.#lead(one.process);
    else if (one.kind === "stop") this.#stop(one.process);
    else this.#resign(one.process);
  }

  /** Nobody stands for so long that ttl removes every trace. */
  async #vacate(): Promise<void> {
    for (const index of this.world.processes.keys()) this.#stop(index);
    await this.world.clock.advance(leaseDurationMs + retentionMs + 5_000);
    await this.world.befall({ kind: "collect" });
    for (const index of this.world.processes.keys()) this.#lead(index);
  }

  /** Everybody has stopped, and the weather is calm: whoever stands then leads. */
  async end(): Promise<void> {
    const { world } = this;
    await world.clearUp();
    for (const index of world.processes.keys()) this.#stop(index);
    await world.clock.advance(30_000);
    if (world.pending > 0) world.fault(`${world.pending} candidates do not stop`);
    this.#isSteady = true;
    for (const index of world.processes.keys()) this.#lead(index);
    // The lease of a leader that is dead, the allowance, and the longest look.
    await world.clock.advance(20_000);
    const leaders = world.processes.filter(({ parts }) => parts.leader.leadership !== undefined);
    if (leaders.length !== 1) world.fault(`${leaders.length} lead in calm weather`);
    await world.clock.advance(20_000);
    const seen = await Promise.all(
      world.processes.map(async ({ parts }) => await this.#answer(parts.leader.current())),
    );
    const [leader] = leaders;
    // A read that lags by no more than 2 s shows what has been so for 20.
    const isKnown = seen.every((sighted) => sighted?.owner === leader?.process.name);
    if (!isKnown) world.fault(`the leader is ${leader?.process.name}, and seen ${JSON.stringify(seen)}`);
  }

  async #answer<Value>(call: Promise<Value>): Promise<Value> {
    await this.world.clock.advance(1_000);
    return await call;
  }

  #lead(index: number): void {
    const running = this.world.at(index);
    if (running.parts.until !== undefined) return;
    const { process, parts } = running;
    const until = new AbortController();
    parts.until = until;
    const work = async (leadership: Leadership, signal: AbortSignal): Promise<void> => {
      if (!leadership.held) this.world.count("begun too late");
      const isDone = this.#isSteady ? [] : [process.pause(this.world.random.between(500, 20_000))];
      await Promise.race([aborted(signal), ...isDone]);
    };
    const ended = (): void => {
      parts.until = undefined;
    };
    this.world.watch(running, parts.leader.lead(work, { signal: until.signal }), ended, () => false);
  }

  #stop(index: number): void {
    this.world.at(index).parts.until?.abort(new Error("stopped"));
  }

  #resign(index: number): void {
    const running = this.world.at(index);
    this.world.watch(running, running.parts.leader.resign());
  }

  #elected(process: Host, leadership: Leadership): void {
    this.world.count("elected");
    this.world.beliefs.add(process, leadership, leaseItemKey(election));
  }

  /** Reads that lag show the past now and then, but nobody is told of a leader that is older than the last one. */
  async #observe(process: Host, leader: Leader): Promise<void> {
    let last = 0;
    for await (const sighted of leader.observe({ everyMs: 1_000 })) {
      this.world.count(sighted === undefined ? "seen nobody" : "seen a leader");
      const fence = sighted?.fencingToken ?? last;
      if (fence < last) this.world.fault(`${process.name} saw the fencing token ${fence} after ${last}`);
      last = Math.max(last, fence);
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

export const leader: Simulation = {
  name: "leader",
  claim:
    "an election has one leader at most, finds a new one when the weather clears, and shows no leader after a later one",
  worlds: 150,
  mustHappen: ["elected", "lost", "resigned", "seen nobody", "seen a leader", ...everyMishap],
  mistakes: { ...staleTakeover, ...heldGrant, ...foreignRelease },
  play: stepByStep({
    step,
    mostSteps: 70,
    opening: [0, 1, 2].map((process) => ({ kind: "lead", process }) as const),
    make: (world) => new Election(world),
  }),
};
