import type { Clock } from "@leasehold/client";
import type { Release } from "./release.ts";
import type { World } from "./world.ts";

/**
 * What answers bear as their Date when they reach a host: the service's own, none, or now and then that of a proxy whose
 * clock is wrong.
 */
export type Dates = "kept" | "stripped" | "sometimes replaced";

/** Each host's clocks run wrong by up to this. */
const rateError = 0.001;

/**
 * A process: its own clocks, and timers and answers that reach it only while it runs.
 *
 * Its monotonic clock has a rate of its own, and its wall clock is wrong by as much as the world has it. While it is frozen,
 * timers and answers pile up; when it wakes they come in an order of chance, as they do from a real event loop.
 */
export class Host implements Clock {
  readonly name: string;
  /** Whether its machine can be suspended. */
  readonly isSuspendable: boolean;
  /** How long the machine has been up, suspensions included; not every system can tell. */
  readonly uptime?: () => number;
  dates: Dates;
  /** What it has installed. */
  readonly release: Release;
  /** How often it has been frozen. */
  freezes = 0;
  readonly #rate: number;
  readonly #world: World;
  #wallOffset: number;
  #monotonicOffset: number;
  #state: "running" | "frozen" | "dead" = "running";
  #frozenAt = 0;
  #stopsClock = false;
  #backlog: { readonly run: () => void; readonly what: string }[] = [];
  #timers = 0;
  #shown = 0;

  /** @param dates one of five hosts gets none, and one gets a wrong one now and then, where it is not given */
  constructor(
    world: World,
    name: string,
    wallOffset: number,
    dates: Dates = world.random.pick(["kept", "kept", "kept", "stripped", "sometimes replaced"]),
  ) {
    this.name = name;
    this.#world = world;
    this.#wallOffset = wallOffset;
    this.#monotonicOffset = world.random.between(0, 1_000_000);
    this.isSuspendable = world.random.chance(0.5);
    this.#rate = world.random.between(1 - rateError, 1 + rateError);
    this.dates = dates;
    this.release = world.releaseOf(name);
    if (world.random.chance(0.5)) this.uptime = () => world.now * this.#rate;
  }

  /**
   * Whether somebody may set its wall clock: not on a machine that is suspended and whose uptime does not tell, for both
   * together are beyond what is promised.
   */
  get isSettable(): boolean {
    return !this.isSuspendable || this.uptime !== undefined;
  }

  get isRunning(): boolean {
    return this.#state === "running";
  }

  get isDead(): boolean {
    return this.#state === "dead";
  }

  /** Whether its monotonic clock stands still: what it believes by it counts again when it has woken. */
  get isSuspended(): boolean {
    return this.#state === "frozen" && this.#stopsClock;
  }

  /** What has reached it while it is frozen. */
  get backlog(): readonly string[] {
    return this.#backlog.map(({ what }) => what);
  }

  now(): number {
    return Math.floor(this.#world.clock.now() + this.#wallOffset);
  }

  monotonic(): number {
    const now = this.isSuspended ? this.#frozenAt : this.#world.now;
    // Never backwards, not even by what rounding brings after a suspension.
    this.#shown = Math.max(this.#shown, now * this.#rate + this.#monotonicOffset);
    return this.#shown;
  }

  schedule(callback: () => void, delayMs: number): () => void {
    let isCancelled = false;
    this.#timers += 1;
    const what = `timer ${this.#timers}`;
    const run = (): void => {
      if (!isCancelled) callback();
    };
    const cancel = this.#world.after(delayMs / this.#rate, () => this.deliver(run, what), this);
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  /** Runs something inside the process: now, when it wakes, or never. */
  deliver(run: () => void, what: string): void {
    if (this.#state === "frozen") this.#backlog.push({ run, what });
    if (this.#state !== "running") return;
    this.#world.experienced(this, what);
    run();
  }

  /** Resolves after a time of this host's: never, if it dies before. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.schedule(resolve, ms);
    });
  }

  /** Stops the process; with `stopsClock` as a whole machine, whose monotonic clock stands still meanwhile. */
  freeze(durationMs: number, stopsClock: boolean): void {
    if (!this.isRunning) return;
    this.stop(stopsClock);
    this.#world.after(durationMs, () => this.wake());
  }

  /** Stops the process until it is woken. */
  stop(stopsClock: boolean): void {
    if (this.#state !== "running") return;
    this.#state = "frozen";
    this.freezes += 1;
    this.#frozenAt = this.#world.now;
    this.#stopsClock = stopsClock;
    this.#world.tell(this.name, stopsClock ? "FROZEN with its machine" : "FROZEN");
  }

  kill(): void {
    if (this.#state === "dead") return;
    this.#state = "dead";
    this.#backlog = [];
    this.#world.tell(this.name, "KILLED");
  }

  /** Sets the wall clock. */
  setWallOffset(offsetMs: number): void {
    this.#wallOffset = offsetMs;
    this.#world.tell(this.name, () => `its wall clock is now ${Math.round(offsetMs)} ms off`);
  }

  /** A proxy takes the Date out of its answers from now on. */
  loseDates(): void {
    this.dates = "stripped";
    this.#world.tell(this.name, "gets no Dates any more");
  }

  wake(): void {
    if (this.#state !== "frozen") return;
    this.#state = "running";
    if (this.#stopsClock) this.#monotonicOffset -= (this.#world.now - this.#frozenAt) * this.#rate;
    this.#world.tell(this.name, "woken");
    const backlog = this.#backlog;
    this.#backlog = [];
    while (backlog.length > 0) {
      const [late] = backlog.splice(this.#world.random.integer(0, backlog.length - 1), 1);
      if (late !== undefined) this.#world.after(0, () => this.deliver(late.run, late.what), this);
    }
  }
}
