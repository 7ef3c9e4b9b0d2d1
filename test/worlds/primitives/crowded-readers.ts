/** A read-write lock with never a moment without a reader: a writer gets in all the same, for its intent keeps new ones out. */
import { type Lease, LeaseServiceError } from "@leasehold/client";
import type { ReadWriteLock } from "../../../packages/client/src/entries/read-write.ts";
import { Cluster, clockSkewMs, leaseDurationMs } from "../cluster.ts";
import type { Weather } from "../network.ts";
import { type Planted, type Simulation, withoutTests } from "../simulation.ts";
import type { World } from "../world.ts";

const callers = 6;
const readEveryMs = 150;
const longestStayMs = 2_000;
const writesAtMs = 4_950;
const lastsMs = 40_000;

/** Rough, but not so that hardly a request is answered in time. */
const weather: Weather = {
  requestLost: 0.05,
  answerLost: 0.05,
  slow: 0.03,
  usualMs: 150,
  throttled: 0,
  dateReplaced: 0,
  conflict: 0,
};

/** Readers that keep coming, and one writer among them. */
class Crowd {
  readonly cluster: Cluster<ReadWriteLock>;
  readonly #readers = new Set<Lease>();
  #writer: Lease | undefined;
  #hasEnded = false;

  constructor(world: World, { tamper }: Planted) {
    this.cluster = new Cluster(world, {
      processes: callers,
      begin: (client, { release }) => new release.ReadWriteLock(client, "k"),
      onChange: () => this.#check(),
      weather,
      tamper,
    });
  }

  get #world(): World {
    return this.cluster.world;
  }

  async play(): Promise<void> {
    for (let elapsed = 0; elapsed < lastsMs; elapsed += readEveryMs) {
      if (elapsed === writesAtMs) void this.#write();
      void this.#read();
      await this.#world.clock.advance(readEveryMs);
      this.#world.check();
    }
    if (!this.#hasEnded) this.#world.fault("the writer was never let in");
    this.cluster.killAll();
  }

  async #read(): Promise<void> {
    const { random, clock } = this.#world;
    const lock = this.cluster.processes[random.integer(1, callers - 1)]?.parts;
    const stayMs = random.between(0, longestStayMs);
    const lease = await lock?.tryRead().catch(() => undefined);
    if (lease === undefined) return;
    this.#world.count("read");
    this.#readers.add(lease);
    this.#check();
    clock.schedule(() => void lease.release().catch(() => false), stayMs);
  }

  async #write(): Promise<void> {
    const since = this.#world.now;
    try {
      const lock = this.cluster.processes[0]?.parts;
      this.#writer = await lock?.write({ waitMs: 30_000, retry: { strategy: "fixed", delayMs: 200 } });
      this.#check();
      // A reader whose release is lost ends with its lease. A writer may lose its intent, when one renewal after the other
      // gets no answer, and then has later readers to wait for.
      const isLate = this.#world.now - since >= 2 * (leaseDurationMs + clockSkewMs) + 5_000;
      this.#world.count(isLate ? "a writer that lost its intent" : "a writer in time");
      this.#hasEnded = true;
      await this.#writer?.release();
    } catch (error) {
      if (error instanceof LeaseServiceError) this.#world.count("a writer without an answer");
      else this.#world.fault(`the writer was never let in: ${error}`);
      this.#hasEnded = true;
    }
  }

  #check(): void {
    const reading = [...this.#readers].filter(({ held }) => held).length;
    if (this.#writer?.held && reading > 0) this.#world.fault(`a writer beside ${reading} readers`);
  }
}

export const crowdedReaders: Simulation = {
  name: "seats:crowded-readers",
  claim: "a writer gets in while readers keep coming: those that come later wait for it",
  worlds: 12,
  mustHappen: { "a writer in time": 9, read: 300 },
  mistakes: [
    {
      what: "an intent that keeps no reader out",
      tamper: withoutTests(({ attribute }) => attribute === "intents"),
      violation: /the writer was never let in/,
    },
  ],
  play: (world, planted) => new Crowd(world, planted).play(),
};
