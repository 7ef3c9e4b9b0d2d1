import type {
  CallOptions,
  GetRequest,
  Item,
  LeaseStore,
  ScanPage,
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

/** What the monitor wants to hear of. */
export interface Traffic {
  sent(host: Host, request: UpdateRequest): void;
  applied(host: Host, request: UpdateRequest, before: Item | undefined, result: UpdateResult): void;
}

const attemptTimeoutMs = 300;
const attempts = 3;
const dateResolutionMs = 1000;

/**
 * One process's connection to the table: delays, losses, and the SDK's retries, whose earlier copies may still arrive
 * after everything else.
 */
export class Network implements LeaseStore {
  readonly tableName: string;
  weather: Weather;
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
  ) {
    this.tableName = table.tableName;
    this.weather = weather;
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
    return await this.#call(call, () => this.#table.transactNow(entries));
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
  #call<Answer extends object>({ signal, isCurrent }: CallOptions, serve: () => Answer): Promise<Answer> {
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
        if (random.chance(this.weather.throttled)) {
          this.#host.schedule(() => fail("LEASE_THROTTLED"), random.between(1, 50));
          return;
        }
        const sentAt = this.#host.now();
        const retry = this.#host.schedule(() => attempt(number + 1), attemptTimeoutMs);
        if (random.chance(this.weather.requestLost)) return;
        this.#world.after(this.#delay(), () => {
          const servedAt = this.#world.now;
          const answer = serve();
          if (random.chance(this.weather.answerLost)) return;
          this.#world.after(this.#delay(), () =>
            this.#host.deliver(() => {
              retry();
              resolve(this.#stamped(answer, servedAt, sentAt, number > 1));
            }),
          );
        });
      };
      attempt(1);
    });
  }

  #delay(): number {
    const { random } = this.#world;
    return random.chance(this.weather.slow) ? random.between(50, 4_000) : random.between(1, 20);
  }

  /** The answer's Date header, as the process can read it. */
  #stamped<Answer extends object>(
    answer: Answer,
    servedAt: number,
    sentAt: number,
    retried: boolean,
  ): Answer {
    const second = Math.floor((epoch + servedAt) / dateResolutionMs) * dateResolutionMs;
    const offset = { minMs: second - this.#host.now(), maxMs: second + dateResolutionMs - sentAt };
    if (Array.isArray(answer))
      return answer.map((part: UpdateResult) => ({ ...part, offset, retried })) as unknown as Answer;
    return "applied" in answer ? { ...answer, offset, retried } : answer;
  }
}
