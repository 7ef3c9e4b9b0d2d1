import { type LeaseClient, type LeaseClientOptions, LeaseError } from "@leasehold/client";
import { attributeNames, isCooldownToken } from "@leasehold/client/schema";
import fc from "fast-check";
import { isCancelled } from "../support/own-transaction.ts";
import { Beliefs } from "./beliefs.ts";
import { type Dates, Host } from "./host.ts";
import { calmWeather, longestDelayMs, type Network, roughWeather, type Weather } from "./network.ts";
import { type Change, Table } from "./table.ts";
import type { World } from "./world.ts";

export const leaseDurationMs = 5_000;
export const clockSkewMs = 500;
/** Short, so that ttl comes into play, but longer than any request is under way. */
export const retentionMs = 8_000;
/** How far wall clocks are wrong at most, if not more: by more than any allowance, and less than `retentionMs`. */
export const wallErrorMs = 2_000;
/** The allowances that hosts draw. */
const allowances = [0, clockSkewMs, clockSkewMs, 2 * clockSkewMs, Number.POSITIVE_INFINITY] as const;

/** What can happen to hosts, whatever runs on them. */
export type Mishap =
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "standstill"; readonly ms: number }
  | { readonly kind: "freeze"; readonly process: number; readonly ms: number }
  | { readonly kind: "kill"; readonly process: number }
  | { readonly kind: "collect" };

export function isMishap<Step extends object>(step: Step | Mishap): step is Mishap {
  const kinds: readonly unknown[] = ["wait", "standstill", "freeze", "kill", "collect"];
  return "kind" in step && kinds.includes(step.kind);
}

/** What worlds count of mishaps and of a bad network: a simulation in which one of them never happens shows too little. */
export const everyMishap = [
  "takeover",
  "death",
  "request lost",
  "answer lost",
  "sent twice",
  "late arrival",
  "ttl removed an item",
] as const;

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

/** A host, and what a simulation runs on it. */
export interface Running<Parts> {
  readonly process: Host;
  readonly parts: Parts;
  /** Whether it judges by its own observation alone, for it does not know the service's time, or does not trust it. */
  readonly isBlind: boolean;
}

/** The error of work that fails, as any work may. */
export class WorkError extends Error {
  override readonly name = "WorkError";
}

const ofTheNetwork = ["LEASE_NO_ANSWER", "LEASE_THROTTLED", "LEASE_CONFLICT"];

/** How a cluster is made. */
export interface ClusterOptions<Parts> {
  readonly processes: number;
  /** Called for every host that starts. */
  readonly begin: (client: LeaseClient, process: Host, index: number, network: Network) => Parts;
  /** Called after every write that takes effect. */
  readonly onChange?: (changes: readonly Change[]) => void;
  readonly client?: (process: Host) => Partial<LeaseClientOptions>;
  /**
   * The codes of errors that calls may end with, beside those that a bad network brings about, those of work that fails, and
   * that a user's own transaction was cancelled.
   */
  readonly expected: readonly string[];
  /** How far wall clocks are wrong at most; by more than `retentionMs` only where ttl removes nothing. @default 2000 */
  readonly wallErrorMs?: number | undefined;
  /** What answers tell a host of the time. @default - drawn for each host */
  readonly dates?: (index: number) => Dates | undefined;
  /** How far ahead the clock of the service's host is that answers a process, in milliseconds. @default - 0 */
  readonly serviceAheadMs?: (index: number) => number;
  /** By how much the clocks of the service's hosts differ. @default 0 */
  readonly serviceSpreadMs?: number;
}

/**
 * Hosts, their table, and what must hold of every grant. Each host draws a wrong wall clock, an allowance, a weather, and what
 * answers tell it of the time.
 */
export class Cluster<Parts> {
  readonly world: World;
  readonly table: Table;
  readonly processes: Running<Parts>[];
  /** What hosts believe to hold. */
  readonly beliefs: Beliefs;
  readonly #options: ClusterOptions<Parts>;
  readonly #fences = new Map<string, number>();
  readonly #calls = new Map<Promise<unknown>, Host>();
  #isCalm = false;
  #tokens = 0;

