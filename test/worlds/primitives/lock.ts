import type { LeaseHandle } from "@leasehold/client";
import { Host } from "../host.ts";
import { calmWeather, longestDelayMs, roughWeather, type Surroundings } from "../network.ts";
import type { Random } from "../random.ts";
import type { Planted, Simulation } from "../simulation.ts";
import { Table } from "../table.ts";
import type { World } from "../world.ts";
import { ofWorlds } from "./lock-mistakes.ts";
import { LockMonitor } from "./lock-monitor.ts";
import { work } from "./lock-worker.ts";

const skewMs = 600;
/** How far the clocks of the service's hosts differ: that is what the allowance is for. */
const serviceSpreadMs = 250;
const hourMs = 3_600_000;
/** Many short worlds find as much in the same time as a few long ones do; some are long, for what takes its time. */
const durationsMs = [15_000, 15_000, 60_000] as const;
const keys = ["alpha", "beta"] as const;
const longestLeaseMs = 5_000;

/** Workers against one table, on hosts whose clocks are wrong, jump and are suspended. */
async function play(world: World, { tamper }: Planted): Promise<void> {
  const { random } = world;
  const durationMs = random.pick(durationsMs);
  const monitor = new LockMonitor(world, skewMs);
  // Short in some worlds, so that ttl comes into play, but longer than any request is under way and any wall clock is
  // wrong: that much retention is asked of users.
  const retentionMs = random.pick([8_000, 60_000, 24 * hourMs]);
  const wallErrorMs = retentionMs > hourMs ? 3 * hourMs : 2_000;
  const offset = (): number => random.between(-serviceSpreadMs / 2, serviceSpreadMs / 2);
  const around: Omit<Surroundings, "weather" | "ServiceError"> = {
    world,
    table: new Table(world),
    serviceOffsetsMs: [offset(), offset(), offset()],
    traffic: monitor,
    tamper,
  };
  const mailbox: LeaseHandle[] = [];
  const wanted: readonly [string, ...string[]] = random.chance(0.5) ? keys : [keys[0]];
  const trust = random.pick([0.2, 0.9]);
  let tokens = 0;

  const start = (name: string): Host => {
    const host = new Host(world, name, wallOffset(random, wallErrorMs));
    const weather = roughWeather(random);
    const { LeaseClient, LeaseAdmin, LeaseServiceError: ServiceError } = host.release;
    const network = world.connect(host, { ...around, weather: () => weather, ServiceError });
    const leases = new LeaseClient({
      store: network,
      clock: host,
      owner: name,
      clockSkewMs: random.pick([serviceSpreadMs, skewMs, skewMs, skewMs, 1_000, Number.POSITIVE_INFINITY]),
      retentionMs,
      onEvent: (event) => host.isRunning && monitor.heard(host, event),
      randomness: { token: () => `t${++tokens}`, fraction: () => random.fraction() },
    });
    const admin = new LeaseAdmin(leases);
    void work({ world, host, network, client: leases, admin, monitor, keys: wanted, mailbox, trust });
    return host;
  };

  const hosts = Array.from({ length: random.integer(2, 4) }, (_, index) => start(`p${index + 1}`));
  const mishap = (): void => {
    if (world.now >= durationMs) return;
    disturb(world, hosts, wallErrorMs, start);
    if (random.chance(0.3)) around.table.collectGarbage();
    world.after(random.between(200, 4_000), mishap);
  };
  world.after(random.between(0, 2_000), mishap);
  world.observe(() => {
    monitor.observe();
    world.check();
  });
  await world.clock.advance(durationMs);
  for (const host of hosts) host.kill();
  await everyLockOpens(world, { ...around, weather: () => calmWeather });
}

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
 * With every host dead and the network calm, a newcomer gets each lock soon after its lease is over: by watching it for a
 * whole lease at the latest, where a wall clock that was wrong died before it could be corrected. Copies of the dead hosts'
 * renewals still land for a while, and a read that lags may have shown the one before the last: that costs another lease.
 */
async function everyLockOpens(world: World, around: Surroundings): Promise<void> {
  const host = new Host(world, "newcomer", 0);
  const { LeaseClient, LeaseServiceError: ServiceError } = host.release;
  const store = world.connect(host, { ...around, ServiceError });
  const randomness = { token: () => "newcomer", fraction: () => world.random.fraction() };
  for (const key of keys) {
    const leases = new LeaseClient({ store, clock: host, clockSkewMs: skewMs, randomness });
    let isOpen = false;
    const waitMs = longestDelayMs + 2 * longestLeaseMs + 4 * skewMs + 1_000;
    leases.acquire(key, { waitMs }).then(
      () => {
        isOpen = true;
      },
      (error: Error) => world.tell("newcomer", () => error.message),
    );
    await world.clock.advance(waitMs + 2_000);
    if (!isOpen) world.fault(`${key} is stuck past its lease`);
    world.check();
  }
}

export const lock: Simulation = {
  name: "lock",
  claim:
    "a lock has one holder at most, its fencing tokens grow, no stale write takes effect, and it opens again",
  worlds: 400,
  mustHappen: [
    "acquired",
    "contended",
    "gave up",
    "fenced off",
    "late release refused",
    "lost: expired",
    "lost: revoked",
    "opened after lockAtLeastFor",
    "renewed",
    "slot was done",
    "takeover by observation",
    "takeover by serviceClock",
    "ttl removed an item",
  ],
  mistakes: ofWorlds,
  play,
};
