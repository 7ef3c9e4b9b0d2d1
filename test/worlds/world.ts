import { ManualClock, settled } from "@leasehold/client/testing";
import type { Host } from "./host.ts";
import { Network, type Surroundings } from "./network.ts";
import { Random } from "./random.ts";
import { present, type Release } from "./release.ts";
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

/** Of so many looks at settled promises, one waits for the event loop: it tells of rejections that nobody has handled. */
const looksPerTurn = 16;

/** Adds what happened in one world to what happened in others. */
export function addTo(sum: Tally, tally: Tally): void {
  for (const [what, times] of Object.entries(tally)) sum[what] = (sum[what] ?? 0) + times;
}

/** True time, whose observers look whenever every promise has settled. */
class TrueClock extends ManualClock {
  readonly #onSettled: () => void;
  readonly #settled = settling();

  constructor(now: number, onSettled: () => void) {
    super(now);
    this.#onSettled = onSettled;
  }

  protected override async settle(): Promise<void> {
    await this.#settled();
    this.#onSettled();
  }
}

/** True time, as everything but the hosts sees it. */
export type WorldClock = Pick<ManualClock, "now" | "monotonic" | "schedule" | "advance" | "freeze">;

/**
 * Makes what resolves when every promise that can settle without a timer or an answer has settled. Mostly it takes a fifth
 * of the time of a turn of the event loop: Node empties the queue of microtasks before a tick that one of them has asked
 * for. Nothing here waits for ticks, I/O or real timers.
 */
export function settling(): () => Promise<void> {
  let looks = 0;
  return () => {
    looks += 1;
    if (looks % looksPerTurn === 0) return settled();
    return new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)));
  };
}

/** What a world is made of. */
export interface WorldParts {
  /** Whether the story is written down: of many worlds, only the one that goes wrong is worth the time. @default true */
  readonly isTold?: boolean;
  readonly random?: Random;
  readonly clock?: WorldClock;
  /** What hosts have installed: each draws one of them when it starts. @default - the packages as they are now */
  readonly releases?: readonly [Release, ...Release[]];
}

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
  /** Whether chance decides what happens. */
  readonly isRandom: boolean = true;
  readonly #isTold: boolean;
  readonly #releases: readonly [Release, ...Release[]];
  /** By the name of the first host of each line of hosts, the release of the last one. */
  readonly #installed = new Map<string, Release>();
  readonly #observers: (() => void)[] = [];

  constructor(
    seed: number,
    { isTold = true, random = new Random(seed), clock, releases = [present] }: WorldParts = {},
  ) {
    this.seed = seed;
    this.random = random;
    this.clock = clock ?? new TrueClock(epoch, () => this.look());
    this.#isTold = isTold;
    this.#releases = releases;
  }

  /** True time in milliseconds since the beginning; no host sees it. */
  get now(): number {
    return this.clock.monotonic();
  }

  /** Lets something happen after a delay, to a host if one is named; gives a function that calls it off. */
  after(delayMs: number, run: () => void, _host?: Host): () => void {
    return this.clock.schedule(run, delayMs);
  }

  /** The release of a host that starts. One that starts in the place of a dead host has its name, and a prime. */
  releaseOf(name: string): Release {
    // One release takes nothing of chance: seeds tell the same stories with it as ever.
    if (this.#releases.length === 1) return this.#releases[0];
    const release = this.random.pick(this.#releases);
    const place = name.replaceAll("'", "");
    const before = this.#installed.get(place);
    this.#installed.set(place, release);
    const isNow = release === present;
    this.tell(name, isNow ? "has the packages of now" : "has an earlier release");
    if (before !== undefined && before !== release) this.count(isNow ? "rolled forward" : "rolled back");
    return release;
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

  /** @param text what happened; a function where making the text takes time */
  tell(who: string, text: string | (() => string)): void {
    if (!this.#isTold) return;
    this.timeline.push({ at: this.now, who, text: typeof text === "string" ? text : text() });
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
