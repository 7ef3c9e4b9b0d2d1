import { InvalidOptionsError, LeaseConfigurationError, LeaseServiceError } from "@leasehold/client";
import { type ConformanceCheck, conformanceChecks, runConformance } from "@leasehold/client/conformance";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { describe, expect, it } from "vitest";
import { itemsOf, put } from "../support/foreign-items.ts";
import { wrongStores } from "../support/wrong-stores.ts";

describe("the checks see a store that", () => {
  it.each(Object.entries(wrongStores))("%s, and no other check fails", async (_, { make, seenBy }) => {
    const { results, conforms, measured, leftBehind } = await runConformance({ store: make() });
    const failed = results.filter(({ outcome }) => outcome === "failed");
    const isExpected = (check: Pick<ConformanceCheck, "group" | "name">): boolean =>
      seenBy.some((beginning) => check.group === beginning || check.name.startsWith(beginning));
    expect(failed.filter((result) => !isExpected(result))).toEqual([]);
    for (const beginning of seenBy) {
      const seen = failed.some((each) => each.group === beginning || each.name.startsWith(beginning));
      expect(seen, beginning).toBe(true);
    }
    expect(failed.every(({ reason }) => reason)).toBe(true);
    expect([conforms, measured, leftBehind]).toEqual([false, undefined, []]);
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
