import type { Lease, LeaseClient } from "@leasehold/client";
import { attributeNames, leaseItemKey } from "@leasehold/client/schema";
import fc from "fast-check";
import type { LeaseGroup } from "../../../packages/client/src/entries/group.ts";
import { Cluster, everyMishap, type Mishap, mishaps, type Running } from "../cluster.ts";
import type { Release } from "../release.ts";
import { drawn, type Scene, type Simulation, stepByStep, without } from "../simulation.ts";
import type { Change } from "../table.ts";
import type { World } from "../world.ts";
import { heldGrant, staleTakeover } from "./lease-mistakes.ts";

const processes = 5;
const keys = ["a", "b", "c", "d"] as const;

export type GroupStep =
  | {
      readonly kind: "acquire";
      readonly process: number;
      /** One alone is acquired as a single lease. */
      readonly keys: readonly string[];
      readonly waitMs: number;
      readonly heartbeat: boolean | number;
      readonly lockAtLeastForMs: number;
    }
  /** Of all that are held, or of those that a process holds. */
  | { readonly kind: "release" | "renew"; readonly which: number; readonly process?: number };

const step: fc.Arbitrary<GroupStep | Mishap> = fc.oneof(
  drawn(8, "acquire", {
    process: fc.nat(processes - 1),
    keys: fc.shuffledSubarray([...keys], { minLength: 1 }),
    waitMs: fc.constantFrom(0, 4_000, 15_000),
    heartbeat: fc.boolean(),
    lockAtLeastForMs: fc.constantFrom(0, 0, 0, 1_500),
  }),
  drawn(6, "release", { which: fc.nat(50) }),
  drawn(2, "renew", { which: fc.nat(50) }),
  ...mishaps(processes),
);

interface Candidate {
  readonly client: LeaseClient;
  readonly release: Release;
  readonly held: Set<Lease | LeaseGroup>;
}

export class Contest implements Scene<GroupStep> {
  readonly world: Cluster<Candidate>;

  constructor(world: World, count = processes) {
    this.world = new Cluster<Candidate>(world, {
      processes: count,
      begin: (client, { release }) => ({ client, release, held: new Set() }),
      // The locks of a group end together: their renewals are the worlds of shared requests.
      client: ({ release: { together } }) => (together ? { renewals: together() } : {}),
      onChange: (changes) => this.#changed(changes),
      expected: ["LEASE_UNAVAILABLE", "LEASE_LOST"],
    });
  }

  take(one: GroupStep): void {
    if (one.kind === "acquire") this.acquire(one);
    else this.#touch(one);
  }

  acquire(one: Omit<Extract<GroupStep, { kind: "acquire" }>, "kind">): void {
    const running = this.world.at(one.process);
    const { waitMs, heartbeat, lockAtLeastForMs } = one;
    const { client, release } = running.parts;
    const [first = "", ...others] = one.keys;
    const options = { waitMs, heartbeat, lockAtLeastForMs };
    const call: Promise<Lease | LeaseGroup> =
      others.length > 0 ? release.acquireAll(client, one.keys, options) : client.acquire(first, options);
    this.world.watch(running, call, (held) => this.#granted(running, held));
  }

  /** Once the weather is calm, everybody who wants some of the keys gets them, one after the other. */
  async end(): Promise<void> {
    const { world } = this;
    await world.clearUp();
    // Callers wait for at most 15 s; then come the looks and leases that follow.
    for (let waitedMs = 0; waitedMs < 40_000; waitedMs += 5_000) {
      for (const { parts } of world.processes)
        for (const held of parts.held) void held.release().catch(() => false);
      await world.clock.advance(5_000);
    }
    if (world.pending > 0) world.fault(`${world.pending} calls have not settled`);
    const wishes: readonly (readonly string[])[] = [
      ["a", "b", "c"],
      ["c", "d", "a"],
      ["b", "d"],
      ["d", "c", "b", "a"],
      ["a"],
    ];
    let served = 0;
    for (const [index, running] of world.processes.entries()) {
      const wish = wishes[index] ?? keys;
      const call = running.parts.release.acquireAll(running.parts.client, wish, {
        waitMs: 120_000,
        heartbeat: true,
      });
      call.then(
        (group) => {
          served += 1;
          this.#granted(running, group);
          running.process.schedule(() => void group.release().catch(() => false), 500);
        },
        (error: unknown) => world.fault(`${wish} were never to be had: ${error}`),
      );
    }
    await world.clock.advance(120_000);
    const { length } = world.processes;
    if (served < length) world.fault(`${served} of ${length} were served in calm weather`);
  }

  #granted({ process, parts }: Running<Candidate>, held: Lease | LeaseGroup): void {
    parts.held.add(held);
    const leases = "leases" in held ? [...held.leases.values()] : [held];
    this.world.count("leases" in held ? "group granted" : "lease granted");
    for (const lease of leases) this.world.beliefs.add(process, lease, leaseItemKey(lease.key));
    const others = leases.filter(
      ({ fencingToken, token }) => fencingToken !== held.fencingToken || token !== held.token,
    );
    if (others.length > 0) this.world.fault(`a group of tokens of its own: ${others.map(({ key }) => key)}`);
  }

  #touch({ kind, which, process }: Extract<GroupStep, { kind: "release" | "renew" }>): void {
    const { processes } = this.world;
    const holders = process === undefined ? processes : processes.slice(process, process + 1);
    const all = holders.flatMap((running) => [...running.parts.held].map((held) => ({ running, held })));
    const one = all[which % Math.max(1, all.length)];
    if (one === undefined) return;
    const { running, held } = one;
    if (kind === "release") running.parts.held.delete(held);
    this.world.watch<unknown>(running, held[kind](), () => this.world.count(`${kind} confirmed`));
  }

  /** A token that comes to several keys comes to all that it is meant for at once, or to none. */
  #changed(changes: readonly Change[]): void {
    const { token } = attributeNames;
    const tokens = new Set(changes.map(({ after }) => after?.[token]));
    if (changes.length > 1 && (tokens.size > 1 || tokens.has(undefined))) {
      this.world.fault(`a transaction left ${[...tokens].join(" and ")}`);
    }
  }
}

export const group: Simulation = {
  name: "group",
  claim:
    "groups hold all or nothing, never beside another holder, and everybody comes in when the weather clears",
  worlds: 200,
  mustHappen: [
    ...everyMishap,
    "group granted",
    "lease granted",
    "conflict",
    "release confirmed",
    "renew confirmed",
    "rejected: GroupUnavailableError",
    "rejected: LeaseLostError",
  ],
  mistakes: {
    ...staleTakeover,
    ...heldGrant,
    "a fencing token that is no new maximum": [
      without({ of: "fence", test: "<" }),
      /the fencing token of .* went from/,
    ],
  },
  play: stepByStep({ step, mostSteps: 70, make: (world) => new Contest(world) }),
};
