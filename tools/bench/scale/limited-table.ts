/**
 * A table in memory with DynamoDB's limits, in virtual time: units for each second and partition key, and for the table;
 * units by the size of an item; transactions that meet; the time that an answer takes. What is over a limit is throttled.
 */
import {
  type CallOptions,
  type GetRequest,
  type Item,
  LeaseClient,
  type LeaseClientOptions,
  LeaseServiceError,
  type LeaseStore,
  type QueryRequest,
  type ScanPage,
  type TransactionEntry,
  type TransactionResult,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { bytesOf } from "../../../packages/cli/src/view/read-cost.ts";
import { Random } from "../../../test/worlds/random.ts";

/** What DynamoDB lets through, in units a second. */
export interface Throughput {
  readonly writesPerKey: number;
  readonly readsPerKey: number;
  /** Of the whole table. */
  readonly writesPerTable: number;
}

/** As documented: one partition, and a new table on demand. A key never gets more than one partition. */
export const documented: Throughput = { writesPerKey: 1_000, readsPerKey: 3_000, writesPerTable: 4_000 };

/** From the request to its answer, within a region. */
export const roundTripMs = 10;
/** A transaction takes about twice as long; for that time its items are taken. */
const transactionMs = 10;
/** As the AWS SDK does for throttles, and for conflicts where we mark them: three more tries, with pauses that double. */
const tries = 4;
const firstPauseMs = { LEASE_THROTTLED: 500, LEASE_CONFLICT: 100 } as const;

/** What was sent and what became of it, in units. */
interface Load {
  written: number;
  read: number;
  /** Requests, or copies of them, that were throttled, and all of them. */
  throttled: number;
  sent: number;
  conflicts: number;
}

/** So many units a second; what is left of a second is not kept for the next one. */
class Bucket {
  readonly #clock: ManualClock;
  readonly #perSecond: number;
  #left: number;
  #at: number;

  constructor(clock: ManualClock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#left = perSecond;
    this.#at = clock.monotonic();
  }

  /** Whether there is still something in it; then a request is served, however many units it takes. */
  get isOpen(): boolean {
    const now = this.#clock.monotonic();
    this.#left = Math.min(this.#perSecond, this.#left + ((now - this.#at) / 1_000) * this.#perSecond);
    this.#at = now;
    return this.#left > 0;
  }

  take(units: number): void {
    this.#left -= units;
  }
}

/** The store of all processes of a world. */
export class LimitedTable implements LeaseStore {
  readonly tableName = "limited";
  readonly isLocal = true;
  readonly load: Load = { written: 0, read: 0, throttled: 0, sent: 0, conflicts: 0 };
  readonly #items = new MemoryLeaseStore();
  readonly #clock: ManualClock;
  readonly #random: Random;
  readonly #limits: Throughput;
  readonly #writes = new Map<string, Bucket>();
  readonly #reads = new Map<string, Bucket>();
  readonly #table: Bucket;
  /** Items that a transaction has taken, by key and sort key. */
  readonly #taken = new Set<string>();

  constructor(clock: ManualClock, random: Random, limits: Throughput = documented) {
    this.#clock = clock;
    this.#random = random;
    this.#limits = limits;
    this.#table = new Bucket(clock, limits.writesPerTable);
  }

  async update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult> {
    return await this.#call(options, () => this.#write(request));
  }

  /** Statements of a batch are throttled one by one; a client tries those again. */
  async updateMany(
    requests: readonly UpdateRequest[],
    options: CallOptions,
  ): Promise<readonly (UpdateResult | undefined)[]> {
    return await this.#call(options, () =>
      requests.map((request) => {
        try {
          return this.#write(request);
        } catch (error) {
          if (!(error instanceof LeaseServiceError)) throw error;
          // A write of its own says what becomes of it.
          return undefined;
        }
      }),
    );
  }

  async transact(entries: readonly TransactionEntry[], options: CallOptions): Promise<TransactionResult> {
    return await this.#call(options, async () => {
      for (const { key } of entries)
        this.#admit(this.#bucketOf(this.#writes, key.pk, this.#limits.writesPerKey));
      const ids = entries.map(({ key }) => `${key.pk} ${key.sk}`);
      this.#refuseTaken(ids);
      for (const id of ids) this.#taken.add(id);
      await this.#pause(transactionMs);
      for (const id of ids) this.#taken.delete(id);
      const sizes = entries.map(({ key }) => this.#items.peek(key));
      const result = this.#items.transactNow(entries);
      for (const [index, { key }] of entries.entries()) {
        this.#bill(key.pk, 2 * writeUnits(sizes[index], this.#items.peek(key)));
      }
      return result;
    });
  }

  async get({ key, consistent }: GetRequest, options: CallOptions): Promise<Item | undefined> {
    return await this.#call(options, () => {
      const bucket = this.#bucketOf(this.#reads, key.pk, this.#limits.readsPerKey);
      this.#admit(bucket);
      const item = this.#items.peek(key);
      this.#billRead(bucket, item === undefined ? [] : [item], consistent);
      return item;
    });
  }

  async query(request: QueryRequest, options: CallOptions): Promise<ScanPage> {
    return await this.#call(options, () => {
      const named = /^#pk = (:\w+)/.exec(request.keyCondition)?.[1] ?? "";
      const bucket = this.#bucketOf(this.#reads, String(request.values[named]), this.#limits.readsPerKey);
      this.#admit(bucket);
      const page = this.#items.queryNow(request);
      this.#billRead(bucket, page.items, request.consistent);
      return page;
    });
  }

  scan(): Promise<ScanPage> {
    return Promise.reject(new Error("no measurement scans"));
  }

  #write(request: UpdateRequest): UpdateResult {
    const { pk, sk } = request.key;
    this.#admit(this.#table);
    this.#admit(this.#bucketOf(this.#writes, pk, this.#limits.writesPerKey));
    this.#refuseTaken([`${pk} ${sk}`]);
    const before = this.#items.peek(request.key);
    const result = this.#items.updateNow(request);
    this.#bill(pk, writeUnits(before, this.#items.peek(request.key)));
    return result;
  }

  /** A refused condition is billed like a write. */
  #bill(key: string, units: number): void {
    this.load.written += units;
    this.#table.take(units);
    this.#bucketOf(this.#writes, key, this.#limits.writesPerKey).take(units);
  }

  #billRead(bucket: Bucket, items: readonly Item[], isConsistent: boolean): void {
    const bytes = items.reduce((sum, item) => sum + bytesOf(item), 0);
    const units = Math.max(1, Math.ceil(bytes / 4_096)) / (isConsistent ? 1 : 2);
    this.load.read += units;
    bucket.take(units);
  }

  #bucketOf(buckets: Map<string, Bucket>, key: string, perSecond: number): Bucket {
    const bucket = buckets.get(key) ?? new Bucket(this.#clock, perSecond);
    buckets.set(key, bucket);
    return bucket;
  }

  #admit(bucket: Bucket): void {
    if (bucket.isOpen) return;
    this.load.throttled += 1;
    throw new LeaseServiceError("LEASE_THROTTLED", "over the limit");
  }

  #refuseTaken(ids: readonly string[]): void {
    if (!ids.some((id) => this.#taken.has(id))) return;
    this.load.conflicts += 1;
    throw new LeaseServiceError("LEASE_CONFLICT", "a transaction has the item");
  }

  /** A call as the SDK makes it: the way there and back, and more tries where it is throttled or meets a transaction. */
  async #call<Answer>({ signal }: CallOptions, serve: () => Answer | Promise<Answer>): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      this.load.sent += 1;
      await this.#pause(roundTripMs / 2);
      try {
        const answer = await serve();
        await this.#pause(roundTripMs / 2);
        return answer;
      } catch (error) {
        await this.#pause(roundTripMs / 2);
        const { code } = error as LeaseServiceError;
        const pauseMs = firstPauseMs[code as keyof typeof firstPauseMs] as number | undefined;
        if (pauseMs === undefined || attempt === tries || signal.aborted) throw error;
        await this.#pause(this.#random.fraction() * pauseMs * 2 ** (attempt - 1));
        if (signal.aborted) throw error;
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#clock.schedule(resolve, ms));
  }
}

