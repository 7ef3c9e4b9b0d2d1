import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { attributeNames, isCooldownToken } from "@leasehold/client/schema";
import { ManualClock } from "@leasehold/client/testing";
import fc from "fast-check";
import { Random } from "../simulation/random.ts";
import { SimulatedProcess } from "./simulated-process.ts";
import { type Change, SimulatedTable } from "./simulated-table.ts";
import {
  calmWeather,
  latestMs,
  roughWeather,
  SimulatedNetwork,
  type Tamper,
  type Weather,
} from "./simulated-weather.ts";

export const leaseDurationMs = 5_000;
export const clockSkewMs = 500;
/** Short, so that ttl comes into play, but longer than any request is under way. */
export const retentionMs = 8_000;

/** How often the interesting things happened: a simulation in which they do not happen proves nothing. */
export type Tally = Record<string, number>;

/** What can happen to a world, whatever is simulated in it. */
export type Mishap =
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "standstill"; readonly ms: number }
  | { readonly kind: "freeze"; readonly process: number; readonly ms: number }
  | { readonly kind: "kill"; readonly process: number }
  | { readonly kind: "collect" };

/** Mishaps, and the time that passes between them, for a simulation's steps. */
export function mishaps(
  processes: number,
  longestMs = 9_000,
): { readonly weight: number; readonly arbitrary: fc.Arbitrary<Mishap> }[] {
  const process = fc.nat(processes - 1);
  const ms = fc.integer({ min: 1, max: longestMs });
  const kind = <Kind extends Mishap["kind"]>(name: Kind): fc.Arbitrary<Kind> => fc.constant(name);
  return [
    { weight: 6, arbitrary: fc.record({ kind: kind("wait"), ms: fc.integer({ min: 1, max: 3_000 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: kind("standstill"), ms }) },
    { weight: 2, arbitrary: fc.record({ kind: kind("freeze"), process, ms }) },
    { weight: 1, arbitrary: fc.record({ kind: kind("kill"), process }) },
    { weight: 1, arbitrary: fc.record({ kind: kind("collect") }) },
  ];
}

/** A process, and what a simulation runs in it. */
export interface Running<Parts> {
  readonly process: SimulatedProcess;
  readonly parts: Parts;
}

/** How a world is made. */
export interface WorldOptions<Parts> {
  readonly processes: number;
  /** Called for every process that starts. */
  readonly begin: (client: LeaseClient, process: SimulatedProcess, index: number) => Parts;
  /** Called after every write that takes effect. */
  readonly onChange?: (changes: readonly Change[]) => void;
  readonly client?: Partial<LeaseClientOptions>;
  /** @default - none: what is sent arrives as it is */
  readonly tamper?: Tamper;
}

/** Processes whose wall clocks differ by up to the allowance, their table, and what must hold of every grant. */
export class SimulatedWorld<Parts> {
  readonly clock: ManualClock = new ManualClock();
  readonly random: Random;
  readonly table: SimulatedTable;
  /** What must not be. */
  readonly faults: string[] = [];
  readonly tally: Tally;
  readonly processes: Running<Parts>[];
  readonly #options: WorldOptions<Parts>;
  readonly #fences = new Map<string, number>();
  readonly #calls = new Map<Promise<unknown>, SimulatedProcess>();
  #weather: Weather = roughWeather;
  #tokens = 0;

  constructor(seed: number, tally: Tally, options: WorldOptions<Parts>) {
    this.random = new Random(seed);
    this.tally = tally;
    this.#options = options;
    this.table = new SimulatedTable(this.clock, (changes) => this.#changed(changes));
    const names = Array.from({ length: options.processes }, (_, index) => `p${index}`);
    this.processes = names.map((name, index) => this.#start(name, index));
  }

  /** How many calls of processes that live have not settled. */
  get pending(): number {
    return [...this.#calls.values()].filter(({ isDead }) => !isDead).length;
  }

  count(what: string): void {
    this.tally[what] = (this.tally[what] ?? 0) + 1;
  }

  fault(text: string): void {
    this.faults.push(`${Math.round(this.clock.monotonic())} ms: ${text}`);
  }

  /** Waits for a process's call in the background: an error that is not expected is a fault. */
  watch<Value>(
    { process }: Running<Parts>,
    call: Promise<Value>,
    onValue: (value: Value) => void,
    isExpected: (error: unknown) => boolean,
  ): void {
    this.#calls.set(call, process);
    const onError = (error: unknown): void => {
      if (isExpected(error)) this.count(`rejected: ${(error as Error).name}`);
      else this.fault(`${process.name}: ${error instanceof Error ? error.stack : String(error)}`);
    };
    void call.then(onValue, onError).finally(() => this.#calls.delete(call));
  }

  async befall(mishap: Mishap): Promise<void> {
    if (mishap.kind === "wait") await this.clock.advance(mishap.ms);
    else if (mishap.kind === "standstill") this.clock.freeze(mishap.ms);
    else if (mishap.kind === "freeze") this.processes[mishap.process]?.process.freeze(mishap.ms);
    else if (mishap.kind === "kill") this.kill(mishap.process);
    else if (this.table.collectGarbage() > 0) this.count("ttl removed an item");
    await this.clock.advance(0);
  }

  /** What it has sent arrives all the same; another process starts in its stead. */
  kill(index: number): void {
    const dead = this.processes[index];
    if (dead === undefined) return;
    dead.process.kill();
    this.count("death");
    this.processes[index] = this.#start(`${dead.process.name}'`, index);
  }

  killAll(): void {
    for (const index of this.processes.keys()) this.kill(index);
  }

  /** From now on nothing goes astray; resolves when what was under way has arrived. */
  async clearUp(): Promise<void> {
    this.#weather = calmWeather;
    await this.clock.advance(latestMs);
  }

  /** Throws where something was that must not be. */
  check(): void {
    if (this.faults.length > 0) throw new Error(this.faults.join("\n"));
  }

  #start(name: string, index: number): Running<Parts> {
    const { clock, random, table } = this;
    const { begin, client, tamper = (write) => write } = this.#options;
    const aheadMs = ((index % 3) - 1) * (clockSkewMs / 2);
    const process = new SimulatedProcess(name, aheadMs, clock, random);
    const store = new SimulatedNetwork({
      table,
      clock,
      random,
      process,
      weather: () => this.#weather,
      count: (what) => this.count(what),
      tamper,
    });
    const randomness = {
      token: () => `token ${String(++this.#tokens).padStart(10, "0")}`,
      fraction: () => random.fraction(),
    };
    const times = { leaseDurationMs, clockSkewMs, retentionMs };
    const options = { store, clock: process, owner: name, randomness, ...times, ...client };
    return { process, parts: begin(new LeaseClient(options), process, index) };
  }

  #changed(changes: readonly Change[]): void {
    for (const change of changes) this.#checkGrant(change);
    this.#options.onChange?.(changes);
  }

  #checkGrant({ key, before, after }: Change): void {
    const { token } = attributeNames;
    const is = after?.[token];
    if (is === undefined || is === before?.[token] || isCooldownToken(String(is))) return;
    this.count("grant");
    if (before?.[token] !== undefined) this.count("takeover");
    const place = `${key.pk} ${key.sk}`;
    const fence = Number(after?.[attributeNames.fence]);
    const highest = this.#fences.get(place) ?? 0;
    if (fence <= highest) this.fault(`the fencing token of ${place} went from ${highest} to ${fence}`);
    this.#fences.set(place, fence);
  }
}
