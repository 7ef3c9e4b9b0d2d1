import type { LeaseHandle } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { Host } from "./host.ts";
import { Monitor, type Tally } from "./monitor.ts";
import { Network, type ServiceClocks, type Weather } from "./network.ts";
import type { Random } from "./random.ts";
import { realSubject, type Subject } from "./subject.ts";
import { work } from "./worker.ts";
import { epoch, type Line, World } from "./world.ts";

/** What a simulation came to. */
export interface Outcome {
  readonly seed: number;
  /** The first thing that must not be; undefined if nothing was wrong. */
  readonly violation: string | undefined;
  readonly timeline: readonly Line[];
  readonly tally: Tally;
  readonly virtualMs: number;
}

const skewMs = 600;
/** How far the clocks of the service's hosts differ: half of the allowance is for that. */
const serviceSpreadMs = 250;
const hourMs = 3_600_000;
const keys = ["alpha", "beta"] as const;
const calm: Weather = { requestLost: 0, answerLost: 0, slow: 0, throttled: 0 };
const longestLeaseMs = 5_000;

/** Runs workers against one table in a world that the seed determines, and watches them. */
export async function simulate(seed: number, subject: Subject = realSubject): Promise<Outcome> {
  const world = new World(seed);
  const { random } = world;
  const table = new MemoryLeaseStore();
  const monitor = new Monitor(world, skewMs);
  const weather: Weather = {
    requestLost: random.pick([0, 0.02, 0.1]),
    answerLost: random.pick([0, 0.02, 0.15]),
    slow: random.pick([0, 0.05, 0.2]),
    throttled: random.pick([0, 0.02]),
  };
  // Short in some worlds, so that ttl comes into play, but longer than any request is under way and any wall clock is
  // wrong: that much retention is asked of users.
  const retentionMs = random.pick([8_000, 60_000, 24 * hourMs]);
  const wallErrorMs = retentionMs > hourMs ? 3 * hourMs : 2_000;
  const offset = (): number => random.between(-serviceSpreadMs / 2, serviceSpreadMs / 2);
  const clocks: ServiceClocks = { offsetsMs: [offset(), offset(), offset()], areTold: random.chance(0.9) };
  const mailbox: LeaseHandle[] = [];
  const clockSkewMs = random.chance(0.15) ? Number.POSITIVE_INFINITY : skewMs;
  let tokens = 0;

  const start = (name: string, weatherThere: Weather): { host: Host; network: Network } => {
    const host = new Host(world, name, wallOffset(random, wallErrorMs));
    const network = new Network(world, host, table, subject, monitor, weatherThere, clocks);
    const client = new subject.LeaseClient({
      store: network,
      clock: host,
      owner: name,
      clockSkewMs: Number.isFinite(clockSkewMs) ? skewMs : clockSkewMs,
      retentionMs,
      onEvent: (event) => host.isRunning && monitor.heard(host, event),
      randomness: { token: () => `t${++tokens}`, fraction: () => random.fraction() },
    });
    void work({ world, host, network, client, monitor, keys, mailbox });
    return { host, network };
  };

  const durationMs = 60_000;
  const hosts = Array.from(
    { length: random.integer(2, 4) },
    (_, index) => start(`p${index + 1}`, weather).host,
  );
  const mishap = (): void => {
    if (world.now >= durationMs) return;
    disturb(world, hosts, wallErrorMs, (name) => start(name, weather).host);
    if (random.chance(0.3)) {
      const removed = table.collectGarbage(epoch + world.now);
      if (removed > 0) world.tell("table", `ttl removed ${removed} items`);
      if (removed > 0) monitor.count("ttl removed an item");
    }
    world.after(random.between(200, 4_000), mishap);
  };
  world.after(random.between(0, 2_000), mishap);
  const observe = (): void => {
    monitor.observe();
    if (monitor.violation !== undefined) throw new Stop();
  };
  try {
    await world.run(durationMs, observe);
    for (const host of hosts) host.kill();
    await everyLockOpens(world, table, monitor, subject, clocks, observe);
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
  }
  return {
    seed,
    violation: monitor.violation,
    timeline: world.timeline,
    tally: monitor.tally,
    virtualMs: world.now,
  };
}

class Stop extends Error {}

/** A wall clock may be right, or off by anything up to this. */
function wallOffset(random: Random, wallErrorMs: number): number {
  return random.chance(0.3) ? 0 : random.between(-wallErrorMs, wallErrorMs);
}

/** Freezes, kills, restarts, or sets a clock. */
function disturb(world: World, hosts: Host[], wallErrorMs: number, restart: (name: string) => Host): void {
  const { random } = world;
  const index = random.integer(0, hosts.length - 1);
  const host = hosts[index];
  if (host === undefined) return;
  switch (random.pick(["freeze", "freeze", "suspend", "kill", "clock"])) {
    case "freeze":
      host.freeze(random.between(10, 12_000), false);
      break;
    case "suspend":
      host.freeze(random.between(10, 12_000), host.isSuspendable);
      break;
    case "kill":
      host.kill();
      hosts[index] = restart(`${host.name}'`);
      break;
    case "clock":
      if (host.isSettable) host.setWallOffset(wallOffset(random, wallErrorMs));
      break;
  }
}

/**
 * With every process dead and the network calm, a newcomer gets each lock soon after its lease is over: by watching it for
 * a whole lease at the latest, where a wall clock that was wrong died before it could be corrected.
 */
async function everyLockOpens(
  world: World,
  table: MemoryLeaseStore,
  monitor: Monitor,
  subject: Subject,
  clocks: ServiceClocks,
  observe: () => void,
): Promise<void> {
  const host = new Host(world, "newcomer", 0);
  const store = new Network(world, host, table, subject, monitor, calm, clocks);
  const randomness = { token: () => "newcomer", fraction: () => world.random.fraction() };
  for (const key of keys) {
    const client = new subject.LeaseClient({ store, clock: host, clockSkewMs: skewMs, randomness });
    let isOpen = false;
    const waitMs = 2 * longestLeaseMs + 4 * skewMs + 1_000;
    client.acquire(key, { waitMs }).then(
      () => {
        isOpen = true;
      },
      (error: Error) => world.tell("newcomer", error.message),
    );
    await world.run(world.now + waitMs + 2_000, observe);
    if (!isOpen) monitor.stuck(key);
    observe();
  }
}
