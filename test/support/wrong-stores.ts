// Stores that are each wrong in one way, as a store that somebody writes could be. The conformance checks have to tell them apart.

import {
  type CallOptions,
  type Item,
  LeaseServiceError,
  type QueryRequest,
  type ScanPage,
  type TransactionEntry,
  type TransactionResult,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import { MemoryLeaseStore, settled } from "@leasehold/client/testing";

type Updates = readonly UpdateRequest[];

/** A condition that holds of every item that the checks write, and uses every placeholder. */
function unconditional<R extends UpdateRequest | TransactionEntry>(request: R): R {
  return { ...request, condition: `(${request.condition}) OR NOT (${request.condition})` };
}

/** By what is wrong with it. */
export const wrongStores: Readonly<Record<string, () => MemoryLeaseStore>> = {
  "ignores conditions": () =>
    new (class extends MemoryLeaseStore {
      override updateNow(request: UpdateRequest): UpdateResult {
        return super.updateNow(unconditional(request));
      }
    })(),

  "shows no item with a refusal": () =>
    new (class extends MemoryLeaseStore {
      override async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
        const result = await super.update(request, call);
        return result.applied ? result : { ...result, item: undefined };
      }
    })(),

  "shows no item after a success": () =>
    new (class extends MemoryLeaseStore {
      override async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
        const result = await super.update(request, call);
        return result.applied ? { ...result, item: undefined } : result;
      }
    })(),

  "writes what it refuses": () =>
    new (class extends MemoryLeaseStore {
      override async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
        const result = await super.update(request, call);
        if (!result.applied && result.item !== undefined) super.updateNow(unconditional(request));
        return result;
      }
    })(),

  "compares numbers as texts": () =>
    new (class extends MemoryLeaseStore {
      override updateNow(request: UpdateRequest): UpdateResult {
        const [, name = "", value = ""] = /^(#\w+) <=? (:\w+)$/.exec(request.condition) ?? [];
        const found = this.peek(request.key)?.[request.names[name] ?? ""];
        const other = request.values[value];
        const isWrong =
          typeof found === "number" && typeof other === "number" && String(found) > String(other);
        return isWrong
          ? { applied: false, item: this.peek(request.key), retried: false }
          : super.updateNow(request);
      }
    })(),

  "lets a missing attribute equal nothing, not even <>": () =>
    new (class extends MemoryLeaseStore {
      override updateNow(request: UpdateRequest): UpdateResult {
        const name = /^(#\w+) <> /.exec(request.condition)?.[1];
        const item = this.peek(request.key);
        if (name !== undefined && item?.[request.names[name] ?? ""] === undefined) {
          return { applied: false, item, retried: false };
        }
        return super.updateNow(request);
      }
    })(),

  "looks first and writes later": () =>
    new (class extends MemoryLeaseStore {
      override async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
        const before = this.peek(request.key);
        const trial = new MemoryLeaseStore();
        if (before !== undefined) copyTo(trial, before);
        const result = trial.updateNow(request);
        await settled();
        if (!result.applied) return result;
        return await super.update(unconditional(request), call);
      }
    })(),

  "applies what holds of a transaction that is refused": () =>
    new (class extends MemoryLeaseStore {
      override transactNow(entries: readonly TransactionEntry[]): TransactionResult {
        const result = super.transactNow(entries);
        if (!result.applied) {
          const holding = entries.filter((_, index) => result.refusals[index] === undefined);
          if (holding.length > 0) super.transactNow(holding);
        }
        return result;
      }
    })(),

  "shows the refusals of a transaction in another order": () =>
    new (class extends MemoryLeaseStore {
      override transactNow(entries: readonly TransactionEntry[]): TransactionResult {
        const result = super.transactNow(entries);
        return { ...result, refusals: result.refusals.toReversed() };
      }
    })(),

  "ignores the checks of a transaction": () =>
    new (class extends MemoryLeaseStore {
      override transactNow(entries: readonly TransactionEntry[]): TransactionResult {
        return super.transactNow(entries.filter(({ action }) => action !== "check"));
      }
    })(),

  "takes 25 entries of a transaction": () =>
    new (class extends MemoryLeaseStore {
      override transactNow(entries: readonly TransactionEntry[]): TransactionResult {
        if (entries.length <= 25) return super.transactNow(entries);
        throw new LeaseServiceError("LEASE_REQUEST_REJECTED", "at most 25");
      }
    })(),

  "sorts as JavaScript does": () =>
    new (class extends MemoryLeaseStore {
      override queryNow(request: QueryRequest): ScanPage {
        const { limit: _, ...all } = request;
        const { items } = super.queryNow({ ...all, descending: false });
        const sorted = items.toSorted((one, other) => (String(one.sk) < String(other.sk) ? -1 : 1));
        const page = (request.descending ? sorted.reverse() : sorted).slice(0, request.limit);
        return { ...super.queryNow(request), items: page };
      }
    })(),

  "knows no descending order": () =>
    new (class extends MemoryLeaseStore {
      override queryNow(request: QueryRequest): ScanPage {
        return super.queryNow({ ...request, descending: false });
      }
    })(),

  "loses an item between two pages": () =>
    new (class extends MemoryLeaseStore {
      override queryNow(request: QueryRequest): ScanPage {
        const page = super.queryNow(request);
        return request.after !== undefined && request.limit !== undefined
          ? { ...page, items: page.items.slice(1) }
          : page;
      }
    })(),

  "ends a query after its first page": () =>
    new (class extends MemoryLeaseStore {
      override queryNow(request: QueryRequest): ScanPage {
        return { items: super.queryNow(request).items };
      }
    })(),

  "goes on at an item only while it is there": () =>
    new (class extends MemoryLeaseStore {
      override queryNow(request: QueryRequest): ScanPage {
        const { after } = request;
        return after === undefined || this.peek(after) !== undefined
          ? super.queryNow(request)
          : { items: [] };
      }
    })(),

  "reads what was there before": () =>
    new (class extends MemoryLeaseStore {
      readonly #earlier = new Map<string, Item | undefined>();
      override updateNow(request: UpdateRequest): UpdateResult {
        this.#earlier.set(`${request.key.pk} ${request.key.sk}`, this.peek(request.key));
        return super.updateNow(request);
      }
      override transactNow(entries: readonly TransactionEntry[]): TransactionResult {
        const updates = entries.filter(({ action }) => typeof action === "object");
        const before = updates.map(({ key }) => [`${key.pk} ${key.sk}`, this.peek(key)] as const);
        const result = super.transactNow(entries);
        if (result.applied) for (const [id, item] of before) this.#earlier.set(id, item);
        return result;
      }
      override async get(...[request, call]: Parameters<MemoryLeaseStore["get"]>): Promise<Item | undefined> {
        const { pk, sk } = request.key;
        const item = await super.get(request, call);
        return this.#earlier.get(`${pk} ${sk}`) ?? item;
      }
    })(),

  "keeps numbers in 32 bits": () =>
    storing((value) => (typeof value === "number" ? Math.fround(value) : value)),

  "normalises texts": () => storing((value) => (typeof value === "string" ? value.trim() : value)),

  "cuts texts at 64 KiB": () =>
    storing((value) => (typeof value === "string" ? value.slice(0, 65_536) : value)),

  "gives the results of several writes in another order": () =>
    new (class extends MemoryLeaseStore {
      override async updateMany(requests: Updates, call: CallOptions) {
        return (await super.updateMany(requests, call)).toReversed();
      }
    })(),

  "says of several writes that all are applied": () =>
    new (class extends MemoryLeaseStore {
      override async updateMany(requests: Updates, call: CallOptions) {
        const results = await super.updateMany(requests, call);
        return results.map((result) => result && { ...result, applied: true });
      }
    })(),

  "drops what is beyond 25 writes": () =>
    new (class extends MemoryLeaseStore {
      override async updateMany(requests: Updates, call: CallOptions) {
        return await super.updateMany(requests.slice(0, 25), call);
      }
    })(),

  "takes no notice of a signal": () =>
    new (class extends MemoryLeaseStore {
      override update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
        return super.update(request, { ...call, signal: new AbortController().signal });
      }
    })(),

  "sends requests that are too old": () =>
    new (class extends MemoryLeaseStore {
      override update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
        return super.update(request, { ...call, isCurrent: () => true });
      }
    })(),

  "rejects with errors of its own": () =>
    new (class extends MemoryLeaseStore {
      override async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
        return await super.update(request, call).catch((error: Error) => {
          throw new Error(error.message);
        });
      }
    })(),

  "tells a time that runs backwards": () =>
    new (class extends MemoryLeaseStore {
      #time = 1_800_000_000_000;
      override update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
        this.#time -= 10_000;
        call.timed?.()({ earliest: this.#time, latest: this.#time + 1_000 });
        return super.update(request, call);
      }
      override transact(entries: readonly TransactionEntry[], call: CallOptions): Promise<TransactionResult> {
        this.#time -= 10_000;
        call.timed?.()({ earliest: this.#time, latest: this.#time + 1_000 });
        return super.transact(entries, call);
      }
    })(),

  "finds everything in a scan": () =>
    new (class extends MemoryLeaseStore {
      override scan(...[request, call]: Parameters<MemoryLeaseStore["scan"]>): Promise<ScanPage> {
        const { names, values } = request;
        const [name = "#x"] = Object.keys(names);
        const filter = `attribute_exists(${name})${Object.keys(values).map((value) => ` OR ${name} = ${value}`)}`;
        return super.scan({ ...request, filter }, call);
      }
    })(),
};

/** A store that changes the values that it keeps. */
function storing(kept: (value: string | number) => string | number): MemoryLeaseStore {
  return new (class extends MemoryLeaseStore {
    override updateNow(request: UpdateRequest): UpdateResult {
      const values = Object.entries(request.values).map(([name, value]) => [name, kept(value)]);
      return super.updateNow({ ...request, values: Object.fromEntries(values) });
    }
  })();
}

function copyTo(store: MemoryLeaseStore, { pk, sk, ...attributes }: Item): void {
  const names = Object.keys(attributes);
  store.updateNow({
    key: { pk: String(pk), sk: String(sk) },
    update: `SET ${names.map((_, index) => `#n${index} = :v${index}`).join(", ")}`,
    condition: "attribute_not_exists(#n0)",
    names: Object.fromEntries(names.map((name, index) => [`#n${index}`, name])),
    values: Object.fromEntries(names.map((name, index) => [`:v${index}`, attributes[name] ?? ""])),
    returnsItem: false,
  });
}
