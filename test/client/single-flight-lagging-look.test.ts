/** A forced refresh whose look at the table lags, while the results are in a cache of the user's. */
import { type CallOptions, type GetRequest, type Item, LeaseClient } from "@leasehold/client";
import { leaseItemKey } from "@leasehold/client/schema";
import { ManualClock, MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { expect, test } from "vitest";
import { type CacheEntry, SingleFlight } from "../../packages/client/src/entries/single-flight.ts";
import { flightSortKey } from "../../packages/client/src/primitives/single-flight/entry.ts";
import { controlled } from "../support/computations.ts";

/** A table whose reads show how it was before the last changes, unless they are consistent. */
class LaggingStore extends MemoryLeaseStore {
  #shown: (() => Item | undefined) | undefined;

  /** From now on, reads that need not be consistent show the item as it is now. */
  lagFrom(item: Item | undefined): void {
    const shown = item && structuredClone(item);
    this.#shown = () => shown;
  }

  override async get(request: GetRequest, call: CallOptions): Promise<Item | undefined> {
    const item = await super.get(request, call);
    return request.consistent || this.#shown === undefined ? item : this.#shown();
  }
}

test("takes no result whose computation began before it was asked for", async () => {
  const clock = new ManualClock();
  const store = new LaggingStore();
  const cache = new Map<string, CacheEntry>();
  const flights = (): SingleFlight =>
    new SingleFlight(new LeaseClient({ store, clock, leaseDurationMs: 60_000 }), {
      freshForMs: 600_000,
      cache,
    });
  const item = (): Item | undefined => store.peek(leaseItemKey("k", flightSortKey));

  const first = controlled();
  const one = flights().getOrCompute("k", { compute: first.compute });
  await settled();
  // The table will be shown with this holder, although the next one has begun.
  const lagging = item();
  first.run(0).resolve("first");
  await one;
  const second = controlled();
  const two = flights().getOrCompute("k", { compute: second.compute, forceRefresh: true });
  await settled();
  store.lagFrom(lagging);

  const refreshed = flights().getOrComputeWithSource("k", {
    compute: () => "begun after",
    forceRefresh: true,
    retry: { strategy: "fixed", delayMs: 1_000 },
  });
  await clock.advance(1_500);
  second.run(0).resolve("begun before");
  expect(await two).toBe("begun before");
  await clock.advance(10_000);
  expect(await refreshed).toEqual({ value: "begun after", source: "computation" });
});
