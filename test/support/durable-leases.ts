import { marshall } from "@aws-sdk/util-dynamodb";
import {
  type Clock,
  LeaseClient,
  type LeaseClientOptions,
  type LeaseEvent,
  type LeaseStore,
} from "@leasehold/client";
import { removeWaiter, type WaitsBy, waitersOf } from "@leasehold/client/internal";
import { readRecord } from "@leasehold/client/record";
import { type ItemKey, leaseItemKey, leaseSortKey } from "@leasehold/client/schema";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { wakeWaiters } from "../../packages/cdk/wake/waking.ts";
import type { WorldClock } from "../simulation/world.ts";
import { DurableService } from "./durable-service.ts";
import { farAway } from "./wrong-clocks.ts";

/** What the stream of a lease table says. */
type Change = { readonly key: string; readonly before: unknown; readonly after: unknown };

/**
 * A lease table in memory, a service of durable executions beside it, and the stream's function that wakes waiters. Every
 * request of a lease is one at which the process may die.
 */
export class DurableWorld {
  readonly clock: WorldClock;
  readonly service: DurableService;
  readonly table: MemoryLeaseStore = new MemoryLeaseStore();
  readonly events: LeaseEvent[] = [];
  readonly #changes: Change[] = [];
  readonly #randomness: LeaseClientOptions["randomness"];
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
      ...(this.#randomness === undefined ? {} : { randomness: this.#randomness }),
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
    const options = { signal: new AbortController().signal, isCurrent: () => true };
    const { items } = await this.table.query({ ...waitersOf(key), consistent: true }, options);
    return items.map((item) => ({
      key: { pk: String(item.pk), sk: String(item.sk) },
      callbackId: String(item.callbackId),
    }));
  }

  /** @param randomness what its clients draw from, where that is to be the same in each run */
  constructor(clock: WorldClock = new ManualClock(), randomness?: LeaseClientOptions["randomness"]) {
    this.clock = clock;
    this.service = new DurableService(clock);
    this.#randomness = randomness;
    this.service.afterTurn = () => this.#wake();
  }

  /** Lets time pass for everybody, and the stream's function run at each change. */
  async play(forMs: number): Promise<void> {
    await this.service.play(forMs);
  }

  async #wake(): Promise<void> {
    const changes = this.#changes.splice(0);
    if (!this.wakes) return;
    const Records = changes.map(({ before, after }, index) => ({
      eventName: "MODIFY" as const,
      dynamodb: {
        OldImage: marshall(before) as never,
        NewImage: marshall(after) as never,
        SequenceNumber: String(index),
      },
    }));
    await wakeWaiters(
      {
        waiters: {
          oldest: async (key) => (await this.waiters(key))[0],
          isHeld: async (key) => readRecord(this.table.peek(leaseItemKey(key))) !== undefined,
          remove: async (waiter) => {
            this.table.transactNow([{ ...removeWaiter(waiter), action: "delete" }]);
          },
        },
        wake: async (waiter) => "callbackId" in waiter && this.service.complete(waiter.callbackId),
        remainingMs: () => 60_000,
      },
      { Records },
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
            this.#changes.push({ key: key.pk, before, after });
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
      get: (request, options) => sent("get", [], () => table.get(request, options)),
      query: (request, options) => sent("query", [], () => table.query(request, options)),
      scan: (request, options) => sent("scan", [], () => table.scan(request, options)),
    };
  }
}
