// Stores that are each wrong in one way, as a store that somebody writes could be. The conformance checks have to tell them apart.

import { LeaseServiceError, type TransactionEntry, type UpdateRequest } from "@leasehold/client";
import { MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { itemsOf, put } from "./foreign-items.ts";

type Method =
  | "update"
  | "updateMany"
  | "transact"
  | "get"
  | "scan"
  | "updateNow"
  | "transactNow"
  | "queryNow";

/** A store, and the checks that have to see it, by the beginnings of their names or by their group; no other may fail. */
interface WrongStore {
  readonly make: () => MemoryLeaseStore;
  readonly seenBy: readonly string[];
}

/** A table in memory with another method in place of its own. */
function wrong<M extends Method>(
  method: M,
  other: (own: MemoryLeaseStore[M], store: MemoryLeaseStore) => MemoryLeaseStore[M],
  ...seenBy: readonly string[]
): WrongStore {
  return { make: () => changed(new MemoryLeaseStore(), method, other), seenBy };
}

function changed<M extends Method>(
  store: MemoryLeaseStore,
  method: M,
  other: (own: MemoryLeaseStore[M], store: MemoryLeaseStore) => MemoryLeaseStore[M],
): MemoryLeaseStore {
  const own = store[method].bind(store) as MemoryLeaseStore[M];
  return Object.assign(store, { [method]: other(own, store) });
}

/** A store that changes the values that it keeps. */
function storing(kept: (value: string | number) => string | number, ...seenBy: string[]): WrongStore {
  const replaced = (values: UpdateRequest["values"]) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, kept(value)]));
  return wrong(
    "updateNow",
    (own) => (request) => own({ ...request, values: replaced(request.values) }),
    ...seenBy,
  );
}

/** A condition that holds of every item that the checks write, and uses every placeholder. */
function unconditional<R extends UpdateRequest | TransactionEntry>(request: R): R {
  return { ...request, condition: `(${request.condition}) OR NOT (${request.condition})` };
}

