import {
  type CallOptions,
  type GetRequest,
  type Item,
  type LeaseError,
  LeaseServiceError,
  type LeaseStore,
  type QueryRequest,
  type ScanPage,
  type ScanRequest,
  type ServiceTime,
  type TransactionEntry,
  type TransactionResult,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";

/** What becomes of one call. */
export type Fate =
  /** The write lands, its answer does not. */
  | "answer lost"
  /** The write never arrives. */
  | "request lost"
  /** The write lands, and the call waits until its caller gives up. */
  | "hangs"
  /** The service is too busy. */
  | "throttled"
  /** The policy does not allow it. */
  | "rejected";

/** One call, as it was made. */
export interface Call {
  readonly method: "update" | "updateMany" | "transact" | "get" | "query" | "scan";
  readonly requests: readonly UpdateRequest[];
  /** Of a transaction. */
  readonly entries?: readonly TransactionEntry[];
  readonly consistent?: boolean;
  /** The partition key that a read names; none for a scan, which names no key. */
  readonly readsKey?: string;
}

/** A table in memory that records every call, and lets some of them go wrong in the order that a test asks for. */
export class ScriptedStore implements LeaseStore {
  readonly table: MemoryLeaseStore;
  readonly tableName: string;
  readonly calls: Call[] = [];
  /** False for a store far away; to be set before a client is made. */
  isLocal = true;
  /** What every answer of a store far away says of the time. */
  time: (() => ServiceTime | undefined) | undefined;
  readonly #fates: (Fate | undefined)[] = [];
  /** What becomes of every write that has no fate of its own. */
  weather: Fate | undefined;

  /** @param table several stores may share one, as clients on several machines do. */
  constructor(table: MemoryLeaseStore = new MemoryLeaseStore()) {
    this.table = table;
    this.tableName = table.tableName;
  }

  /** Gives the next writes their fates; `undefined` lets one pass. */
  next(...fates: (Fate | undefined)[]): void {
    this.#fates.push(...fates);
  }

  /** As for a process that has died: from now on no write arrives, and no read is answered. */
  cutOff(): void {
    this.get = () => new Promise(() => undefined);
    this.weather = "request lost";
  }

  count(method: Call["method"]): number {
    return this.calls.filter((call) => call.method === method).length;
  }

  async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
    this.calls.push({ method: "update", requests: [request] });
    return await this.#meet(call, () => this.table.updateNow(request));
  }

  async updateMany(
    requests: readonly UpdateRequest[],
    call: CallOptions,
  ): Promise<readonly (UpdateResult | LeaseError | undefined)[]> {
    this.calls.push({ method: "updateMany", requests });
    return await this.#meet(call, () => requests.map((request) => this.table.updateNow(request)));
  }

  async transact(entries: readonly TransactionEntry[], call: CallOptions): Promise<TransactionResult> {
    this.calls.push({ method: "transact", requests: [], entries });
    return await this.#meet(call, () => this.table.transactNow(entries));
  }

  async query(request: QueryRequest, options: CallOptions): Promise<ScanPage> {
    const { consistent, keyCondition, values } = request;
    const named = /^#pk = (:\w+)/.exec(keyCondition)?.[1] ?? "";
    this.calls.push({ method: "query", requests: [], consistent, readsKey: String(values[named]) });
    return await this.#read(options, () => this.table.query(request, options));
  }

  async get(request: GetRequest, options: CallOptions): Promise<Item | undefined> {
    const { consistent, key } = request;
    this.calls.push({ method: "get", requests: [], consistent, readsKey: key.pk });
    return await this.#read(options, () => this.table.get(request, options));
  }

  async scan(request: ScanRequest, options: CallOptions): Promise<ScanPage> {
    this.calls.push({ method: "scan", requests: [] });
    return await this.#read(options, () => this.table.scan(request, options));
  }

  async #read<T>({ timed }: CallOptions, read: () => Promise<T>): Promise<T> {
    const answered = timed?.();
    const result = await read();
    answered?.(this.time?.());
    return result;
  }

  async #meet<T>({ signal, timed }: CallOptions, serve: () => T): Promise<T> {
    const answered = timed?.();
    const fate = this.#fates.length > 0 ? this.#fates.shift() : this.weather;
    if (fate === undefined) {
      answered?.(this.time?.());
      return serve();
    }
    if (fate === "answer lost" || fate === "hangs") serve();
    if (fate === "hangs" && !signal.aborted) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    }
    const codes = { throttled: "LEASE_THROTTLED", rejected: "LEASE_REQUEST_REJECTED" } as const;
    throw new LeaseServiceError(fate in codes ? codes[fate as keyof typeof codes] : "LEASE_NO_ANSWER", fate);
  }
}
