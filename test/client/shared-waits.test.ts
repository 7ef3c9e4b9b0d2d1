/** What the waiters of one client cost and do together, while they wait for one lock without an order. */
import {
  type CallOptions,
  type GetRequest,
  type Item,
  type Lease,
  LeaseClient,
  LeaseServiceError,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import { ManualClock, MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { SharedLooks } from "../../packages/client/src/core/shared-looks.ts";
import { follow } from "../support/follow.ts";

const answerMs = 5;

let clock: ManualClock;
let store: RemoteStore;

/** A table that answers after some milliseconds, counts requests, and may leave some without an answer. */
class RemoteStore extends MemoryLeaseStore {
  readonly counts = { get: 0, update: 0, refused: 0 };
  /** How many of the next requests are never answered. */
  hanging = 0;

  override async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
    this.counts.update += 1;
    await this.#hang(call);
    await later();
    const result = await super.update(request, call);
    if (!result.applied) this.counts.refused += 1;
    await later();
    return result;
  }

  override async get(request: GetRequest, call: CallOptions): Promise<Item | undefined> {
    this.counts.get += 1;
    await this.#hang(call);
    await later();
    const item = await super.get(request, call);
    await later();
    return item;
  }

  async #hang({ signal }: CallOptions): Promise<void> {
    if (this.hanging === 0) return;
    this.hanging -= 1;
    await new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(new LeaseServiceError("LEASE_NO_ANSWER", "cut off")));
    });
  }

  reset(): void {
    Object.assign(this.counts, { get: 0, update: 0, refused: 0 });
  }
}

const later = (): Promise<void> => new Promise((resolve) => clock.schedule(() => resolve(), answerMs));

