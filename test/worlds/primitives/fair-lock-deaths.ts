/** Waiters of a fair lock that die around its release: the dead keep no living waiter out for longer than is promised. */
import { attributeNames } from "@leasehold/client/schema";
import {
  Queue as ClientQueue,
  unresponsiveAfterMs,
} from "../../../packages/client/src/primitives/fair/queue.ts";
import { type QueueTicket, ticketsIn } from "../../../packages/client/src/primitives/fair/queue-ticket.ts";
import { clockSkewMs, leaseDurationMs } from "../cluster.ts";
import { calmWeather } from "../network.ts";
import { type Planted, replacing, type Simulation } from "../simulation.ts";
import type { World } from "../world.ts";
import { Queue } from "./fair-lock.ts";

const waiters = 7;
const deaths = 5;
/** Longer than the world lasts. */
const waitMs = 600_000;
const stepMs = 200;
/** By far more than a waiter needs to show that it is alive. */
const wallErrorMs = 30_000;
/** How long a request takes at most, there and back. */
const slowestMs = 600;
/** The service tells its time in whole seconds. */
const dateMs = 1_000;
/** The largest allowance of a host that has one. */
const mostSkewMs = 2 * clockSkewMs;
/** What a grant takes beyond the time after which a waiter is unresponsive: the last look, and the request that acquires. */
const slackMs = mostSkewMs + dateMs + 2 * slowestMs;
/** A waiter sleeps no longer. */
const longestSleepMs = 9_000;
/**
 * One who goes by observation alone only knows that a lease is free, or over, when it has seen so: a sleep, and a lease of
 * whose holder it saw a renewal after that.
 */
const observationMs = longestSleepMs + leaseDurationMs + slowestMs;

/** What happens once, at a time of the world. */
interface Event {
  readonly at: number;
  befall(): void;
}