  constructor(world: World, options: ClusterOptions<Parts>) {
    this.world = world;
    this.#options = options;
    this.table = new Table(world, (changes) => this.#changed(changes));
    this.beliefs = new Beliefs(world, this.table);
    const names = Array.from({ length: options.processes }, (_, index) => `p${index}`);
    this.processes = names.map((name, index) => this.#start(name, index));
  }

  get clock(): World["clock"] {
    return this.world.clock;
  }

  get random(): World["random"] {
    return this.world.random;
  }

  get tally(): World["tally"] {
    return this.world.tally;
  }

  /** The calls that have not settled. */
  get calls(): ReadonlyMap<Promise<unknown>, Host> {
    return this.#calls;
  }

  /** How many calls of hosts that live have not settled. */
  get pending(): number {
    return [...this.#calls.values()].filter(({ isDead }) => !isDead).length;
  }

  count(what: string): void {
    this.world.count(what);
  }

  fault(text: string): void {
    this.world.fault(text);
  }

  /** The host in a place, and what runs on it. */
  at(index: number): Running<Parts> {
    const running = this.processes[index];
    if (running === undefined) throw new Error(`there is no process ${index}`);
    return running;
  }

  /** Waits for a host's call in the background: an error that is not expected is a fault. */
  watch<Value>(
    { process }: Running<Parts>,
    call: Promise<Value>,
    onValue: (value: Value) => void = () => undefined,
    isExpected: (error: unknown) => boolean = (error) => this.#isExpected(error),
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
    else if (mishap.kind === "freeze") this.#freeze(mishap.process, mishap.ms);
    else if (mishap.kind === "kill") this.kill(mishap.process);
    else this.table.collectGarbage();
  }

  /** What it has sent arrives all the same; another host starts in its stead. */
  kill(index: number): void {
    const dead = this.at(index);
    dead.process.kill();
    this.count("death");
    this.processes[index] = this.#start(`${dead.process.name}'`, index);
  }

  killAll(): void {
    for (const index of this.processes.keys()) this.kill(index);
  }

  /** A grant of something has this fencing token, which has to be larger than those before it. */
  grows(what: string, fence: number): void {
    const highest = this.#fences.get(what) ?? 0;
    if (fence <= highest) this.fault(`the fencing token of ${what} went from ${highest} to ${fence}`);
    this.#fences.set(what, fence);
  }

  /** From now on nothing goes astray; resolves when what was under way has arrived. */
  async clearUp(): Promise<void> {
    this.#isCalm = true;
    await this.clock.advance(2 * longestDelayMs);
  }

  #isExpected(error: unknown): boolean {
    if (error instanceof WorkError || isCancelled(error)) return true;
    return error instanceof LeaseError && [...ofTheNetwork, ...this.#options.expected].includes(error.code);
  }

  #freeze(index: number, ms: number): void {
    const host = this.at(index).process;
    host.freeze(ms, host.isSuspendable && this.random.chance(0.5));
  }

  #start(name: string, index: number): Running<Parts> {
    const { world, table, random } = this;
    const { begin, client, dates, serviceSpreadMs = 0 } = this.#options;
    const errorMs = this.#options.wallErrorMs ?? wallErrorMs;
    // The explorer's hosts have nothing to draw from, and differ by their index.
    const { isRandom } = world;
    const aheadMs = isRandom ? random.between(-errorMs, errorMs) : ((index % 3) - 1) * (clockSkewMs / 2);
    const process = new Host(world, name, aheadMs, dates?.(index));
    const own = roughWeather(random);
    const weather = (): Weather => (this.#isCalm ? calmWeather : own);
    const { LeaseClient: Client, LeaseServiceError: ServiceError } = process.release;
    const serviceAheadMs = this.#options.serviceAheadMs?.(index) ?? 0;
    const around = { world, table, weather, serviceAheadMs, serviceSpreadMs, ServiceError };
    const store = world.connect(process, around);
    const randomness = {
      token: () => `token ${String(++this.#tokens).padStart(10, "0")}`,
      fraction: () => random.fraction(),
    };
    const ownSkewMs = isRandom ? random.pick(allowances) : clockSkewMs;
    const isBlind = process.dates === "stripped" || !Number.isFinite(ownSkewMs);
    const times = { leaseDurationMs, clockSkewMs: ownSkewMs, retentionMs };
    const options = { store, clock: process, owner: name, randomness, ...times, ...client?.(process) };
    return { process, parts: begin(new Client(options), process, index, store), isBlind };
  }

  #changed(changes: readonly Change[]): void {
    for (const change of changes) {
      this.#tell(change);
      this.#checkGrant(change);
    }
    this.#options.onChange?.(changes);
  }

  #tell({ key, before, after }: Change): void {
    const { token, fence } = attributeNames;
    this.world.tell("table", () => {
      const [was, is] = [before?.[token] ?? "free", after?.[token] ?? "free"];
      const change = was === is ? `${is} goes on` : `${was} -> ${is}, fence ${after?.[fence]}`;
      return `${key.pk} ${key.sk}: ${change}`;
    });
  }

  #checkGrant({ key, before, after }: Change): void {
    const { token } = attributeNames;
    const is = after?.[token];
    if (is === undefined || is === before?.[token] || isCooldownToken(String(is))) return;
    this.count("grant");
    if (before?.[token] !== undefined) this.count("takeover");
    this.grows(`${key.pk} ${key.sk}`, Number(after?.[attributeNames.fence]));
  }
}
