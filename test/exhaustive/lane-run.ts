import type { Host } from "../worlds/host.ts";
import { happen, type Scene } from "../worlds/simulation.ts";
import type { World } from "../worlds/world.ts";
import type { Lane, Wait } from "./scenario.ts";

/** One lane under way: a step is due when the calls of the one before have settled, and its wait is over. */
export class LaneRun {
  readonly host: Host | undefined;
  readonly #lane: Lane<unknown>;
  readonly #world: World;
  readonly #scene: Scene<object>;
  #step = 0;
  #at = 0;
  #calls: readonly Promise<unknown>[] = [];

  constructor(lane: Lane<unknown>, world: World, scene: Scene<object>) {
    this.#lane = lane;
    this.#world = world;
    this.#scene = scene;
    this.host = scene.world.processes[lane.process]?.process;
  }

  /** What it takes next. */
  get what(): string {
    return JSON.stringify(this.#lane.steps[this.#step]);
  }

  get state(): string {
    return `${this.#step}@${this.#at}`;
  }

  /** Its last step is taken, or its process is dead or frozen. */
  get isOver(): boolean {
    return !this.host?.isRunning || (this.#isLast && this.#isSettled);
  }

  get isDue(): boolean {
    return this.at !== undefined && this.at <= this.#world.now;
  }

  /** When it goes on, if only the time is to be waited for. */
  get at(): number | undefined {
    return this.#isLast || !this.host?.isRunning || !this.#isSettled ? undefined : this.#at;
  }

  async take(): Promise<void> {
    const step = this.#lane.steps[this.#step];
    this.#step += 1;
    if (this.host !== undefined) this.#world.experienced(this.host, JSON.stringify(step));
    if (isWait(step)) {
      this.#at = this.#world.now + step.ms;
      return;
    }
    const { world } = this.#scene;
    const before = new Set(world.calls.keys());
    await happen(this.#scene, step as object);
    this.#calls = [...world.calls.keys()].filter((call) => !before.has(call));
  }

  get #isLast(): boolean {
    return this.#step >= this.#lane.steps.length;
  }

  get #isSettled(): boolean {
    return this.#calls.every((call) => !this.#scene.world.calls.has(call));
  }
}

function isWait(step: unknown): step is Wait {
  return (step as Wait).kind === "wait";
}