class DyingLine {
  readonly #queue: Queue;
  readonly #events: Event[] = [];
  #lastDeath = 0;
  /** Since when the lock is free, and a living waiter stands in line; undefined while it is not so. */
  #since: number | undefined;
  /** The lease as the table shows it, and since when. */
  #lease: { readonly written: string | undefined; readonly landedAt: number } = {
    written: undefined,
    landedAt: 0,
  };
  /** Whether any host has come that goes by observation alone, or writes what others have to judge so. */
  #isBlind = false;

  constructor(world: World, planted: Planted) {
    const weather = { ...calmWeather, usualMs: world.random.pick([20, slowestMs / 2]) };
    this.#queue = new Queue(world, planted, { processes: waiters + 1, isCalm: true, weather, wallErrorMs });
    world.observe(() => this.#check());
  }

  get #world(): World {
    return this.#queue.world.world;
  }

  async play(): Promise<void> {
    const { random, clock } = this.#world;
    this.#queue.acquire({ process: 0, waitMs: 0, heartbeat: true });
    await clock.advance(2 * slowestMs);
    for (let process = 1; process <= waiters; process += 1) {
      this.#queue.acquire({ process, waitMs, heartbeat: random.chance(0.8) });
      await clock.advance(random.between(0, 3_000));
    }
    const endsAt = clock.now() + random.between(1_000, 80_000);
    this.#at(endsAt, () => (random.chance(0.2) ? this.#kill(0) : this.#release(0)));
    const alive = Array.from({ length: waiters }, (_, index) => index + 1);
    for (let left = deaths; left > 0; left -= 1) {
      const [dead = 0] = alive.splice(random.integer(0, alive.length - 1), 1);
      this.#at(endsAt + random.between(-20_000, 40_000), () => this.#kill(dead));
    }
    await this.#run(endsAt + 40_000 + (waiters + 1) * (this.#longestFreeMs + leaseDurationMs));
    if (this.#queue.world.pending > 0) this.#world.fault("a living waiter was not served");
    this.#queue.world.killAll();
  }

  /** For how long a lock may be free while a living waiter stands in line. */
  get #longestFreeMs(): number {
    this.#isBlind ||= this.#queue.world.processes.some(({ isBlind }) => isBlind);
    return unresponsiveAfterMs + slackMs + (this.#isBlind ? observationMs : 0);
  }

  #at(at: number, befall: () => void): void {
    this.#events.push({ at, befall });
  }

  async #run(until: number): Promise<void> {
    const { random, clock } = this.#world;
    const leaving = new Set<number>();
    while (clock.now() < until) {
      for (const { owner } of this.#queue.held()) {
        const process = this.#queue.world.processes.findIndex((running) => running.process.name === owner);
        if (process === 0 || leaving.has(process)) continue;
        leaving.add(process);
        this.#at(clock.now() + random.between(0, 3_000), () => this.#release(process));
      }
      const due = this.#events.filter(({ at }) => at <= clock.now());
      for (const event of due) {
        this.#events.splice(this.#events.indexOf(event), 1);
        event.befall();
      }
      await clock.advance(stepMs);
      this.#world.check();
    }
  }

  #release(process: number): void {
    void this.#queue.take({ kind: "release", process });
  }

  #kill(process: number): void {
    const { world } = this.#queue;
    const name = world.processes[process]?.process.name;
    if (this.#tickets().some(({ owner }) => owner === name)) world.count("dead in line");
    world.kill(process);
    this.#lastDeath = world.clock.now();
  }

  #tickets(): ReturnType<typeof ticketsIn> {
    return ticketsIn(this.#queue.world.table.peek({ pk: "k", sk: "lease" }));
  }

  /** A free lock with a living waiter is granted in time, whatever dead waiters stand before it. */
  #check(): void {
    const { table, processes, clock } = this.#queue.world;
    const item = table.peek({ pk: "k", sk: "lease" });
    const { token, version } = attributeNames;
    const written = item?.[token] === undefined ? undefined : `${item[token]} ${item[version]}`;
    if (written !== this.#lease.written) this.#lease = { written, landedAt: clock.now() };
    const isFree = written === undefined || this.#lease.landedAt + leaseDurationMs + mostSkewMs < clock.now();
    const lives = ticketsIn(item).some(({ owner }) =>
      processes.some(({ process }) => process.name === owner),
    );
    if (!isFree || !lives) {
      this.#since = undefined;
      return;
    }
    this.#since ??= clock.now();
    const freeMs = clock.now() - Math.max(this.#since, this.#lastDeath);
    if (freeMs > this.#longestFreeMs) {
      this.#world.fault(`free for ${freeMs} ms while a living waiter stands in line`);
    }
  }
}

/** Plants a mistake: when tickets may be passed. */
export function passableIn(mistaken: (ms: number) => number): Planted["plant"] {
  return replacing(
    ClientQueue.prototype,
    "passableIn",
    (original) =>
      function (this: ClientQueue, tickets) {
        return original.call(this, tickets).map(mistaken);
      },
  );
}

/** Plants a mistake: what others judge tickets by. */
function judgedAs(mistaken: (ticket: QueueTicket) => QueueTicket): Planted["plant"] {
  return replacing(
    ClientQueue.prototype,
    "passableIn",
    (original) =>
      function (this: ClientQueue, tickets) {
        return original.call(this, tickets.map(mistaken));
      },
  );
}

export const fairLockDeaths: Simulation = {
  name: "fair-lock:deaths",
  claim: "a free fair lock is granted to a living waiter in time, whichever waiters before it die, and when",
  worlds: 60,
  mustHappen: { grant: 200, "from the queue": 150, "dead in line": 150, "passed in silence": 60 },
  mistakes: [
    {
      what: "a dead waiter that nobody ever passes",
      plant: passableIn(() => Number.POSITIVE_INFINITY),
      violation: /free for/,
    },
    {
      what: "a living waiter that never shows that it is alive",
      plant: replacing(ClientQueue.prototype, "provesLifeFor", () => () => Number.POSITIVE_INFINITY),
      violation: /while its ticket stood/,
    },
    {
      what: "a ticket that is judged by its waiter's wrong clock",
      plant: judgedAs((ticket) => ({ ...ticket, ownClock: false })),
      violation: /while its ticket stood/,
    },
  ],
  play: (world, planted) => new DyingLine(world, planted).play(),
};
