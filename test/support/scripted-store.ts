import {
  type CallOptions,
  type GetRequest,
  type Item,
  LeaseServiceError,
  type LeaseStore,
  type QueryRequest,
  type ScanPage,
  type ScanRequest,
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
}

/** A table in memory that records every call, and lets some of them go wrong in the order that a test asks for. */
export class ScriptedStore implements LeaseStore {
  readonly table = new MemoryLeaseStore();
  readonly tableName = this.table.tableName;
  readonly calls: Call[] = [];
  /** What the service's clock says, in place of agreement. */
  offset: UpdateResult["offset"] = { minMs: 0, maxMs: 0 };
  readonly #fates: (Fate | undefined)[] = [];
  /** What becomes of every write that has no fate of its own. */
  weather: Fate | undefined;

  /** Gives the next writes their fates; `undefined` lets one pass. */
  next(...fates: (Fate | undefined)[]): void {
    this.#fates.push(...fates);
  }

  count(method: Call["method"]): number {
    return this.calls.filter((call) => call.method === method).length;
  }

  async update(request: UpdateRequest, { signal }: CallOptions): Promise<UpdateResult> {
    this.calls.push({ method: "update", requests: [request] });
    return await this.#meet(signal, () => ({ ...this.table.updateNow(request), offset: this.offset }));
  }

  async updateMany(
    requests: readonly UpdateRequest[],
    { signal }: CallOptions,
  ): Promise<readonly UpdateResult[]> {
    this.calls.push({ method: "updateMany", requests });
    return await this.#meet(signal, () =>
      requests.map((request) => ({ ...this.table.updateNow(request), offset: this.offset })),
    );
  }

  async transact(entries: readonly TransactionEntry[], { signal }: CallOptions): Promise<TransactionResult> {
    this.calls.push({ method: "transact", requests: [], entries });
    return await this.#meet(signal, () => ({ ...this.table.transactNow(entries), offset: this.offset }));
  }

  async query(request: QueryRequest, options: CallOptions): Promise<ScanPage> {
    this.calls.push({ method: "query", requests: [], consistent: request.consistent });
    return await this.table.query(request, options);
  }

  async get(request: GetRequest, options: CallOptions): Promise<Item | undefined> {
    this.calls.push({ method: "get", requests: [], consistent: request.consistent });
    return await this.table.get(request, options);
  }

  async scan(request: ScanRequest, options: CallOptions): Promise<ScanPage> {
    this.calls.push({ method: "scan", requests: [] });
    return await this.table.scan(request, options);
  }

  async #meet<T>(signal: AbortSignal, serve: () => T): Promise<T> {
    const fate = this.#fates.length > 0 ? this.#fates.shift() : this.weather;
    if (fate === undefined) return serve();
    if (fate === "answer lost" || fate === "hangs") serve();
    if (fate === "hangs" && !signal.aborted) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    }
    const codes = { throttled: "LEASE_THROTTLED", rejected: "LEASE_REQUEST_REJECTED" } as const;
    throw new LeaseServiceError(fate in codes ? codes[fate as keyof typeof codes] : "LEASE_NO_ANSWER", fate);
  }
}
