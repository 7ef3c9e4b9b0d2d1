import { LeaseUnavailableError } from "@leasehold/client";
import { type PlaceInQueue, QueueFullError } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import { beforeEach, describe, expect, it } from "vitest";
import { clockSkewMs, FairCallers, names, waitMs } from "../support/fair-callers.ts";

let at: FairCallers;

beforeEach(() => {
  at = new FairCallers();
});

describe("a fair semaphore that nobody waits for", () => {
  it("costs 1 read and 1 write to acquire and 1 write to release", async () => {
    await (await at.semaphore("a").acquire({ waitMs })).release();
    expect(at.methods()).toEqual(["get", "update", "update"]);
    expect(at.store.calls[0]?.consistent).toBe(true);
  });

  it("refuses one that does not wait with the permit that ends first, and queues nobody", async () => {
    await at.fill();
    const refused = at.semaphore("a").acquire();
    await expect(refused).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE", holder: "holder" });
    expect(await at.waitingNow()).toEqual([]);
  });
});

describe("those who wait for a fair semaphore", () => {
  it("get permits in the order in which they came", async () => {
    const held = await at.fill();
    await at.comeAll(names(8));
    expect(await at.waitingNow()).toEqual(names(8));
    for (const lease of held) await lease.release();
    for (const name of names(6)) {
      await at.clock.advance(60_000);
      await at.leases.get(name)?.release();
    }
    await at.clock.advance(60_000);
    expect(at.served).toEqual(names(8));
    expect(await at.waitingNow()).toEqual([]);
  });

  it("wait where clocks count fractions of milliseconds too", async () => {
    const held = await at.fill();
    const look = at.store.get.bind(at.store);
    at.store.get = (request, options) => {
      at.clock.freeze(0.3);
      return look(request, options);
    };
    await at.comeAll(names(2));
    await held[0]?.release();
    await at.clock.advance(2_000);
    expect(at.served).toEqual(["w1"]);
  });

  it("never hold more permits than there are", async () => {
    const held = await at.fill();
    await at.comeAll(names(5));
    await held[0]?.release();
    await at.clock.advance(60_000);
    expect(at.served).toEqual(["w1"]);
  });

  it("are not overtaken by one that comes when a permit is free, whether it waits or not", async () => {
    const held = await at.fill();
    await at.comeAll(names(2));
    await held[0]?.release();
    expect(await at.semaphore("quick").tryAcquire()).toBeUndefined();
    void at.come("newcomer");
    await at.clock.advance(60_000);
    expect(at.served).toEqual(["w1"]);
    await held[1]?.release();
    await at.clock.advance(60_000);
    expect(at.served).toEqual(["w1", "w2"]);
  });

  it("are overtaken by one that does not ask for fairness", async () => {
    const held = await at.fill();
    await at.comeAll(["w1"]);
    await held[0]?.release();
    const plain = await new Semaphore(at.client("plain"), "k", { permits: 2 }).acquire({ heartbeat: true });
    await at.clock.advance(60_000);
    expect(at.served).toEqual([]);
    await plain.release();
    await at.clock.advance(2_000);
    expect(at.served).toEqual(["w1"]);
  });

  it("all get in soon when all permits are let go at once", async () => {
    const held = await at.fill();
    await at.comeAll(names(3));
    await Promise.all(held.map((lease) => lease.release()));
    await at.clock.advance(2_000);
    expect(at.served).toEqual(["w1", "w2"]);
  });

  it("cost a newcomer that does not wait 2 reads, and tell it of the permit whose end lets the next in", async () => {
    await at.fill();
    await at.comeAll(["w1"]);
    at.store.calls.length = 0;
    await expect(at.semaphore("a").acquire()).rejects.toMatchObject({ holder: "holder" });
    expect(at.methods()).toEqual(["get", "query"]);
  });

  it("are told of to a newcomer that does not wait where permits are free", async () => {
    const held = await at.fill();
    await at.comeAll(["w1"]);
    await held[0]?.release();
    const refusal = await at
      .semaphore("a")
      .acquire()
      .catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(LeaseUnavailableError);
    expect(refusal).toMatchObject({ holder: "w1", inCooldown: false });
    expect((refusal as LeaseUnavailableError).retryAfterMs).toBeLessThanOrEqual(10_000 + clockSkewMs + 1);
  });

  it("give up at the end of their patience, and are told of the permit that ends first", async () => {
    await at.fill();
    const outcomes: unknown[] = [];
    for (const owner of ["in the turnstile", "behind it"]) {
      void at
        .come(owner, at.semaphore(owner), { waitMs: 5_000 })
        .catch((error: unknown) => outcomes.push(error));
      await at.clock.advance(10);
    }
    await at.clock.advance(5_001);
    expect(outcomes).toEqual([
      expect.objectContaining({ code: "LEASE_UNAVAILABLE", holder: "holder" }),
      expect.objectContaining({ code: "LEASE_UNAVAILABLE", holder: "holder" }),
    ]);
    await at.clock.advance(0);
    expect(await at.waitingNow()).toEqual([]);
  });

  it("give up when their signal aborts, with its reason, and leave nothing behind", async () => {
    const held = await at.fill();
    const aborts = [new AbortController(), new AbortController()];
    const outcomes = aborts.map(({ signal }, index) => at.come(`w${index + 1}`, undefined, { signal }));
    await at.clock.advance(1_000);
    for (const abort of aborts) abort.abort(new Error("enough"));
    for (const outcome of outcomes) await expect(outcome).rejects.toThrow("enough");
    await at.clock.advance(0);
    expect(await at.waitingNow()).toEqual([]);
    await held[0]?.release();
    expect(await at.semaphore("next").tryAcquire()).toBeDefined();
  });

  it("are let go in the end with what onPlace throws, in the turnstile and behind it", async () => {
    await at.fill();
    const onPlace = (): void => {
      throw new Error("no time");
    };
    await expect(at.come("w1", undefined, { onPlace })).rejects.toThrow("no time");
    await at.comeAll(["w2"]);
    const behind = at.come("w3", undefined, { onPlace });
    await at.clock.advance(10);
    await expect(behind).rejects.toThrow("no time");
    expect(await at.waitingNow()).toEqual(["w2"]);
  });

  it("keep their turns while the holders keep theirs for very long", async () => {
    const held = await at.fill();
    await at.comeAll(names(4));
    await at.clock.advance(600_000);
    expect(await at.waitingNow()).toEqual(names(4));
    for (const lease of held) await lease.release();
    await at.clock.advance(120_000);
    expect(at.served).toEqual(["w1", "w2"]);
  });
});

