import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { build } from "esbuild";
import type { Cast, Played, Seeds } from "./player.ts";
import { addTo } from "./world.ts";

/** So many seeds go to a thread at once: enough to keep it busy, few enough to see soon that something is wrong. */
const seedsTogether = 50;

/**
 * The code of a thread as one script. tsx runs the other sources of this program; it would give each closure its name when
 * it is made, which a simulation has no use for and feels.
 */
export async function bundleThread(entry: URL): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(entry)],
    bundle: true,
    write: false,
    platform: "node",
    // A script that is no file finds packages from the working directory; a module of that kind finds none.
    format: "cjs",
    target: "node22",
    conditions: ["leasehold-source"],
    // The client loads it; no simulation uses it.
    external: ["@aws-sdk/*"],
    logLevel: "error",
  });
  return outputFiles[0]?.text ?? "";
}

export const bundlePlayer = (): Promise<string> => bundleThread(new URL("player.ts", import.meta.url));

/** Spreads seeds over threads. */
export class Players {
  readonly #played: { -readonly [part in keyof Played]: Played[part] } = {
    worlds: 0,
    virtualMs: 0,
    tally: {},
    wrong: undefined,
  };
  readonly #onProgress: (worlds: number) => void;
  #next: number;
  #left: number;

  constructor({ first, count }: Seeds, onProgress: (worlds: number) => void) {
    this.#onProgress = onProgress;
    this.#next = first;
    this.#left = count;
  }

  /** Plays all seeds, or until something is wrong in one of them. */
  async play(player: string, cast: Cast, jobs: number): Promise<Played> {
    await Promise.all(Array.from({ length: jobs }, () => this.#work(player, cast)));
    return this.#played;
  }

  async #work(player: string, cast: Cast): Promise<void> {
    const thread = new Worker(player, { eval: true, workerData: cast });
    try {
      for (let seeds = this.#take(); seeds !== undefined; seeds = this.#take()) {
        const which = `one of the seeds ${seeds.first} to ${seeds.first + seeds.count - 1}`;
        this.#add(await answerOf<Played>(thread, seeds, which));
      }
    } finally {
      await thread.terminate();
    }
  }

  #take(): Seeds | undefined {
    if (this.#left === 0 || this.#played.wrong !== undefined) return undefined;
    const seeds = { first: this.#next, count: Math.min(seedsTogether, this.#left) };
    this.#next += seeds.count;
    this.#left -= seeds.count;
    return seeds;
  }

  #add({ worlds, virtualMs, tally, wrong }: Played): void {
    this.#played.worlds += worlds;
    this.#played.virtualMs += virtualMs;
    addTo(this.#played.tally, tally);
    this.#played.wrong ??= wrong;
    this.#onProgress(this.#played.worlds);
  }
}

/** Asks a thread. Rejects where that ends by an error that nobody expects, such as a rejection that nobody handles. */
export function answerOf<Answer>(thread: Worker, asked: object, about: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    thread.removeAllListeners();
    thread.once("message", resolve);
    thread.once("error", (cause: Error) => reject(new Error(`${about}: ${cause.message}`, { cause })));
    thread.postMessage(asked);
  });
}
