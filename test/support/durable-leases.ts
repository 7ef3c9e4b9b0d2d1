import { type Clock, LeaseClient, type LeaseEvent, type LeaseStore } from "@leasehold/client";
import type { WaitsBy } from "@leasehold/client/internal";
import { readRecord } from "@leasehold/client/record";
import { type ItemKey, leaseItemKey, leaseSortKey } from "@leasehold/client/schema";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { DurableService } from "./durable-service.ts";
import { type LeaseChange, parkedIn, wakeAt } from "./stream-wakes.ts";
import { farAway } from "./wrong-clocks.ts";

/**
 * A lease table in memory, a service of durable executions beside it, and the stream's function that wakes waiters. Every
 * request of a lease is one at which the process may die.
 */
export class DurableWorld {
  readonly clock: ManualClock = new ManualClock();
  readonly service: DurableService = new DurableService(this.clock);
  readonly table: MemoryLeaseStore = new MemoryLeaseStore();
  readonly events: LeaseEvent[] = [];
  readonly #changes: LeaseChange[] = [];
  /** Whether the stream's function runs. */
  wakes = true;
  /** Makes a request to the table fail. */
  failure: ((what: string) => Error | undefined) | undefined;

  /**
   * A client as a process makes it; its requests are seen by the service. On a machine with clocks of its own, it has the
   * right time from the answers of the table.
   */
  client(clock?: Clock): LeaseClient {
    return new LeaseClient({
      store: clock === undefined ? this.#store() : farAway(this.#store(), () => this.clock.now()),
      clock: clock ?? this.clock,
      onEvent: (event) => this.events.push(event),
    });
  }

  /** How many requests the leases have made. */
  get requests(): number {
    return this.service.boundaries.filter(({ what }) => what.startsWith("lease: ")).length;
  }

  /** Who holds a lock, and whether anybody does. */
  holder(key: string): string | undefined {
    return readRecord(this.table.peek(leaseItemKey(key)))?.owner;
  }

  /** The waiters of a lock, first come first. */
  async waiters(key: string): Promise<(WaitsBy & { readonly key: ItemKey })[]> {
    return parkedIn(this.table, key);
  }

  constructor() {
    this.service.afterTurn = () => this.#wake();
  }

  /** Lets time pass for everybody, and the stream's function run at each change. */
  async play(forMs: number): Promise<void> {
    await this.service.play(forMs);
  }

  async #wake(): Promise<void> {
    const changes = this.#changes.splice(0);
    if (!this.wakes) return;
    await wakeAt(
      this.table,
      changes,
      (waiter) => "callbackId" in waiter && this.service.complete(waiter.callbackId),
    );
  }

  #store(): LeaseStore {
    const { table, service } = this;
    const sent = async <T>(what: string, keys: readonly ItemKey[], send: () => Promise<T>): Promise<T> =>
      await service.request(`lease: ${what}`, async () => {
        const error = this.failure?.(what);
        if (error !== undefined) throw error;
        const befores = keys.map((key) => table.peek(key));
        const answer = await send();
        for (const [index, key] of keys.entries()) {
          const [before, after] = [befores[index], table.peek(key)];
          if (key.sk === leaseSortKey && before?.token !== undefined) {
            this.#changes.push({ before, after });
          }
        }
        return answer;
      });
    return {
      tableName: table.tableName,
      isLocal: true,
      update: (request, options) => sent("update", [request.key], () => table.update(request, options)),
      updateMany: (requests, options) =>
        sent(
          "updateMany",
          requests.map(({ key }) => key),
          () => table.updateMany(requests, options),
        ),
      transact: (entries, options) =>
        sent(
          "transact",
          entries.map(({ key }) => key),
          () => table.transact(entries, options),
        ),
      // A read that is not consistent may find an old state, as this one always does.
      get: (request, options) =>
        sent("get", [], async () => (request.consistent ? await table.get(request, options) : undefined)),
      query: (request, options) => sent("query", [], () => table.query(request, options)),
      scan: (request, options) => sent("scan", [], () => table.scan(request, options)),
    };
  }
}