describe("the place in the queue of a fair semaphore", () => {
  it("is told when it changes, 1 for the one in the turnstile, with about when its turn comes", async () => {
    const told: Record<string, PlaceInQueue[]> = {};
    let held = await at.fill();
    for (const round of ["a", "b", "c", "d"]) {
      const owners = [1, 2, 3].map((place) => `${round}${place}`);
      for (const owner of owners) {
        told[owner] = [];
        void at.come(owner, undefined, { onPlace: (place) => told[owner]?.push(place) });
        await at.clock.advance(1);
      }
      for (const owner of owners) {
        await at.clock.advance(4_000);
        await held.shift()?.release();
        while (at.served.at(-1) !== owner) await at.clock.advance(10);
        held = [...held, ...[at.leases.get(owner)].filter((lease) => lease !== undefined)];
      }
    }
    const places = (owner: string): (number | undefined)[] | undefined =>
      told[owner]?.map(({ place }) => place);
    expect([places("a1"), places("a2"), places("a3")]).toEqual([[1], [2, 1], [3, 2, 1]]);
    expect(told.a1?.[0]?.aboutMs).toBeUndefined();
    const [asThird, asSecond, asFirst] = told.d3 ?? [];
    const nearly = (ms: number) => expect.closeTo(ms / 4_000, 0);
    expect((asThird?.aboutMs ?? 0) / 4_000).toEqual(nearly(12_000));
    expect((asSecond?.aboutMs ?? 0) / 4_000).toEqual(nearly(8_000));
    expect((asFirst?.aboutMs ?? 0) / 4_000).toEqual(nearly(4_000));
  });

  it("is shown by inspect, with since when each has waited", async () => {
    const held = await at.fill();
    const start = at.clock.now();
    await at.comeAll(names(3));
    await held[0]?.release();
    await at.clock.advance(2_000);
    const { waiting } = await at.semaphore("observer").inspect();
    expect(waiting).toEqual([
      { owner: "w2", since: start + 10, place: 1 },
      { owner: "w3", since: start + 20, place: 2 },
    ]);
  });

  it("is not looked for by an object that is not fair", async () => {
    await at.fill();
    await at.comeAll(["w1"]);
    at.store.calls.length = 0;
    const state = await new Semaphore(at.client("plain"), "k", { permits: 2 }).inspect();
    expect(state).not.toHaveProperty("waiting");
    expect(at.methods()).toEqual(["query"]);
  });
});

