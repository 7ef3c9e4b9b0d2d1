import { LeaseServiceError } from "@leasehold/client";
import type { PlaceInQueue } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import {
  clockSkewMs,
  deadForMs,
  FairCallers,
  kill,
  leaseDurationMs,
  names,
} from "../support/fair-callers.ts";

let at: FairCallers;

beforeEach(() => {
  at = new FairCallers();
});

describe("the order of a fair semaphore", () => {
  const visitor = fc.record({
    afterMs: fc.integer({ min: 1, max: 3_000 }),
    holdMs: fc.integer({ min: 1, max: 6_000 }),
    diesInMs: fc.option(fc.integer({ min: 1, max: 9_000 }), { freq: 8, nil: undefined }),
  });

  it("is that of arrival, however many permits there are, however long each is held, whoever dies", async () => {
    let waited = 0;
    let deaths = 0;
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(visitor, { minLength: 5, maxLength: 30 }),
      async (permits, visitors) => {
        at = new FairCallers();
        const living: string[] = [];
        for (const [index, { afterMs, holdMs, diesInMs }] of visitors.entries()) {
          await at.clock.advance(afterMs);
          const owner = `v${index}`;
          const own = at.doomedStore();
          const got = at.come(owner, at.semaphore(owner, permits, own));
          void got.then((lease) => at.clock.schedule(() => void lease.release().catch(() => false), holdMs));
          await at.clock.advance(0);
          if (!at.served.includes(owner)) waited += 1;
          if (diesInMs === undefined) living.push(owner);
          else at.clock.schedule(() => kill(own), diesInMs);
        }
        deaths += visitors.length - living.length;
        const longestMs = at.clock.monotonic() + visitors.length * (leaseDurationMs + deadForMs);
        const isOver = (): boolean => living.every((owner) => at.served.includes(owner));
        while (!isOver() && at.clock.monotonic() < longestMs) await at.clock.advance(1_000);
        expect(at.served.filter((owner) => living.includes(owner))).toEqual(living);
      },
    );
    await fc.assert(property, { seed: 1, numRuns: 40 });
    // The property is empty where nobody has to wait, and where nobody dies.
    expect(waited).toBeGreaterThan(200);
    expect(deaths).toBeGreaterThan(50);
  });
});

describe("a death in the queue of a fair semaphore", () => {
  it("in the turnstile holds the others up for its lease there and no longer", async () => {
    const held = await at.fill();
    const doomed = at.doomedStore();
    await at.comeAll(["dead"], (owner) => at.semaphore(owner, 2, doomed));
    await at.comeAll(["w2"]);
    kill(doomed);
    await held[0]?.release();
    await at.clock.advance(deadForMs);
    expect(at.served).toEqual(["w2"]);
  });

  it("behind the turnstile is passed over", async () => {
    const held = await at.fill();
    const doomed = at.doomedStore();
    await at.comeAll(["w1"]);
    await at.comeAll(["dead"], (owner) => at.semaphore(owner, 2, doomed));
    await at.comeAll(["w3"]);
    kill(doomed);
    for (const lease of held) await lease.release();
    await at.clock.advance(deadForMs);
    expect(at.served).toEqual(["w1", "w3"]);
  });

  it("of all who wait lets the next one in once their time is over, even one that does not wait and is new", async () => {
    const held = await at.fill();
    const doomed = at.doomedStore();
    await at.comeAll(names(3), (owner) => at.semaphore(owner, 2, doomed));
    kill(doomed);
    await held[0]?.release();
    expect(await at.semaphore("early").tryAcquire()).toBeUndefined();
    await at.clock.advance(deadForMs);
    expect(await at.semaphore("late").tryAcquire()).toBeDefined();
  });

  it("between the permit and letting the turnstile go frees both when their leases end", async () => {
    const held = await at.fill();
    const doomed = at.doomedStore();
    await at.comeAll(["dead"], (owner) => at.semaphore(owner, 2, doomed));
    await at.comeAll(["w2", "w3"]);
    doomed.next(undefined, "request lost");
    await held[0]?.release();
    while (!at.served.includes("dead")) await at.clock.advance(10);
    kill(doomed);
    await held[1]?.release();
    await at.clock.advance(deadForMs);
    expect(at.served).toEqual(["dead", "w2"]);
    await at.clock.advance(leaseDurationMs + clockSkewMs);
    expect(at.served).toEqual(["dead", "w2", "w3"]);
  });
});

