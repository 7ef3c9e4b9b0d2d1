import { ManualClock } from "@leasehold/client/testing";
import { Random } from "./random.ts";

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
  readonly observers: (() => void)[] = [];
  #looks = 0;

  protected override async settle(): Promise<void> {
    this.#looks += 1;
    await (this.#looks % looksPerTurn === 0 ? super.settle() : drained());
    for (const observe of this.observers) observe();
  }
}

/**
 * Resolves when every promise that can settle without a timer or an answer has settled, in a fifth of the time that a turn
 * of the event loop takes: Node empties the queue of microtasks before a tick that one of them has asked for. Nothing
 * here waits for ticks, I/O or real timers.
 */
function drained(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)));
}

/** Virtual time: the one place where anything waits, the only source of chance, and the story of what happened. */
export class World {
  readonly seed: number;
  readonly random: Random;
  readonly timeline: Line[] = [];
  readonly tally: Tally = {};
  /** The first thing that must not be. */
  violation: string | undefined;
  readonly clock: ManualClock;
  readonly #clock = new TrueClock(epoch);
  readonly #isTold: boolean;

  /** @param isTold whether the story is written down: of many worlds, only the one that goes wrong is worth the time. */
  constructor(seed: number, isTold = true) {
    this.seed = seed;
    this.#isTold = isTold;
    this.random = new Random(seed);
    this.clock = this.#clock;
  }

  /** True time in milliseconds since the beginning; no host sees it. */
  get now(): number {
    return this.clock.monotonic();
  }

  /** Lets something happen after a delay; gives a function that calls it off. */
  after(delayMs: number, run: () => void): () => void {
    return this.clock.schedule(run, delayMs);
  }

  /** Has something looked at after every event, when every promise has settled. */
  observe(look: () => void): void {
    this.#clock.observers.push(look);
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
