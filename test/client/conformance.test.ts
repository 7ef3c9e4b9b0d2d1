import { InvalidOptionsError, LeaseConfigurationError, LeaseServiceError } from "@leasehold/client";
import { type ConformanceCheck, conformanceChecks, runConformance } from "@leasehold/client/conformance";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { describe, expect, it } from "vitest";
import { itemsOf, put } from "../support/foreign-items.ts";
import { wrongStores } from "../support/wrong-stores.ts";

/** Of each wrong store: which checks have to see it, by the beginnings of their names; no other may fail. */
const seenBy: Readonly<Record<string, readonly string[]>> = {
  "ignores conditions": [
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
  ],
  "shows no item with a refusal": ["a write that is refused shows the item", "leases"],
  "shows no item after a success": [
    "a write that was asked for the item",
    "numbers are kept exactly",
    "many counts at the same time",
    "leases",
  ],
  "writes what it refuses": [
    "a write that is refused changes nothing",
    "of many that write on the same condition",
    "leases",
  ],
  "compares numbers as texts": ["numbers are compared"],
  "lets a missing attribute equal nothing, not even <>": ["<> holds", "an attribute is compared"],
  "looks first and writes later": ["of many that write on the same condition", "leases"],
  "applies what holds of a transaction that is refused": [
    "a transaction that is refused writes nothing",
    "a check alone",
  ],
  "shows the refusals of a transaction in another order": [
    "it shows each item that has refused",
    "a check alone",
  ],
  "ignores the checks of a transaction": ["it shows each item that has refused", "a check alone", "leases"],
  "takes 25 entries of a transaction": ["a transaction takes 100 entries"],
  "sorts as JavaScript does": [
    "a query gives the items of its key alone",
    "a query gives them backwards",
    "the pages of a query join",
    "a query goes on behind",
    "a query knows <",
  ],
  "knows no descending order": ["a query gives them backwards", "the pages of a query join"],
  "loses an item between two pages": ["the pages of a query join"],
  "ends a query after its first page": ["the pages of a query join"],
  "goes on at an item only while it is there": ["a query goes on behind"],
  "reads what was there before": [
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
  "keeps numbers in 32 bits": ["a count goes on", "numbers are kept exactly", "leases"],
  "normalises texts": ["texts are kept exactly"],
  "cuts texts at 64 KiB": ["an item holds a payload", "an item that is too large"],
  "gives the results of several writes in another order": ["of writes that are sent together"],
  "says of several writes that all are applied": ["of writes that are sent together"],
  "drops what is beyond 25 writes": ["of writes that are sent together"],
  "takes no notice of a signal": ["a call whose signal has aborted"],
  "sends requests that are too old": ["a request that has become too old"],
  "rejects with errors of its own": [
    "a call whose signal has aborted",
    "a request that has become too old",
    "a request that is wrong",
    "a count of what is no number",
  ],
  "tells a time that runs backwards": ["answers tell the service's time"],
  "finds everything in a scan": ["pages that are full by their size"],
};

describe("the checks see a store that", () => {
  it.each(Object.entries(wrongStores))("%s, and no other check fails", async (name, makeStore) => {
    const { results, conforms, measured, leftBehind } = await runConformance({ store: makeStore() });
    const failed = results.filter(({ outcome }) => outcome === "failed");
    const expected = seenBy[name] ?? [];
    const isExpected = (check: Pick<ConformanceCheck, "group" | "name">): boolean =>
      expected.some((beginning) => check.group === beginning || check.name.startsWith(beginning));
    expect(failed.filter((result) => !isExpected(result))).toEqual([]);
    for (const beginning of expected) {
      const seen = failed.some((each) => each.group === beginning || each.name.startsWith(beginning));
      expect(seen, beginning).toBe(true);
    }
    expect(failed.every(({ reason }) => reason)).toBe(true);
    expect([conforms, measured, leftBehind]).toEqual([false, undefined, []]);
  });

  it("nobody expects fewer stores to be seen than there are", () => {
    expect(Object.keys(seenBy)).toEqual(Object.keys(wrongStores));
  });
});

describe("a run of the checks", () => {
  it("finds nothing wrong with the table in memory, removes what it wrote, and says what it measured", async () => {
    const store = new MemoryLeaseStore();
    const told: string[] = [];
    const report = await runConformance({ store, onResult: ({ name }) => told.push(name) });
    expect(report.results.filter(({ outcome }) => outcome === "failed")).toEqual([]);
    expect(report.results.filter(({ outcome }) => outcome === "skipped")).toEqual([
      expect.objectContaining({ name: "answers tell the service's time, and agree with each other" }),
    ]);
    expect(told).toEqual(conformanceChecks.map(({ name }) => name));
    expect(report).toMatchObject({ conforms: true, leftBehind: [] });
    expect(report.measured).toMatchObject({ largestBatch: 25, clockOffset: undefined });
    expect(report.measured?.writeMs.p50).toBeLessThanOrEqual(report.measured?.writeMs.p99 ?? 0);
    expect(report.cost.calls).toBeGreaterThan(conformanceChecks.length);
    expect(await itemsOf(store)).toEqual([]);
  });

  it("leaves items of others alone", async () => {
    const store = new MemoryLeaseStore();
    put(store, "somebody", "else", { n: 1 });
    await runConformance({ store });
    expect(await itemsOf(store)).toEqual([{ pk: "somebody", sk: "else", n: 1 }]);
  });

  it("tells the service's time where the answers have it", async () => {
    const ahead = 5_000;
    class TellingStore extends MemoryLeaseStore {
      override update(...[request, call]: Parameters<MemoryLeaseStore["update"]>) {
        call.timed?.()({ earliest: Date.now() + ahead, latest: Date.now() + ahead + 1_000 });
        return super.update(request, call);
      }
    }
    const store = new TellingStore();
    const { measured, results } = await runConformance({ store });
    expect(results.filter(({ outcome }) => outcome !== "ok")).toEqual([]);
    const { leastMs = 0, mostMs = 0 } = measured?.clockOffset ?? {};
    expect(leastMs).toBeGreaterThan(ahead - 1_000);
    expect(leastMs).toBeLessThanOrEqual(ahead);
    expect(mostMs).toBeGreaterThanOrEqual(ahead);
  });

  it("rejects with what the store says where nothing can be written", async () => {
    const denied = new LeaseConfigurationError("LEASE_ACCESS_DENIED", "the table refused access");
    const store = rejecting("update", () => denied);
    await expect(runConformance({ store })).rejects.toBe(denied);
  });

  it("skips what is denied, and makes a check once more that may pass", async () => {
    const denied = new LeaseConfigurationError("LEASE_ACCESS_DENIED", "no scan for this role");
    const { results, conforms } = await runConformance({ store: rejecting("scan", () => denied) });
    const skipped = results.filter(({ reason }) => reason === "no scan for this role");
    expect(skipped.map(({ outcome }) => outcome)).toEqual(["skipped", "skipped"]);
    expect(conforms).toBe(true);

    let isBusy = true;
    const busy = rejecting("query", () => {
      const error = isBusy ? new LeaseServiceError("LEASE_THROTTLED", "slow down") : undefined;
      isBusy = false;
      return error;
    });
    expect((await runConformance({ store: busy })).conforms).toBe(true);
  });

  it("says which items it could not remove", async () => {
    const store = rejecting(
      "transact",
      () => new LeaseServiceError("LEASE_REQUEST_REJECTED", "no transactions"),
    );
    const { conforms, leftBehind } = await runConformance({ store });
    expect(conforms).toBe(false);
    expect(leftBehind.length).toBeGreaterThan(0);
    expect(leftBehind.every(({ pk }) => pk.startsWith("leasehold-conformance/"))).toBe(true);
  });

  it("ends between two checks when its signal aborts", async () => {
    const controller = new AbortController();
    const onResult = (): void => controller.abort(new Error("enough"));
    const store = new MemoryLeaseStore();
    await expect(runConformance({ store, onResult, signal: controller.signal })).rejects.toThrow("enough");
  });

  it.each([
    [undefined, "options"],
    [{}, "store"],
    [{ store: {} }, "store"],
    [{ store: new MemoryLeaseStore(), keyPrefix: "" }, "keyPrefix"],
    [{ store: new MemoryLeaseStore(), checks: [{}] }, "checks.0"],
    [{ store: new MemoryLeaseStore(), prefix: "x" }, "options.prefix"],
  ])("is refused with %j", async (options, option) => {
    const refusal: unknown = await runConformance(options as never).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(InvalidOptionsError);
    expect(refusal).toMatchObject({ option });
  });
});

/** A table in memory one of whose methods rejects, where it is given something to reject with. */
function rejecting(
  method: "update" | "scan" | "query" | "transact",
  failure: () => Error | undefined,
): MemoryLeaseStore {
  const store = new MemoryLeaseStore();
  const original = store[method].bind(store) as (...args: never[]) => Promise<never>;
  return Object.assign(store, {
    [method]: async (...args: never[]) => {
      const error = failure();
      if (error !== undefined) throw error;
      return await original(...args);
    },
  });
}