/** By what is wrong with it. */
export const wrongStores: Readonly<Record<string, WrongStore>> = {
  "ignores conditions": wrong(
    "updateNow",
    (own) => (request) => own(unconditional(request)),
    "a write that is refused changes nothing",
    "a write that is refused shows the item",
    "a write that is refused for want of an item",
    "of writes that are sent together",
    "attribute_exists and",
    "= holds",
    "<> holds",
    "numbers are compared",
    "texts are compared",
    "what is missing",
    "an attribute is compared",
    "OR takes",
    "AND takes",
    "of many that write on the same condition",
    "leases",
  ),
  "shows no item with a refusal": wrong(
    "update",
    (own) => async (request, call) => {
      const result = await own(request, call);
      return result.applied ? result : { ...result, item: undefined };
    },
    "a write that is refused shows the item",
    "leases",
  ),
  "shows no item after a success": wrong(
    "update",
    (own) => async (request, call) => {
      const result = await own(request, call);
      return result.applied ? { ...result, item: undefined } : result;
    },
    "a write that was asked for the item",
    "numbers are kept exactly",
    "many counts at the same time",
    "leases",
  ),
  "writes what it refuses": wrong(
    "update",
    (own, store) => async (request, call) => {
      const result = await own(request, call);
      if (!result.applied && result.item !== undefined) store.updateNow(unconditional(request));
      return result;
    },
    "a write that is refused changes nothing",
    "of many that write on the same condition",
    "leases",
  ),
  "compares numbers as texts": wrong(
    "updateNow",
    (own, store) => (request) => {
      const [, name = "", value = ""] = /^(#\w+) <=? (:\w+)$/.exec(request.condition) ?? [];
      const item = store.peek(request.key);
      const [found, other] = [item?.[request.names[name] ?? ""], request.values[value]];
      const areNumbers = typeof found === "number" && typeof other === "number";
      return areNumbers && String(found) > String(other)
        ? { applied: false, item, retried: false }
        : own(request);
    },
    "numbers are compared",
  ),
  "lets a missing attribute equal nothing, not even <>": wrong(
    "updateNow",
    (own, store) => (request) => {
      const name = /^(#\w+) <> /.exec(request.condition)?.[1];
      const item = store.peek(request.key);
      return name !== undefined && item?.[request.names[name] ?? ""] === undefined
        ? { applied: false, item, retried: false }
        : own(request);
    },
    "<> holds",
    "an attribute is compared",
  ),
  "looks first and writes later": wrong(
    "update",
    (own, store) => async (request, call) => {
      const trial = new MemoryLeaseStore();
      for (const { pk, sk, ...attributes } of await itemsOf(store))
        put(trial, String(pk), String(sk), attributes);
      const result = trial.updateNow(request);
      await settled();
      return result.applied ? await own(unconditional(request), call) : result;
    },
    "of many that write on the same condition",
    "leases",
  ),
  "applies what holds of a transaction that is refused": wrong(
    "transactNow",
    (own) => (entries) => {
      const result = own(entries);
      const holding = entries.filter((_, index) => result.refusals[index] === undefined);
      if (!result.applied && holding.length > 0) own(holding);
      return result;
    },
    "a transaction that is refused writes nothing",
    "a check alone",
  ),
  "shows the refusals of a transaction in another order": wrong(
    "transactNow",
    (own) => (entries) => {
      const result = own(entries);
      return { ...result, refusals: result.refusals.toReversed() };
    },
    "it shows each item that has refused",
    "a check alone",
  ),
  "ignores the checks of a transaction": wrong(
    "transactNow",
    (own) => (entries) => own(entries.filter(({ action }) => action !== "check")),
    "it shows each item that has refused",
    "a check alone",
    "leases",
  ),
  "takes 25 entries of a transaction": wrong(
    "transactNow",
    (own) => (entries) => {
      if (entries.length <= 25) return own(entries);
      throw new LeaseServiceError("LEASE_REQUEST_REJECTED", "at most 25");
    },
    "a transaction takes 100 entries",
  ),
  "sorts as JavaScript does": wrong(
    "queryNow",
    (own) => (request) => {
      const { limit: _, ...all } = request;
      const { items } = own({ ...all, descending: false });
      const sorted = items.toSorted((one, other) => (String(one.sk) < String(other.sk) ? -1 : 1));
      const page = (request.descending ? sorted.reverse() : sorted).slice(0, request.limit);
      return { ...own(request), items: page };
    },
    "a query gives the items of its key alone",
    "a query gives them backwards",
    "the pages of a query join",
    "a query goes on behind",
    "a query knows <",
  ),
  "knows no descending order": wrong(
    "queryNow",
    (own) => (request) => own({ ...request, descending: false }),
    "a query gives them backwards",
    "the pages of a query join",
  ),
  "loses an item between two pages": wrong(
    "queryNow",
    (own) => (request) => {
      const page = own(request);
      const isLater = request.after !== undefined && request.limit !== undefined;
      return isLater ? { ...page, items: page.items.slice(1) } : page;
    },
    "the pages of a query join",
  ),
  "ends a query after its first page": wrong(
    "queryNow",
    (own) => (request) => ({ items: own(request).items }),
    "the pages of a query join",
  ),
  "goes on at an item only while it is there": wrong(
    "queryNow",
    (own, store) => (request) =>
      request.after === undefined || store.peek(request.after) !== undefined ? own(request) : { items: [] },
    "a query goes on behind",
  ),
  "reads what was there before": {
    make: readingLate,
    seenBy: [
      "every right side",
      "a count goes on",
      "of writes that are sent together",
      "a count in a transaction",
      "a consistent read",
      "an item that is too large",
      "many counts at the same time",
      "of many transactions",
      "a read at the same time",
      "leases",
    ],
  },
  "keeps numbers in 32 bits": storing(
    (value) => (typeof value === "number" ? Math.fround(value) : value),
    "a count goes on",
    "numbers are kept exactly",
    "leases",
  ),
  "normalises texts": storing(
    (value) => (typeof value === "string" ? value.trim() : value),
    "texts are kept exactly",
  ),
  "cuts texts at 64 KiB": storing(
    (value) => (typeof value === "string" ? value.slice(0, 65_536) : value),
    "an item holds a payload",
    "an item that is too large",
  ),
  "gives the results of several writes in another order": wrong(
    "updateMany",
    (own) => async (requests, call) => (await own(requests, call)).toReversed(),
    "of writes that are sent together",
  ),
  "says of several writes that all are applied": wrong(
    "updateMany",
    (own) => async (requests, call) =>
      (await own(requests, call)).map((result) => result && { ...result, applied: true }),
    "of writes that are sent together",
  ),
  "drops what is beyond 25 writes": wrong(
    "updateMany",
    (own) => (requests, call) => own(requests.slice(0, 25), call),
    "of writes that are sent together",
  ),
  "takes no notice of a signal": wrong(
    "update",
    (own) => (request, call) => own(request, { ...call, signal: new AbortController().signal }),
    "a call whose signal has aborted",
  ),
  "sends requests that are too old": wrong(
    "update",
    (own) => (request, call) => own(request, { ...call, isCurrent: () => true }),
    "a request that has become too old",
  ),
  "rejects with errors of its own": wrong(
    "update",
    (own) => async (request, call) =>
      await own(request, call).catch((error: Error) => {
        throw new Error(error.message);
      }),
    "a call whose signal has aborted",
    "a request that has become too old",
    "a request that is wrong",
    "a count of what is no number",
  ),
  "tells a time that runs backwards": {
    make: tellingTimeBackwards,
    seenBy: ["answers tell the service's time"],
  },
  "finds everything in a scan": wrong(
    "scan",
    (own) => (request, call) => {
      const { names, values } = request;
      const [name = "#x"] = Object.keys(names);
      const filter = `attribute_exists(${name})${Object.keys(values).map((value) => ` OR ${name} = ${value}`)}`;
      return own({ ...request, filter }, call);
    },
    "pages that are full by their size",
  ),
};

function readingLate(): MemoryLeaseStore {
  const store = new MemoryLeaseStore();
  const earlier = new Map<string, ReturnType<MemoryLeaseStore["peek"]>>();
  const idOf = ({ pk, sk }: { readonly pk: string; readonly sk: string }): string => `${pk} ${sk}`;
  changed(store, "updateNow", (own) => (request) => {
    earlier.set(idOf(request.key), store.peek(request.key));
    return own(request);
  });
  changed(store, "transactNow", (own) => (entries) => {
    const updates = entries.filter(({ action }) => typeof action === "object");
    const before = updates.map(({ key }) => [idOf(key), store.peek(key)] as const);
    const result = own(entries);
    if (result.applied) for (const [id, item] of before) earlier.set(id, item);
    return result;
  });
  return changed(store, "get", (own) => async (request, call) => {
    const item = await own(request, call);
    return earlier.get(idOf(request.key)) ?? item;
  });
}

function tellingTimeBackwards(): MemoryLeaseStore {
  const store = new MemoryLeaseStore();
  let time = 1_800_000_000_000;
  const next = () => {
    time -= 10_000;
    return { earliest: time, latest: time + 1_000 };
  };
  changed(store, "update", (own) => (request, call) => {
    call.timed?.()(next());
    return own(request, call);
  });
  return changed(store, "transact", (own) => (entries, call) => {
    call.timed?.()(next());
    return own(entries, call);
  });
}