describe("the queue of a fair semaphore is bounded", () => {
  it.each([1, 2, 3])(
    "and refuses one more than %i with how many wait, before it writes",
    async (maxWaiters) => {
      await at.fill();
      await at.comeAll(names(maxWaiters), (owner) => at.semaphore(owner, 2, at.store, maxWaiters));
      expect(await at.waitingNow()).toEqual(names(maxWaiters));
      at.store.calls.length = 0;
      const refused = at.semaphore("late", 2, at.store, maxWaiters).acquire({ waitMs });
      await expect(refused).rejects.toMatchObject({ waiting: maxWaiters, maxWaiters });
      await expect(refused).rejects.toBeInstanceOf(QueueFullError);
      expect(at.methods()).toEqual(["get"]);
    },
  );

  it.each([1, 2])("among the callers of one object too, where %i may wait", async (maxWaiters) => {
    await at.fill();
    const semaphore = at.semaphore("many", 2, at.store, maxWaiters);
    const outcomes = names(maxWaiters + 2).map((owner) => at.come(owner, semaphore));
    await at.clock.advance(1_000);
    expect(await at.waitingNow()).toEqual(names(maxWaiters));
    for (const outcome of outcomes.slice(maxWaiters)) {
      await expect(outcome).rejects.toMatchObject({
        name: "QueueFullError",
        waiting: maxWaiters,
        maxWaiters,
      });
    }
  });

  it("and has room again when somebody has got a permit", async () => {
    const held = await at.fill();
    await at.comeAll(names(2), (owner) => at.semaphore(owner, 2, at.store, 2));
    await held[0]?.release();
    await at.clock.advance(2_000);
    expect(at.served).toEqual(["w1"]);
    void at.come("w3", at.semaphore("w3", 2, at.store, 2));
    await at.clock.advance(10);
    expect(await at.waitingNow()).toEqual(["w2", "w3"]);
  });
});

describe("the number of permits of a fair semaphore", () => {
  it("lowered from 3 to 2 while 3 are held lets the next one in when 1 is left", async () => {
    const wide = at.semaphore("holder", 3);
    const held = [await wide.acquire(), await wide.acquire(), await wide.acquire()];
    await at.comeAll(names(2));
    await held[0]?.release();
    await at.clock.advance(5_000);
    expect(at.served).toEqual([]);
    await held[1]?.release();
    await at.clock.advance(5_000);
    expect(at.served).toEqual(["w1"]);
  });

  it("raised from 2 to 3 gives the added one to the first who knows of it, and to none who knows of 2", async () => {
    await at.fill();
    await at.comeAll(["w1"]);
    await at.comeAll(["w2"], (owner) => at.semaphore(owner, 3));
    await at.clock.advance(5_000);
    expect(at.served).toEqual([]);
    at.leases.clear();
    expect(await at.semaphore("w3", 3).tryAcquire()).toBeUndefined();
    expect(await at.waitingNow()).toEqual(["w1", "w2"]);
  });
});

describe("a reentrant owner of a fair semaphore", () => {
  const options = { owner: "request-7", reentrant: true };

  it("enters its own permit past the queue, here without a request", async () => {
    const semaphore = at.semaphore("a");
    const first = await semaphore.acquire(options);
    await at.semaphore("b").acquire();
    await at.comeAll(["w1"]);
    at.store.calls.length = 0;
    const again = await semaphore.acquire(options);
    expect(at.store.calls).toEqual([]);
    expect(again.token).toBe(first.token);
  });

  it("finds it again in another process, past the queue", async () => {
    const before = await at.semaphore("a").acquire(options);
    await at.semaphore("b").acquire();
    await at.comeAll(["w1"]);
    const after = await at.semaphore("c").acquire(options);
    expect(after.sortKey).toBe(before.sortKey);
    expect(await at.semaphore("c").tryAcquire({ ...options, owner: "request-8" })).toBeUndefined();
  });
});