/** Jitter as random as it has to be, and the same in each run. */
function fractions(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

const clientOf = (owner: string, fraction = fractions(owner.length * 7_919 + 1)): LeaseClient => {
  let drawn = 0;
  const randomness = { token: () => `${owner}-${++drawn}`, fraction };
  return new LeaseClient({ store, clock, owner, leaseDurationMs: 30_000, randomness });
};

beforeEach(() => {
  clock = new ManualClock();
  store = new RemoteStore();
});

/** A lock that many want: each holds it for a time, and how many of them have had it. */
async function crowd(clients: readonly LeaseClient[], each: number, holdMs: number): Promise<() => number> {
  let served = 0;
  for (const client of clients) {
    for (let index = 0; index < each; index += 1) {
      const hold = async (lease: Lease): Promise<void> => {
        served += 1;
        await new Promise<void>((resolve) => clock.schedule(() => resolve(), holdMs));
        await lease.release();
      };
      void client.acquire("k", { waitMs: 3_600_000 }).then(hold);
    }
  }
  await clock.advance(100);
  return () => served;
}

describe("a hundred waiters of one client", () => {
  it.each([
    [100, 4],
    [1_000, 6],
  ])(
    "share their looks and try one at a time, with holds of %i ms, and all are served",
    async (holdMs, reads) => {
      const served = await crowd([clientOf("a")], 100, holdMs);
      await clock.advance(10 * holdMs);
      store.reset();
      const before = served();
      await clock.advance(30 * (holdMs + 100));
      const handOvers = served() - before;
      expect(handOvers).toBeGreaterThan(15);
      expect(store.counts.get).toBeLessThan(reads * handOvers);
      // The write that takes it, and the release.
      expect(store.counts.update).toBeLessThanOrEqual(2 * handOvers + 2);
      expect(store.counts.refused).toBeLessThanOrEqual(1);

      await clock.advance(80 * (holdMs + 200));
      expect(served()).toBe(100);
    },
  );
});

describe("among the waiters of one client", () => {
  let held: Lease;
  let client: LeaseClient;

  beforeEach(async () => {
    const holding = clientOf("holder").acquire("k");
    await clock.advance(20);
    held = await holding;
    client = clientOf("a");
  });

  it("each keeps its own time, but for the answer to its last look, and its own signal", async () => {
    const controller = new AbortController();
    const waiting = [3_000, 3_001, 7_777].map((waitMs) => follow(client.acquire("k", { waitMs }), clock));
    const aborted = follow(client.acquire("k", { waitMs: 60_000, signal: controller.signal }), clock);
    const since = clock.monotonic();
    await clock.advance(2_500);
    controller.abort(new Error("enough"));
    await settled();
    expect(aborted.error).toMatchObject({ code: "LEASE_ABORTED" });
    await clock.advance(6_000);
    const lateMs = [3_000, 3_001, 7_777].map((waitMs, index) => (waiting[index]?.at ?? 0) - since - waitMs);
    for (const ms of lateMs) expect([ms >= 0, ms <= 2 * answerMs]).toEqual([true, true]);
    for (const { error } of waiting)
      expect(error).toMatchObject({ code: "LEASE_UNAVAILABLE", holder: "holder" });
  });

  it("a look that hangs holds the others up for a second at most", async () => {
    const waiting = Array.from({ length: 10 }, () => follow(client.acquire("k", { waitMs: 60_000 }), clock));
    await clock.advance(30);
    store.hanging = 1;
    await clock.advance(200);
    expect(store.hanging).toBe(0);
    void held.release();
    await clock.advance(2_500);
    expect(waiting.filter(({ value }) => value !== undefined)).toHaveLength(1);
  });

  it("one whose look hangs ends at once with its signal", async () => {
    const controller = new AbortController();
    const waiting = follow(client.acquire("k", { waitMs: 60_000, signal: controller.signal }), clock);
    await clock.advance(30);
    store.hanging = 1;
    await clock.advance(400);
    expect(store.hanging).toBe(0);
    controller.abort();
    await settled();
    expect(waiting.error).toMatchObject({ code: "LEASE_ABORTED" });
  });

  it("whoever looks may be aborted or run out of time: another goes on", async () => {
    const controllers = Array.from({ length: 10 }, () => new AbortController());
    const others = controllers.map(({ signal }) =>
      follow(client.acquire("k", { waitMs: 60_000, signal }), clock),
    );
    const brief = Array.from({ length: 10 }, () => follow(client.acquire("k", { waitMs: 300 }), clock));
    const since = clock.monotonic();
    await clock.advance(30);
    store.hanging = 3;
    await clock.advance(400);
    for (const controller of controllers.slice(0, 9)) controller.abort();
    await settled();
    void held.release();
    await clock.advance(4_000);
    expect(others[9]?.value?.held).toBe(true);
    expect(others.slice(0, 9).every(({ error }) => error !== undefined)).toBe(true);
    // Those whose own look hangs end when that is given up.
    const lateMs = brief
      .map(({ at }) => (at ?? Number.POSITIVE_INFINITY) - since - 300)
      .sort((a, b) => a - b);
    expect(lateMs[6]).toBeLessThanOrEqual(4 * answerMs);
  });

  it("a hundred that come at once hear of the first looks, and look no more often than a few do", async () => {
    for (let index = 0; index < 100; index += 1) follow(client.acquire("k", { waitMs: 60_000 }), clock);
    await clock.advance(30);
    store.reset();
    await clock.advance(2_000);
    expect(store.counts.get).toBeLessThan(12);
  });

  it("those that have given up are not counted: the next looks as often as one that was alone", async () => {
    const readsOf = async (one: LeaseClient): Promise<number> => {
      follow(one.acquire("k", { waitMs: 12_000 }), clock);
      store.reset();
      await clock.advance(13_000);
      return store.counts.get;
    };
    const steady = () => clientOf("b", () => 0.5);
    const alone = await readsOf(steady());
    const client = steady();
    for (let index = 0; index < 4; index += 1) follow(client.acquire("k", { waitMs: 300 }), clock);
    await clock.advance(1_000);
    expect(await readsOf(client)).toBe(alone);
  });

  it("only one tries when a dead holder's time is over, and the others hear who has it", async () => {
    const waiting = Array.from({ length: 20 }, () => follow(client.acquire("k", { waitMs: 60_000 }), clock));
    await clock.advance(28_000);
    store.reset();
    await clock.advance(5_000);
    expect(waiting.filter(({ value }) => value !== undefined)).toHaveLength(1);
    expect(store.counts.refused).toBeLessThanOrEqual(1);
  });

  it("all hear by one look that their slot is done", async () => {
    const ended = held.release();
    await clock.advance(20);
    await ended;
    const winning = clientOf("b").acquire("k", { slot: "7" });
    await clock.advance(20);
    const winner = await winning;
    const waiting = Array.from({ length: 20 }, () =>
      follow(client.acquire("k", { waitMs: 60_000, slot: "7" }), clock),
    );
    await clock.advance(30);
    store.reset();
    void winner.complete();
    await clock.advance(1_000);
    expect(waiting.map(({ error }) => (error as Error | undefined)?.name)).toEqual(
      Array.from({ length: 20 }, () => "SlotDoneError"),
    );
    expect(store.counts.get).toBeLessThan(20);
  });
});

it("a look that took too long ends without the one that has begun in its place", async () => {
  const looks = new SharedLooks();
  const begin = () => looks.begin("look", clock, () => false, { withinMs: 60_000 });
  const endFirst = await begin();
  const second = follow(begin(), clock);
  await clock.advance(1_000);
  endFirst?.();
  const third = follow(begin(), clock);
  await clock.advance(999);
  expect([second.value, third.value]).toEqual([expect.any(Function), undefined]);
  second.value?.();
  await settled();
  expect(third.value).toBeDefined();
});