describe("a freeze in the turnstile of a fair semaphore", () => {
  it("past the lease there puts its waiter at the end, and it gets a permit when its new turn comes", async () => {
    const held = await at.fill();
    const frozen = new ManualClock(at.clock.now());
    const sleeper = at.client("frozen", at.store, frozen);
    const places: number[] = [];
    const onPlace = ({ place }: PlaceInQueue): number => places.push(place);
    void at.come("frozen", new Semaphore(sleeper, "k", { permits: 2, fair: true }), { onPlace });
    await frozen.advance(1);
    await at.comeAll(["w2", "w3"]);
    await at.clock.advance(deadForMs);
    expect(await at.waitingNow()).toEqual(["w2", "w3"]);
    await held[0]?.release();
    frozen.freeze(at.clock.monotonic() - frozen.monotonic());
    await frozen.advance(1_000);
    await at.clock.advance(3_000);
    expect(at.served).toEqual(["w2"]);
    expect(places).toEqual([1, 3]);
    await held[1]?.release();
    await at.clock.advance(10_000);
    await frozen.advance(10_000);
    expect(at.served).toEqual(["w2", "w3"]);
    await at.leases.get("w2")?.release();
    await frozen.advance(5_000);
    expect(at.served).toEqual(["w2", "w3", "frozen"]);
    expect((await at.semaphore("observer").inspect()).held.map(({ owner }) => owner).sort()).toEqual([
      "frozen",
      "w3",
    ]);
  });
});

describe("a fair semaphore whose answers are lost", () => {
  const read = { get: "get", query: "query" } as const;
  /** Lets one read of a store fail. */
  const failOnce = (method: keyof typeof read): void => {
    const original = at.store[method].bind(at.store) as never;
    Object.assign(at.store, {
      [method]: () => {
        Object.assign(at.store, { [method]: original });
        return Promise.reject(new LeaseServiceError("LEASE_NO_ANSWER", "lost"));
      },
    });
  };

  it("of a newcomer's look: one that waits queues, one that does not gets the service's error", async () => {
    failOnce("get");
    await expect(at.semaphore("a").acquire()).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    failOnce("get");
    void at.come("b");
    await at.clock.advance(0);
    expect(at.served).toEqual(["b"]);
    expect(await at.waitingNow()).toEqual([]);
  });

  it.each(["answer lost", "request lost"] as const)(
    "%s: entering the turnstile is found again",
    async (fate) => {
      const held = await at.fill();
      const going = at.come("w1");
      failOnce("query");
      at.store.next(undefined, fate);
      await at.clock.advance(1_000);
      await at.comeAll(["w2"]);
      for (const lease of held) await lease.release();
      await at.clock.advance(5_000);
      await going;
      expect(at.served).toEqual(["w1", "w2"]);
    },
  );

  it.each(["answer lost", "request lost"] as const)("%s: joining its queue is found again", async (fate) => {
    const held = await at.fill();
    await at.comeAll(["w1"]);
    at.store.next(undefined, fate);
    await at.comeAll(["w2"]);
    await at.clock.advance(1_000);
    await at.comeAll(["w3"]);
    expect(await at.waitingNow()).toEqual(["w1", "w2", "w3"]);
    for (const lease of held) await lease.release();
    await at.clock.advance(5_000);
    expect(at.served).toEqual(["w1", "w2"]);
  });

  it.each(["answer lost", "request lost"] as const)(
    "%s: the permit's acquisition is made good",
    async (fate) => {
      const held = await at.fill();
      await at.comeAll(["w1", "w2"]);
      await held[0]?.release();
      at.store.next(fate);
      await at.clock.advance(5_000);
      expect(at.served).toEqual(["w1"]);
      await held[1]?.release();
      await at.clock.advance(5_000);
      expect(at.served).toEqual(["w1", "w2"]);
      expect((await at.semaphore("observer").inspect()).held).toHaveLength(2);
    },
  );

  it("request lost: a turnstile that could not be let go opens when its lease there ends", async () => {
    const held = await at.fill();
    await at.comeAll(["w1", "w2"]);
    await held[0]?.release();
    at.store.next(undefined, "request lost");
    await at.clock.advance(2_000);
    await held[1]?.release();
    expect(at.served).toEqual(["w1"]);
    await at.clock.advance(deadForMs);
    expect(at.served).toEqual(["w1", "w2"]);
  });

  it("for a whole while: nobody gets anything, and the order stands afterwards", async () => {
    const held = await at.fill();
    await at.comeAll(names(2));
    at.store.weather = "request lost";
    await at.clock.advance(3_000);
    at.store.weather = undefined;
    for (const lease of held) await lease.release();
    await at.clock.advance(5_000);
    expect(at.served).toEqual(["w1", "w2"]);
  });

  it("of everything: the wait ends with the service's error", async () => {
    at.store.weather = "throttled";
    const got = at.come("a", undefined, { waitMs: 2_000 });
    await at.clock.advance(4_000);
    await expect(got).rejects.toMatchObject({ code: "LEASE_THROTTLED" });
  });
});
