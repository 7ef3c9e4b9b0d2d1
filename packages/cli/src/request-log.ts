// A command's requests: counted for --verbose, limited by --timeout, and printed instead of sent with --dry-run.

import type { Item, LeaseStore } from "@leasehold/client";
import { onAbort } from "@leasehold/client/internal";
import { bytesOf, readCost, unitsText } from "./view/read-cost.ts";

/** Ends a command at its first write with --dry-run. */
export class DryRunEnd extends Error {
  override readonly name = "DryRunEnd";
}

type Operation = "update" | "updateMany" | "transact" | "get" | "query" | "scan";

/** Counts requests, and the cost of reads. */
export class RequestLog {
  readonly #counts = new Map<Operation, number>();
  #readUnits = 0;

  note(operation: Operation): void {
    this.#counts.set(operation, (this.#counts.get(operation) ?? 0) + 1);
  }

  /** Notes the result of a read: DynamoDB bills twice as much for a consistent one. */
  noteRead(operation: Operation, items: readonly Item[], isConsistent: boolean): void {
    this.note(operation);
    const bytes = items.reduce((sum, item) => sum + bytesOf(item), 0);
    this.#readUnits += readCost(items.length, bytes).units * (isConsistent ? 2 : 1);
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** `3 requests: 2 query, 1 update; about 1.5 RCU`. */
  toString(): string {
    const parts = [...this.#counts].map(([operation, count]) => `${count} ${operation}`);
    const listed = parts.length > 0 ? `: ${parts.join(", ")}` : "";
    const units = this.#readUnits > 0 ? `; about ${unitsText(this.#readUnits)} RCU` : "";
    return `${this.total} ${this.total === 1 ? "request" : "requests"}${listed}${units}`;
  }
}

/** The same store, with a log of its requests. */
export function watched(
  store: LeaseStore,
  log: RequestLog,
  {
    timeoutMs,
    closed,
    printDryRun,
  }: {
    readonly timeoutMs: number | undefined;
    /** Ends the requests that are still under way: otherwise the process would wait for them. */
    readonly closed: AbortSignal;
    readonly printDryRun: ((request: object) => void) | undefined;
  },
): LeaseStore {
  let isOver = false;
  const write = (operation: Operation, request: object): void => {
    if (printDryRun !== undefined) {
      if (!isOver) printDryRun({ operation, tableName: store.tableName, request });
      isOver = true;
      throw new DryRunEnd("nothing was sent");
    }
    log.note(operation);
  };
  // No AbortSignal.any: the closing signal would keep every request's listener.
  const within = async <O extends { readonly signal: AbortSignal }, T>(
    options: O,
    send: (limited: O) => Promise<T>,
  ): Promise<T> => {
    const over = new AbortController();
    const limits = [
      options.signal,
      closed,
      ...(timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)]),
    ];
    const ignored = limits.map((limit) => onAbort(limit, (reason) => over.abort(reason)));
    try {
      return await send({ ...options, signal: over.signal });
    } finally {
      for (const ignore of ignored) ignore();
    }
  };
  return {
    tableName: store.tableName,
    ...(store.isLocal === undefined ? {} : { isLocal: store.isLocal }),
    async update(request, options) {
      write("update", request);
      return await within(options, (limited) => store.update(request, limited));
    },
    async updateMany(requests, options) {
      write("updateMany", requests);
      return await within(options, (limited) => store.updateMany(requests, limited));
    },
    async transact(entries, options) {
      write("transact", entries);
      return await within(options, (limited) => store.transact(entries, limited));
    },
    async get(request, options) {
      const item = await within(options, (limited) => store.get(request, limited));
      log.noteRead("get", item === undefined ? [] : [item], request.consistent);
      return item;
    },
    async query(request, options) {
      const page = await within(options, (limited) => store.query(request, limited));
      log.noteRead("query", page.items, request.consistent);
      return page;
    },
    async scan(request, options) {
      const page = await within(options, (limited) => store.scan(request, limited));
      // The items that the filter has left out are billed too, and are not known here.
      log.noteRead("scan", page.items, false);
      return page;
    },
  };
}
