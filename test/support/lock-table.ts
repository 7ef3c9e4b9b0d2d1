import { LeaseClient, type LeaseStore } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { type Called, type CallOptions, leasehold } from "./command-line.ts";

/** A table in memory at a time that stands still, its holders, and the command line on it: for tests of what is printed. */
export interface LockTable {
  readonly clock: ManualClock;
  readonly store: MemoryLeaseStore;
  /** A client of its own. Tokens are `00000001-…`, `00000002-…`, in the order in which they are drawn. */
  holder(owner: string): LeaseClient;
  /** Calls `leasehold` as alice@laptop, without colours, on a terminal of 100 columns. */
  call(args: readonly string[], options?: CallOptions): Promise<Called>;
}

/** What readline writes to a terminal beside a question. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is meant.
const cursorMoves = /\u001b\[\d*[GJ]/g;

/** Makes an empty table; it is 22 November 2026, 03:00 UTC. */
export function lockTable(): LockTable {
  const clock = new ManualClock(Date.UTC(2026, 10, 22, 3));
  const store = new MemoryLeaseStore("leases");
  let tokens = 0;
  const token = (): string => {
    const digits = String(++tokens).padStart(8, "0");
    return `${digits}-530a-4fa5-8d78-d576${digits}`;
  };
  return {
    clock,
    store,
    holder: (owner) => new LeaseClient({ store, clock, owner, randomness: { token, fraction: () => 0.5 } }),
    call: async (args, { env, ...options } = {}) => {
      const variables = { NO_COLOR: "1", LEASEHOLD_OWNER: "alice@laptop", ...env };
      const called = await leasehold(args, { store, clock, columns: 100, env: variables, ...options });
      return { ...called, stderr: called.stderr.replace(cursorMoves, "") };
    },
  };
}

/** A store that does something else in a few of its methods. */
export function changedStore(store: MemoryLeaseStore, changes: Partial<LeaseStore>): LeaseStore {
  return {
    tableName: store.tableName,
    isLocal: true,
    update: (...args) => store.update(...args),
    updateMany: (...args) => store.updateMany(...args),
    transact: (...args) => store.transact(...args),
    get: (...args) => store.get(...args),
    query: (...args) => store.query(...args),
    scan: (...args) => store.scan(...args),
    ...changes,
  };
}

/** Lines of a text that are wider than a terminal. */
export function tooWide(text: string, columns: number): readonly string[] {
  return text.split("\n").filter((line) => line.length > columns);
}
