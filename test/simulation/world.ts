import { ManualClock } from "@leasehold/client/testing";
import type { Host } from "./host.ts";
import { Network, type Surroundings } from "./network.ts";
import { Random } from "./random.ts";
import type { Change } from "./table.ts";

/** The wall clocks' time when a simulation begins. */
export const epoch = Date.UTC(2026, 0, 1);

/** One line of the story that a failure tells. */
export interface Line {
  readonly at: number;
  readonly who: string;
  readonly text: string;
}

/** How often the interesting things happened: a simulation in which they do not happen proves nothing. */
export type Tally = Record<string, number>;

/** True time, whose observers look whenever every promise has settled. */
class TrueClock extends ManualClock {
  readonly observers: (() => void)[] = [];

  protected override async settle(): Promise<void> {
    await super.settle();
    for (const observe of this.observers) observe();
  }
}

/** True time, as everything but the hosts sees it. */
export type WorldClock = Pick<ManualClock, "now" | "monotonic" | "schedule" | "advance" | "freeze">;

/**
 * Virtual time: the one place where anything waits, the only source of chance, and the story of what happened.
 *
 * Here chance decides what happens. The explorer's world decides it by choices instead, one after the other.
 */
export class World {
  readonly seed: number;
  readonly random: Random;
  readonly timeline: Line[] = [];
  readonly tally: Tally = {};
  /** The first thing that must not be. */
  violation: string | undefined;
  readonly clock: WorldClock;
  readonly #observers: (() => void)[] = [];

  constructor(seed: number, random: Random = new Random(seed), clock: WorldClock = new TrueClock(epoch)) {
    this.seed = seed;
    this.random = random;
    this.clock = clock;
    if (clock instanceof TrueClock) clock.observers.push(() => this.look());
  }

  /** True time in milliseconds since the beginning; no host sees it. */
  get now(): number {
    return this.clock.monotonic();
  }

  /** Lets something happen after a delay, to a host if one is named; gives a function that calls it off. */
  after(delayMs: number, run: () => void, _host?: Host): () => void {
    return this.clock.schedule(run, delayMs);
  }

  /** Connects a host to the table. */
  connect(host: Host, around: Surroundings): Network {
    return new Network(host, around);
  }

  /** Something happens inside a host: all that it does follows from these, in their order, and from its clocks. */
  experienced(_host: Host, _what: string): void {}

  /** A write takes effect. */
  written(_changes: readonly Change[]): void {}

  /** Has something looked at after every event, when every promise has settled. */
  observe(look: () => void): void {
    this.#observers.push(look);
  }

  /** Looks at what is to be looked at. */
  look(): void {
    for (const observe of this.#observers) observe();
  }

  tell(who: string, text: string): void {
    this.timeline.push({ at: this.now, who, text });
  }

  count(what: string): void {
    this.tally[what] = (this.tally[what] ?? 0) + 1;
  }

  /** Something that must not be. */
  fault(text: string): void {
    this.tell("MONITOR", text);
    this.violation ??= text;
  }

  /** Throws where something was that must not be. */
  check(): void {
    if (this.violation !== undefined) throw new Violation(this.violation);
  }
}

/** Ends a simulation at the first thing that must not be. */
export class Violation extends Error {}