describe("many callers of one fair semaphore in one process", () => {
  it("get permits in the order of their calls, and in their order among others", async () => {
    const held = await at.fill();
    const shared = at.semaphore("shared");
    for (const name of ["s1", "s2"]) void at.come(name, shared);
    await at.clock.advance(10);
    await at.comeAll(["w3"]);
    for (const name of ["s4", "s5"]) void at.come(name, shared);
    await at.clock.advance(10);
    expect(await at.waitingNow()).toEqual(["s1", "s2", "w3", "s4", "s5"]);
    for (const lease of held) await lease.release();
    for (const name of ["s1", "s2", "w3"]) {
      await at.clock.advance(30_000);
      await at.leases.get(name)?.release();
    }
    await at.clock.advance(30_000);
    expect(at.served).toEqual(["s1", "s2", "w3", "s4", "s5"]);
  });

  it("hand a permit on at once, without waiting for a look", async () => {
    const shared = at.semaphore("shared");
    for (const name of ["a", "b", "w1", "w2"]) void at.come(name, shared);
    await at.clock.advance(5_000);
    expect(at.served).toEqual(["a", "b"]);
    at.store.calls.length = 0;
    await at.leases.get("a")?.release();
    await at.clock.advance(0);
    expect(at.served).toEqual(["a", "b", "w1"]);
    // The release, the permit, the turnstile let go and entered by the next one, and its look.
    expect(at.methods()).toEqual(["update", "update", "update", "update", "query"]);
  });

  it("need no look to know that others of it wait", async () => {
    await at.fill();
    const shared = at.semaphore("shared");
    void at.come("w1", shared);
    await at.clock.advance(10);
    at.store.calls.length = 0;
    void at.come("w2", shared);
    await at.clock.advance(0);
    expect(at.methods()).toEqual(["update", "update"]);
  });
});

describe("bad input for a fair semaphore is refused before anything is sent", () => {
  it.each([
    ["fair", { fair: 1 }],
    ["maxWaiters", { fair: true, maxWaiters: 0 }],
    ["maxWaiters", { fair: true, maxWaiters: 501 }],
    ["maxWaiters", { maxWaiters: 3 }],
  ])("%s", (option, options) => {
    const make = () => new Semaphore(at.client("a"), "k", { permits: 2, ...options } as never);
    expect(make).toThrow(expect.objectContaining({ code: "LEASE_INVALID_OPTIONS", option }));
  });

  it("retry beside fair, onPlace without it or no function", async () => {
    const plain = new Semaphore(at.client("a"), "k", { permits: 2 });
    const onPlace = (): void => undefined;
    await expect(plain.acquire({ onPlace })).rejects.toMatchObject({ option: "onPlace" });
    const fair = at.semaphore("a");
    await expect(fair.acquire({ onPlace: 3 as never })).rejects.toMatchObject({ option: "onPlace" });
    await expect(fair.acquire({ retry: { strategy: "untilExpiry" } })).rejects.toMatchObject({
      option: "retry",
    });
    await expect(fair.tryAcquire({ onPlace } as never)).rejects.toMatchObject({ option: "options.onPlace" });
    expect(at.store.calls).toEqual([]);
  });
});

describe("the hand-overs of a fair semaphore", () => {
  /** Requests of all waiters and holders for one hand-over, once these holds are typical. */
  const requestsPerHandOver = async (waiters: number, everyMs: number): Promise<number> => {
    at = new FairCallers();
    const warmUp = ["u1", "u2", "u3", "u4"];
    let held = await at.fill();
    const handOverTo = async (owners: readonly string[]): Promise<void> => {
      for (const owner of owners) {
        await at.clock.advance(everyMs);
        await held.shift()?.release();
        while (at.served.at(-1) !== owner) await at.clock.advance(10);
        held = [...held, ...[at.leases.get(owner)].filter((lease) => lease !== undefined)];
      }
    };
    const comeQuietly = async (owners: readonly string[]): Promise<void> => {
      for (const owner of owners) {
        void at.come(owner, undefined, { heartbeat: false, leaseDurationMs: 3_600_000 });
        await at.clock.advance(1);
      }
    };
    await comeQuietly(warmUp);
    await handOverTo(warmUp);
    await comeQuietly(names(waiters));
    at.store.calls.length = 0;
    await handOverTo(names(waiters));
    expect(at.served).toEqual([...warmUp, ...names(waiters)]);
    for (const lease of held) await lease.release();
    return at.store.calls.length / waiters;
  };

  it.each([200, 1_000, 4_000])(
    "%i ms apart cost about the same requests with 2, 10 and 50 waiters",
    async (everyMs) => {
      const few = await requestsPerHandOver(2, everyMs);
      const some = await requestsPerHandOver(10, everyMs);
      const many = await requestsPerHandOver(50, everyMs);
      expect(few).toBeLessThan(20);
      // Of 2 waiters, none is left behind the turnstile to look at it during the second hand-over.
      expect(some).toBeLessThan(28);
      // A whole wait of each of the others is a handful of looks, which is what a hand-over has to bear of them.
      expect(many).toBeLessThan(some + 5);
    },
  );
});
