import type {
  CallOptions,
  GetRequest,
  Item,
  LeaseStore,
  ScanPage,
  ServiceTime,
  TransactionEntry,
  TransactionResult,
  UpdateRequest,
  UpdateResult,
} from "@leasehold/client";
import type { MemoryLeaseStore } from "@leasehold/client/testing";
import type { Host } from "./host.ts";
import type { Subject } from "./subject.ts";
import { epoch, type World } from "./world.ts";

/** How unkind the network is, as probabilities for each copy of each request. */
export interface Weather {
  readonly requestLost: number;
  readonly answerLost: number;
  readonly slow: number;
  readonly throttled: number;
}

/** How the service tells its time: each of its hosts has a clock of its own. */
export interface ServiceClocks {
  readonly offsetsMs: readonly [number, ...number[]];
  /** Whether answers bear a Date. */
  readonly areTold: boolean;
}

/** What the monitor wants to hear of. */
export interface Traffic {
  sent(host: Host, request: UpdateRequest): void;
  applied(host: Host, request: UpdateRequest, before: Item | undefined, result: UpdateResult): void;
  transacted(host: Host, entries: readonly TransactionEntry[]): void;
}

const attemptTimeoutMs = 300;
const attempts = 3;
/** Shorter than the shortest retention: that much is asked of users. */
const longestDelayMs = 6_000;
const dateResolutionMs = 1000;

/**
 * One process's connection to the table: delays, losses, and the SDK's retries, whose earlier copies may still arrive
 * after everything else.
 */
export class Network implements LeaseStore {
  readonly tableName: string;
  /** Whether an answer has told this process the time. */
  hasToldTime = false;
  readonly #weather: Weather;
  readonly #clocks: ServiceClocks;
  readonly #world: World;
  readonly #host: Host;
  readonly #table: MemoryLeaseStore;
  readonly #traffic: Traffic;
  readonly #subject: Subject;

  constructor(
    world: World,
    host: Host,
    table: MemoryLeaseStore,
    subject: Subject,
    traffic: Traffic,
    weather: Weather,
    clocks: ServiceClocks,
  ) {
    this.tableName = table.tableName;
    this.#weather = weather;
    this.#clocks = clocks;
    this.#world = world;
    this.#host = host;
    this.#table = table;
    this.#traffic = traffic;
    this.#subject = subject;
  }

  async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
    this.#traffic.sent(this.#host, request);
    return await this.#call(call, () => this.#apply(request));
  }

  async updateMany(requests: readonly UpdateRequest[], call: CallOptions): Promise<readonly UpdateResult[]> {
    for (const request of requests) this.#traffic.sent(this.#host, request);
    return await this.#call(call, () => requests.map((request) => this.#apply(request)));
  }

  async get({ key }: GetRequest, call: CallOptions): Promise<Item | undefined> {
    return (await this.#call(call, () => ({ item: this.#table.peek(key) }))).item;
  }

  scan(): Promise<ScanPage> {
    throw new Error("no worker lists leases");
  }

  async transact(entries: readonly TransactionEntry[], call: CallOptions): Promise<TransactionResult> {
    return await this.#call(call, () => {
      const result = this.#table.transactNow(entries);
      if (result.applied) this.#traffic.transacted(this.#host, entries);
      return result;
    });
  }

  query(): Promise<ScanPage> {
    throw new Error("no worker asks for items under a key");
  }

  #apply(request: UpdateRequest): UpdateResult {
    const before = this.#table.peek(request.key);
    const result = this.#table.updateNow(request);
    if (result.applied) this.#traffic.applied(this.#host, request, before, result);
    return result;
  }

  /** Sends copies until one is answered in time; every copy that was not lost takes effect, whenever it arrives. */
  #call<Answer extends object>(
    { signal, isCurrent, timed }: CallOptions,
    serve: () => Answer,
  ): Promise<Answer> {
    const { random } = this.#world;
    return new Promise((resolve, reject) => {
      const fail = (code: "LEASE_NO_ANSWER" | "LEASE_THROTTLED"): void =>
        reject(new this.#subject.LeaseServiceError(code, "the network did not deliver"));
      if (signal.aborted) {
        fail("LEASE_NO_ANSWER");
        return;
      }
      signal.addEventListener("abort", () => fail("LEASE_NO_ANSWER"), { once: true });

      const attempt = (number: number): void => {
        if (signal.aborted) return;
        if (number > attempts || !isCurrent()) {
          fail("LEASE_NO_ANSWER");
          return;
        }
        if (random.chance(this.#weather.throttled)) {
          this.#host.schedule(() => fail("LEASE_THROTTLED"), random.between(1, 50));
          return;
        }
        const answered = timed?.();
        const retry = this.#host.schedule(() => attempt(number + 1), attemptTimeoutMs);
        if (random.chance(this.#weather.requestLost)) return;
        this.#world.after(this.#delay(), () => {
          const time = this.#time();
          const answer = serve();
          if (random.chance(this.#weather.answerLost)) return;
          this.#world.after(this.#delay(), () =>
            this.#host.deliver(() => {
              retry();
              answered?.(time);
              this.hasToldTime ||= time !== undefined;
              resolve(repeated(answer, number > 1));
            }),
          );
        });
      };
      attempt(1);
    });
  }

  #delay(): number {
    const { random } = this.#world;
    return random.chance(this.#weather.slow) ? random.between(50, longestDelayMs) : random.between(1, 20);
  }

  /** The answer's Date header, as the process can read it. */
  #time(): ServiceTime | undefined {
    const { offsetsMs, areTold } = this.#clocks;
    const now = epoch + this.#world.now + this.#world.random.pick(offsetsMs);
    const earliest = Math.floor(now / dateResolutionMs) * dateResolutionMs;
    return areTold ? { earliest, latest: earliest + dateResolutionMs } : undefined;
  }
}

/** Says of each result whether its request was sent more than once. */
function repeated<Answer extends object>(answer: Answer, retried: boolean): Answer {
  if (Array.isArray(answer)) {
    return answer.map((part: UpdateResult) => ({ ...part, retried })) as unknown as Answer;
  }
  return "applied" in answer ? { ...answer, retried } : answer;
}
