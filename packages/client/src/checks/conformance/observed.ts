import type { CallOptions, Item, LeaseStore, TransactionEntry, UpdateRequest } from "../../base/store.ts";

/** What is done on the way to a store and back. */
export interface Observer {
  /** Hears of the writes of a call before they are sent. */
  readonly writing?: (writes: readonly (UpdateRequest | TransactionEntry)[], isTransaction: boolean) => void;
  /** Hears of the items that a call has read. */
  readonly read?: (items: readonly Item[], isConsistent: boolean) => void;
  /** Gives the options with which a call goes on. @default - its own */
  readonly options?: (call: CallOptions) => CallOptions;
}

/** The same store; an observer hears of its requests and answers. */
export function observed(
  store: LeaseStore,
  { writing = () => undefined, read = () => undefined, options = (call) => call }: Observer,
): LeaseStore {
  return {
    tableName: store.tableName,
    isLocal: store.isLocal ?? false,
    update: (request, call) => {
      writing([request], false);
      return store.update(request, options(call));
    },
    updateMany: (requests, call) => {
      writing(requests, false);
      return store.updateMany(requests, options(call));
    },
    transact: (entries, call) => {
      writing(entries, true);
      return store.transact(entries, options(call));
    },
    get: async (request, call) => {
      const item = await store.get(request, options(call));
      read(item === undefined ? [] : [item], request.consistent);
      return item;
    },
    query: async (request, call) => {
      const page = await store.query(request, options(call));
      read(page.items, request.consistent);
      return page;
    },
    scan: async (request, call) => {
      const page = await store.scan(request, options(call));
      read(page.items, false);
      return page;
    },
  };
}
