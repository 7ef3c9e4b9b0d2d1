import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { anyRequest, type Proxy as FaultyProxy, startProxy, type Target } from "../support/proxy.ts";
import { Random } from "../worlds/random.ts";
import { count, type Tally, Weather } from "./faults.ts";
import type { Bend } from "./plants.ts";
import type { WorkerConfig } from "./worker/config.ts";
import type { Journal } from "./worker/journal.ts";

/** What a supervisor needs to know of its run. */
export interface SupervisorTerms {
  readonly engine: Target;
  /** The programs of processes: each draws one when it starts. */
  readonly workers: readonly [string, ...string[]];
  /** Where journals and what processes print are kept. */
  readonly folder: string;
  readonly journal: Journal;
  readonly tally: Tally;
  readonly bend: Bend;
  /** What all processes are told alike. */
  readonly common: Omit<
    WorkerConfig,
    "name" | "seed" | "journal" | "clientConfig" | "store" | "wallMs" | "audits"
  >;
}

/** How wrong wall clocks are at most. */
const wallErrorMs = 1_800_000;
/** How long a process may take to end when it is asked to: a waiter in line waits for 9 s, and a close may take 10. */
const endingMs = 40_000;
/** The proxy remembers every request: now and then it is to forget them. */
const forgetEveryMs = 2_000;

/** One place for a process: its network, the process that runs there now, and all that befalls it. */
export class Supervisor {
  readonly #terms: SupervisorTerms;
  readonly #place: number;
  readonly #random: Random;
  readonly #weather: Weather;
  readonly #proxy: FaultyProxy;
  readonly #forgetting: NodeJS.Timeout;
  readonly #calm = new AbortController();
  #process: Running | undefined;
  #starts = 0;

  private constructor(terms: SupervisorTerms, place: number, seed: number, proxy: FaultyProxy) {
    this.#terms = terms;
    this.#place = place;
    this.#random = new Random(seed);
    const { journal, tally, bend } = terms;
    this.#weather = new Weather(seed + 1, tally, bend, (turn) =>
      journal.event(turn, {}, this.#process?.name),
    );
    this.#proxy = proxy;
    const listen = (): void => {
      proxy.reset();
      proxy.always(anyRequest, this.#weather.behaviour);
    };
    listen();
    this.#forgetting = setInterval(listen, forgetEveryMs);
  }

  static async create(terms: SupervisorTerms, place: number, seed: number): Promise<Supervisor> {
    return new Supervisor(terms, place, seed, await startProxy(terms.engine));
  }

  /** Runs a process, kills it and starts another one, freezes it and lets it go on, until it is calmed. */
  async torment(): Promise<void> {
    this.#start(false);
    const random = this.#random;
    while (await this.#passes(random.between(500, 7_000))) {
      if (random.chance(0.15)) await this.#kill();
      else await this.#freeze();
    }
  }

  /** Ends the faults. */
  calm(): void {
    this.#calm.abort();
    this.#weather.calm();
  }

  /** Asks the process to finish, and waits until it has ended. */
  async finish(): Promise<void> {
    const { child } = this.#process ?? missing();
    // One that met a mistake of its own has gone already: its journal says so.
    if (child.connected) child.send("finish");
    await this.#awaitEnd();
  }

  /** Lets a process that only audits run to its end. */
  async audit(): Promise<void> {
    this.calm();
    this.#start(true);
    await this.#awaitEnd();
  }

  async close(): Promise<void> {
    clearInterval(this.#forgetting);
    this.end();
    await this.#proxy.close();
  }

  /** Ends the process at once, also a frozen one, which would outlive this program. */
  end(): void {
    this.#process?.child.kill("SIGKILL");
  }

  /** Waits; tells whether the faults still go on. */
  async #passes(ms: number): Promise<boolean> {
    // Ignored: the calm ends the wait.
    await sleep(ms, undefined, { signal: this.#calm.signal }).catch(() => undefined);
    return !this.#calm.signal.aborted;
  }

  #start(audits: boolean): void {
    const { workers, folder, journal, common } = this.#terms;
    this.#starts += 1;
    const name = audits ? "auditor" : `p${this.#place}.${this.#starts}`;
    const random = this.#random;
    const isClockWrong = !audits && random.chance(0.5);
    const config: WorkerConfig = {
      ...common,
      name,
      seed: random.integer(0, 2 ** 31),
      journal: join(folder, `${name}.jsonl`),
      clientConfig: this.#proxy.clientConfig as WorkerConfig["clientConfig"],
      store: random.chance(0.5) ? "light" : "sdk",
      wallMs: isClockWrong ? random.integer(-wallErrorMs, wallErrorMs) : 0,
      audits,
    };
    // One program takes nothing of chance: seeds go as ever.
    const worker = workers.length === 1 || audits ? workers[0] : random.pick(workers);
    journal.event("start", { store: config.store, wallMs: config.wallMs, worker: basename(worker) }, name);
    if (this.#weather.isFoul) journal.event("foul", {}, name);
    this.#process = new Running(name, worker, config, folder, journal);
  }

  async #kill(): Promise<void> {
    const { journal, tally } = this.#terms;
    count(tally, "kills");
    const { name, child, ended } = this.#process ?? missing();
    journal.event("kill", {}, name);
    child.kill("SIGKILL");
    await ended;
    await this.#passes(this.#random.between(0, 2_000));
    this.#start(false);
  }

  /** Mostly for a moment, now and then for longer than a lease. */
  async #freeze(): Promise<void> {
    const { journal, tally } = this.#terms;
    count(tally, "freezes");
    const { name, child } = this.#process ?? missing();
    const ms = 6_000 * this.#random.fraction() ** 2;
    journal.event("freeze", { ms: Math.round(ms) }, name);
    child.kill("SIGSTOP");
    await this.#passes(ms);
    journal.event("thaw", {}, name);
    child.kill("SIGCONT");
  }

  async #awaitEnd(): Promise<void> {
    const { child, ended } = this.#process ?? missing();
    const patience = new AbortController();
    const tooLate = sleep(endingMs, undefined, { signal: patience.signal }).then(
      () => child.kill("SIGKILL"),
      // Ignored: it has ended in time.
      () => false,
    );
    await ended;
    patience.abort();
    await tooLate;
  }
}

function missing(): never {
  throw new Error("no process has been started here");
}

/** A process, until it has ended. */
class Running {
  readonly name: string;
  readonly child: ChildProcess;
  readonly ended: Promise<void>;

  constructor(name: string, worker: string, config: WorkerConfig, folder: string, journal: Journal) {
    this.name = name;
    const output = openSync(join(folder, `${name}.log`), "w");
    this.child = spawn(process.execPath, [worker, JSON.stringify(config)], {
      stdio: ["ignore", output, output, "ipc"],
    });
    closeSync(output);
    this.ended = once(this.child, "exit").then(([code, signal]) =>
      journal.event("exit", { code: code ?? String(signal) }, name),
    );
  }
}
