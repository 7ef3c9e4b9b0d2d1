// What a command sends: counted for --verbose, bounded by --timeout, and printed in place of being sent with --dry-run.

import type { LeaseStore } from "@leasehold/client";

/** Ends a command at its first write with --dry-run. */
export class DryRunEnd extends Error {
  override readonly name = "DryRunEnd";
}

type Operation = "update" | "updateMany" | "transact" | "get" | "query" | "scan";

/** Counts requests and the items that reads have brought. */
export class RequestLog {
  readonly #counts = new Map<Operation, number>();
  /** Items that scans and queries have brought. */
  items = 0;

  note(operation: Operation): void {
    this.#counts.set(operation, (this.#counts.get(operation) ?? 0) + 1);
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** `3 requests: 2 query, 1 update`. */
  toString(): string {
    const parts = [...this.#counts].map(([operation, count]) => `${count} ${operation}`);
    return `${this.total} ${this.total === 1 ? "request" : "requests"}${parts.length > 0 ? `: ${parts.join(", ")}` : ""}`;
  }
}

/** The same store, watched. */
export function watched(
  store: LeaseStore,
  log: RequestLog,
  {
    timeoutMs,
    printDryRun,
  }: {
    readonly timeoutMs: number | undefined;
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
  const limited = <O extends { readonly signal: AbortSignal }>(options: O): O =>
    timeoutMs === undefined
      ? options
      : { ...options, signal: AbortSignal.any([options.signal, AbortSignal.timeout(timeoutMs)]) };
  const read = <R extends { readonly items: readonly unknown[] }>(operation: Operation, page: R): R => {
    log.note(operation);
    log.items += page.items.length;
    return page;
  };
  return {
    tableName: store.tableName,
    ...(store.isLocal === undefined ? {} : { isLocal: store.isLocal }),
    async update(request, options) {
      write("update", request);
      return await store.update(request, limited(options));
    },
    async updateMany(requests, options) {
      write("updateMany", requests);
      return await store.updateMany(requests, limited(options));
    },
    async transact(entries, options) {
      write("transact", entries);
      return await store.transact(entries, limited(options));
    },
    async get(request, options) {
      log.note("get");
      return await store.get(request, limited(options));
    },
    query: async (request, options) => read("query", await store.query(request, limited(options))),
    scan: async (request, options) => read("scan", await store.scan(request, limited(options))),
  };
}
