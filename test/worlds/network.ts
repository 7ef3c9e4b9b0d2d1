import {
  type CallOptions,
  type GetRequest,
  type Item,
  LeaseServiceError,
  type LeaseStore,
  type QueryRequest,
  type ScanPage,
  type ServiceTime,
  type TransactionEntry,
  type TransactionResult,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import type { Host } from "./host.ts";
import type { Random } from "./random.ts";
import { longestLagMs, type Table } from "./table.ts";
import { epoch, type World } from "./world.ts";

/** How unkind the network is to one host, as probabilities for each copy of each request. */
export interface Weather {
  readonly requestLost: number;
  readonly answerLost: number;
  readonly slow: number;
  /** How long the others take at most, each way. */
  readonly usualMs: number;
  readonly throttled: number;
  /** A proxy puts its own Date into the answer, on its way to a host that this happens to. */
  readonly dateReplaced: number;
  /** A transaction meets another one, and both are cancelled. */
  readonly conflict: number;
}

export const calmWeather: Weather = {
  requestLost: 0,
  answerLost: 0,
  slow: 0,
  usualMs: 20,
  throttled: 0,
  dateReplaced: 0,
  conflict: 0,
};

/** The weather of one host: as rough as chance has it. */
export function roughWeather(random: Random): Weather {
  return {
    requestLost: random.pick([0, 0.02, 0.1]),
    answerLost: random.pick([0, 0.02, 0.15]),
    slow: random.pick([0, 0.05, 0.2, 0.5]),
    usualMs: random.pick([20, 20, 300]),
    throttled: random.pick([0, 0.02]),
    dateReplaced: 0.1,
    conflict: random.pick([0, 0.05]),
  };
}

type Write = UpdateRequest | TransactionEntry;

/** Changes a write on its way to the table: a mistake that is planted. */
export type Tamper = <Sent extends Write>(write: Sent) => Sent;

export const asItIs: Tamper = (write) => write;

/** What every write of a host passes on its way to the table. */
export const wire = { tamper: asItIs };

/** What lies between the hosts and the table. */
export interface Surroundings {
  readonly world: World;
  readonly table: Table;
  readonly weather: () => Weather;
  /** How far the clocks of the service's hosts are ahead that answer this one, and by how much they differ. */
  readonly serviceAheadMs: number;
  readonly serviceSpreadMs: number;
  /** The class of a client that is loaded anew. @default - that of the client as it is */
  readonly ServiceError?: typeof LeaseServiceError;
}

/** What the SDK waits for an answer beyond the usual time. */
const attemptMarginMs = 260;
/** Shorter than the shortest retention: that much is asked of users. */
export const longestDelayMs = 6_000;
const dateResolutionMs = 1_000;
/** How far a proxy's Date is off at most. */
export const longestDateErrorMs = 3_600_000;
/** Wrong Dates that differ by more than this agree in no answer, however late. */
const unlikeMs = 60_000;

/** One copy of a request, on its way to the table. */
export interface Copy<Answer extends object = object> {
  readonly kind: "request" | "transaction" | "read";
  /** Of the host's requests, and of the copies of this one; the first ones have the number 1. */
  readonly request: number;
  readonly number: number;
  serve(): Answer;
  accept(answer: Answer, time: ServiceTime | undefined): void;
  refuse(error: unknown): void;
  /** Whether the caller does not wait for any answer any more. */
  readonly isGivenUp: boolean;
}

/**
 * One host's connection to the table: delays, losses, and the SDK's retries, whose earlier copies may still arrive after
 * everything else. Reads that are not consistent show the past.
 */
export class Network implements LeaseStore {
  readonly tableName = "simulated";
  /** How many copies the SDK sends at most. */
  protected readonly attempts: number = 3;
  #requests = 0;
  /** Whether an answer has told this host's client the time. */
  #hasToldTime = false;
  /** By how much the wrong Dates were off that this host has been sent. */
  readonly #wrongDates: number[] = [];
  protected readonly host: Host;
  protected readonly around: Surroundings;

  constructor(host: Host, around: Surroundings) {
    this.host = host;
    this.around = around;
  }

  async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
    return await this.#call(call, () => this.#apply(request));
  }

  /** A batch: its writes travel together, and each takes effect by itself. */
  async updateMany(
    requests: readonly UpdateRequest[],
    call: CallOptions,
  ): Promise<readonly (UpdateResult | LeaseServiceError)[]> {
    return await this.#call(call, () => requests.map((request) => this.#apply(request)));
  }

  async transact(entries: readonly TransactionEntry[], call: CallOptions): Promise<TransactionResult> {
    const { table, world, weather } = this.around;
    // It meets another transaction, and both are cancelled.
    if (world.random.chance(weather().conflict)) {
      world.count("conflict");
      await this.#call(call, () => ({}));
      throw this.error("LEASE_CONFLICT", "it met another transaction");
    }
    const tampered = (): TransactionEntry[] => entries.map((entry) => wire.tamper(entry));
    return await this.#call(call, () => table.transact(tampered()), "transaction");
  }

  async get({ key, consistent }: GetRequest, call: CallOptions): Promise<Item | undefined> {
    const { table } = this.around;
    const serve = () => ({ item: table.at(key, this.lagMs(consistent)) });
    return (await this.#call(call, serve, consistent ? "request" : "read")).item;
  }

  async query(request: QueryRequest, call: CallOptions): Promise<ScanPage> {
    const { table } = this.around;
    const { consistent } = request;
    const serve = () => table.query(request, () => this.lagMs(consistent));
    return await this.#call(call, serve, consistent ? "request" : "read");
  }

  scan(): Promise<ScanPage> {
    throw new Error("no simulation lists leases");
  }

  /** How far a read lags behind the writes. */
  protected lagMs(consistent: boolean): number {
    return consistent ? 0 : this.around.world.random.between(0, longestLagMs);
  }

  #apply(sent: UpdateRequest): UpdateResult {
    return this.around.table.update(wire.tamper(sent));
  }

  /** Sends copies until one is answered in time; every copy that was not lost takes effect, whenever it arrives. */
  #call<Answer extends object>(
    { signal, isCurrent, timed }: CallOptions,
    serve: () => Answer,
    kind: Copy["kind"] = "request",
  ): Promise<Answer> {
    this.#requests += 1;
    const request = this.#requests;
    return new Promise((resolve, reject) => {
      let isGivenUp = false;
      let copies = 0;
      const fail = (): void => {
        isGivenUp = true;
        reject(this.error("LEASE_NO_ANSWER", "the network did not deliver"));
      };
      if (signal.aborted) {
        fail();
        return;
      }
      signal.addEventListener("abort", fail, { once: true });

      const attempt = (number: number): void => {
        if (signal.aborted) return;
        if (number > this.attempts || !isCurrent()) {
          fail();
          return;
        }
        copies = number;
        const answered = timed?.();
        const retry = this.host.schedule(() => attempt(number + 1), this.patienceMs());
        this.transmit({
          ...{ kind, request, number, serve },
          accept: (answer, time) => {
            retry();
            answered?.(time);
            this.#hasToldTime ||= answered !== undefined && time !== undefined;
            // Of whichever copy it is the answer: another may be under way.
            resolve(repeated(answer, copies > 1));
          },
          refuse: (error) => {
            retry();
            isGivenUp = true;
            reject(error);
          },
          get isGivenUp() {
            return isGivenUp;
          },
        });
      };
      attempt(1);
    });
  }

  /** How long the SDK waits for an answer until it sends another copy. */
  protected patienceMs(): number {
    return 2 * this.around.weather().usualMs + attemptMarginMs;
  }

  /** Has a copy arrive at the table, and the answer at the host, or not. */
  protected transmit<Answer extends object>(copy: Copy<Answer>): void {
    const { world, weather } = this.around;
    const { random } = world;
    const { throttled, requestLost, answerLost } = weather();
    if (random.chance(throttled)) {
      const error = this.error("LEASE_THROTTLED", "the table has no capacity left");
      this.host.schedule(() => copy.refuse(error), random.between(1, 50));
      return;
    }
    if (random.chance(requestLost)) {
      world.count("request lost");
      return;
    }
    if (copy.number > 1) world.count("sent twice");
    world.after(this.#delayMs(), () => {
      if (copy.isGivenUp) world.count("late arrival");
      const time = this.time();
      const answer = copy.serve();
      if (random.chance(answerLost)) world.count("answer lost");
      else world.after(this.#delayMs(), () => this.host.deliver(() => copy.accept(answer, time), "answer"));
    });
  }

  #delayMs(): number {
    const { world, weather } = this.around;
    const { slow, usualMs } = weather();
    const isSlow = world.random.chance(slow);
    return isSlow ? world.random.between(50, longestDelayMs) : world.random.between(1, usualMs);
  }

  /**
   * The answer's Date header, as the host can read it. The first one is the service's, and no two wrong ones agree: against
   * a proxy that always lies nothing helps.
   */
  protected time(): ServiceTime | undefined {
    const { world, weather, serviceAheadMs, serviceSpreadMs } = this.around;
    const { random } = world;
    const { dates } = this.host;
    if (dates === "stripped") return undefined;
    if (dates === "sometimes replaced" && this.#hasToldTime && random.chance(weather().dateReplaced)) {
      const errorMs = random.between(-longestDateErrorMs, longestDateErrorMs);
      const agrees = this.#wrongDates.some((other) => Math.abs(errorMs - other) < unlikeMs);
      if (!agrees) {
        this.#wrongDates.push(errorMs);
        world.count("Date replaced");
        return this.replacedTime(errorMs);
      }
    }
    return timeAt(
      epoch + world.now + serviceAheadMs + random.between(-serviceSpreadMs / 2, serviceSpreadMs / 2),
    );
  }

  /** The Date of a proxy whose clock is wrong; as the first that a host hears it would be beyond what is promised. */
  protected replacedTime(errorMs: number): ServiceTime | undefined {
    return this.#hasToldTime ? timeAt(epoch + this.around.world.now + errorMs) : undefined;
  }

  protected error(
    code: "LEASE_NO_ANSWER" | "LEASE_THROTTLED" | "LEASE_CONFLICT",
    text: string,
  ): LeaseServiceError {
    return new (this.around.ServiceError ?? LeaseServiceError)(code, text);
  }
}

/** What a Date tells: the second that a time is in. */
function timeAt(now: number): ServiceTime {
  const earliest = Math.floor(now / dateResolutionMs) * dateResolutionMs;
  return { earliest, latest: earliest + dateResolutionMs };
}

/** Says of each result whether its request was sent more than once. */
export function repeated<Answer extends object>(answer: Answer, retried: boolean): Answer {
  if (Array.isArray(answer)) {
    const parts = answer as readonly (UpdateResult | LeaseServiceError)[];
    return parts.map((part) => ("applied" in part ? { ...part, retried } : part)) as unknown as Answer;
  }
  return "applied" in answer ? { ...answer, retried } : answer;
}