/** The larger of the item before and after, in started KB. */
function writeUnits(before: Item | undefined, after: Item | undefined): number {
  const bytes = Math.max(
    before === undefined ? 0 : bytesOf(before),
    after === undefined ? 0 : bytesOf(after),
  );
  return Math.max(1, Math.ceil(bytes / 1_024));
}

/** Processes with the real client on one table with limits, in virtual time. The same each time. */
export class LimitedWorld {
  readonly clock: ManualClock = new ManualClock();
  readonly table: LimitedTable;
  readonly random: Random;
  /** Leases that a process has lost while it kept them. */
  lost = 0;
  #tokens = 0;

  constructor(limits?: Throughput, seed = 1) {
    this.random = new Random(seed);
    this.table = new LimitedTable(this.clock, this.random, limits);
  }

  /** A process with a client of its own. Owners are as long as those by default: a host's name and a process's number. */
  process(options: Pick<LeaseClientOptions, "leaseDurationMs"> = {}): LeaseClient {
    const { clock, random, table } = this;
    const token = (): string => `00000000-0000-4000-8000-${String(++this.#tokens).padStart(12, "0")}`;
    return new LeaseClient({
      ...options,
      store: table,
      clock,
      owner: `ip-10-0-0-0.ec2.internal:${String(this.#tokens).padStart(5, "0")}:00000000`,
      randomness: { token, fraction: () => random.fraction() },
      onEvent: ({ type }) => {
        if (type === "lost") this.lost += 1;
      },
    });
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.schedule(resolve, ms));
  }

  /** Lets time pass until a promise has settled. */
  async settle<Value>(promise: Promise<Value>): Promise<Value> {
    let isSettled = false;
    const end = (): void => {
      isSettled = true;
    };
    promise.then(end, end);
    while (!isSettled) await this.clock.advance(10);
    return await promise;
  }

  /** Lets so many seconds pass, and gives what was sent in a second of them, on average. */
  async during(seconds: number): Promise<Load> {
    const before = { ...this.table.load };
    await this.clock.advance(seconds * 1_000);
    const after = this.table.load;
    const rate = (name: keyof Load): number => (after[name] - before[name]) / seconds;
    return {
      written: rate("written"),
      read: rate("read"),
      throttled: rate("throttled"),
      sent: rate("sent"),
      conflicts: rate("conflicts"),
    };
  }
}
