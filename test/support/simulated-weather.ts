import {
  type CallOptions,
  type GetRequest,
  type Item,
  LeaseServiceError,
  type LeaseStore,
  type QueryRequest,
  type ScanPage,
  type TransactionEntry,
  type TransactionResult,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import type { ManualClock } from "@leasehold/client/testing";
import type { Random } from "../simulation/random.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import { longestLagMs, type SimulatedTable } from "./simulated-table.ts";

/** How unkind the network is, as probabilities for each request. */
export interface Weather {
  /** It never arrives. */
  readonly requestLost: number;
  /** It takes effect, and its sender never hears of it. */
  readonly answerLost: number;
  /** It is sent twice, and either copy may arrive first. */
  readonly twice: number;
  /** It arrives long after its sender has given it up. */
  readonly late: number;
  /** A transaction meets another one, and both are cancelled. */
  readonly conflict: number;
}

export const roughWeather: Weather = {
  requestLost: 0.05,
  answerLost: 0.05,
  twice: 0.05,
  late: 0.03,
  conflict: 0.05,
};
export const calmWeather: Weather = { requestLost: 0, answerLost: 0, twice: 0, late: 0, conflict: 0 };

const longestWayMs = 300;
/** The latest that a request arrives. */
export const latestMs = 6_000;
const dateResolutionMs = 1_000;

/** What a network is made of. */
export interface NetworkParts {
  readonly table: SimulatedTable;
  readonly clock: ManualClock;
  readonly random: Random;
  readonly process: SimulatedProcess;
  readonly weather: () => Weather;
  readonly count: (what: string) => void;
  /** A mistake that is planted into what is sent. */
  readonly tamper: Tamper;
}

/** Changes a write on its way to the table. */
export type Tamper = <Write extends UpdateRequest | TransactionEntry>(write: Write) => Write;

/** One process's way to the table: requests take time, overtake each other, and go astray as the weather has it. */
export class SimulatedNetwork implements LeaseStore {
  readonly tableName = "far";
  readonly #parts: NetworkParts;

  constructor(parts: NetworkParts) {
    this.#parts = parts;
  }

  async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
    const { table, tamper } = this.#parts;
    return await this.#write(call, () => table.update(tamper(request)));
  }

  /** A batch: its writes travel together, and each takes effect by itself. */
  async updateMany(requests: readonly UpdateRequest[], call: CallOptions): Promise<readonly UpdateResult[]> {
    return await Promise.all(requests.map((request) => this.update(request, call)));
  }

  async transact(entries: readonly TransactionEntry[], call: CallOptions): Promise<TransactionResult> {
    const { table, tamper, random, weather, count } = this.#parts;
    if (random.chance(weather().conflict)) {
      count("conflict");
      await this.#travel(call, () => undefined);
      throw new LeaseServiceError("LEASE_CONFLICT", "it met another transaction");
    }
    return await this.#write(call, () => table.transact(entries.map(tamper)));
  }

  async get({ key, consistent }: GetRequest, call: CallOptions): Promise<Item | undefined> {
    return await this.#travel(call, () => this.#parts.table.at(key, this.#lagMs(consistent)));
  }

  async query(request: QueryRequest, call: CallOptions): Promise<ScanPage> {
    const { table } = this.#parts;
    return await this.#travel(call, () => table.query(request, () => this.#lagMs(request.consistent)));
  }

  scan(): Promise<ScanPage> {
    throw new Error("no simulation lists leases");
  }

  #lagMs(consistent: boolean): number {
    return consistent ? 0 : this.#parts.random.between(0, longestLagMs);
  }

  async #write<Result extends UpdateResult | TransactionResult>(
    call: CallOptions,
    apply: () => Result,
  ): Promise<Result> {
    const { clock, random, weather, count } = this.#parts;
    const { twice, late } = weather();
    const isTwice = random.chance(twice);
    const isLate = random.chance(late);
    if (isTwice) {
      count("sent twice");
      clock.schedule(apply, random.between(0, latestMs));
    }
    if (isLate) {
      count("late arrival");
      clock.schedule(apply, random.between(longestWayMs, latestMs));
      return await this.#astray(call);
    }
    const result = await this.#travel(call, apply);
    return { ...result, retried: isTwice };
  }

  /** Goes there and back, unless it is lost. */
  #travel<Answer>(call: CallOptions, serve: () => Answer | Promise<Answer>): Promise<Answer> {
    const { clock, random, process, weather, count } = this.#parts;
    const { requestLost, answerLost } = weather();
    const fate = random.fraction();
    return new Promise((resolve, reject) => {
      const fail = (text: string): void => reject(new LeaseServiceError("LEASE_NO_ANSWER", text));
      onCut(call, () => fail("cut off"));
      const answered = call.timed?.();
      const arrive = async (): Promise<void> => {
        if (fate < requestLost) {
          count("request lost");
          process.deliver(() => fail("the request was lost"));
          return;
        }
        const answer = await serve();
        // As the Date header tells it: in whole seconds.
        const earliest = Math.floor(clock.now() / dateResolutionMs) * dateResolutionMs;
        const time = { earliest, latest: earliest + dateResolutionMs };
        if (fate < requestLost + answerLost) {
          count("answer lost");
          process.deliver(() => fail("the answer was lost"));
          return;
        }
        const receive = (): void => {
          answered?.(time);
          resolve(answer);
        };
        clock.schedule(() => process.deliver(receive), random.between(0, longestWayMs));
      };
      clock.schedule(() => void arrive().catch(reject), random.between(0, longestWayMs));
    });
  }

  /** No answer comes: the sender gives up by its own budget, or by the network's. */
  #astray(call: CallOptions): Promise<never> {
    return new Promise((_, reject) => {
      const fail = (): void => reject(new LeaseServiceError("LEASE_NO_ANSWER", "no answer came"));
      onCut(call, fail);
      this.#parts.process.schedule(fail, 2 * longestWayMs);
    });
  }
}

function onCut({ signal }: CallOptions, cut: () => void): void {
  if (signal.aborted) cut();
  else signal.addEventListener("abort", cut, { once: true });
}
