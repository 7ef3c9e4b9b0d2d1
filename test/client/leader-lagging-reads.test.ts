import { type CallOptions, type GetRequest, type Item, LeaseClient } from "@leasehold/client";
import { leaseItemKey } from "@leasehold/client/schema";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { expect, it } from "vitest";
import { Leader } from "../../packages/client/src/entries/leader.ts";

const election = "scheduler";

/** Its reads lag now and then: they show what was there when they were told to. */
class LaggingStore extends MemoryLeaseStore {
  #shown: { readonly item: Item | undefined } | undefined;

  /** Every read shows this, until `undefined` is given. */
  show(shown: { readonly item: Item | undefined } | undefined): void {
    this.#shown = shown;
  }

  override async get(request: GetRequest, call: CallOptions): Promise<Item | undefined> {
    return this.#shown === undefined ? await super.get(request, call) : this.#shown.item;
  }
}

it("an observer hears of nothing that was before what it has heard, where one look lags more than the one before it", async () => {
  const clock = new ManualClock();
  const store = new LaggingStore();
  const leaderOf = (owner: string): Leader => new Leader(new LeaseClient({ store, clock, owner }), election);
  const now = (): { readonly item: Item | undefined } => ({ item: store.peek(leaseItemKey(election)) });

  const seen: (string | undefined)[] = [];
  const observe = async (): Promise<void> => {
    for await (const leader of leaderOf("observer").observe()) seen.push(leader?.owner);
  };
  void observe();
  const first = leaderOf("first");
  await first.campaign();
  const underFirst = now();
  await clock.advance(20_000);
  await first.resign();
  const interregnum = now();
  await leaderOf("second").campaign();
  await clock.advance(20_000);
  for (const past of [underFirst, interregnum]) {
    store.show(past);
    await clock.advance(20_000);
    store.show(undefined);
    await clock.advance(20_000);
  }
  expect(seen).toEqual([undefined, "first", "second"]);
});
