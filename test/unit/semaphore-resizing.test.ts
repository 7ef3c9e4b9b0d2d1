import { type Lease, LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { Semaphore } from "../../packages/client/src/semaphore/index.ts";
import { type Holding, Survey } from "../../packages/client/src/semaphore/survey.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { watchedMs } from "../support/watching.ts";

const leaseDurationMs = 30_000;
const clockSkewMs = 1_000;

let clock: ManualClock;
let store: ScriptedStore;

const semaphoreOf = (owner: string, permits: number, strict = false, fraction = 0): Semaphore => {
  let tokens = 0;
  const randomness = { token: () => `${owner}-${++tokens}`, fraction: () => fraction };
  const client = new LeaseClient({ store, clock, owner, leaseDurationMs, clockSkewMs, randomness });
  return new Semaphore(client, "k", { permits, strict });
};

/** Holds five permits of five: lease `i` has permit `i`. */
const holdFive = async (): Promise<readonly Lease[]> => {
  const semaphore = semaphoreOf("old", 5);
  const leases: Lease[] = [];
  for (let permit = 0; permit < 5; permit += 1) leases.push(await semaphore.acquire());
  store.calls.length = 0;
  return leases;
};
const release = async (leases: readonly Lease[], ...permits: readonly number[]): Promise<void> => {
  for (const permit of permits) await leases[permit]?.release();
};

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

describe("lowering N from 5 to 3 while 5 permits are out", () => {
  it.each([
    ["from the top", [4, 3, 2]],
    ["from the bottom", [0, 1, 2]],
    ["from the middle", [2, 1, 3]],
    ["at both ends", [0, 4, 2]],
  ])("refuses a strict caller until at most 2 of all are held, released %s", async (_, [a, b, c] = []) => {
    const leases = await holdFive();
    const lowered = semaphoreOf("new", 3, true);
    for (const permit of [a, b]) {
      await release(leases, permit ?? 0);
      expect(await lowered.tryAcquire()).toBeUndefined();
    }
    await release(leases, c ?? 0);
    expect((await lowered.tryAcquire())?.held).toBe(true);
    expect(await lowered.tryAcquire()).toBeUndefined();
    expect((await lowered.inspect()).held).toHaveLength(3);
  });

  it("lets a caller that is not strict overlook those beyond its number until it has met a refusal", async () => {
    const leases = await holdFive();
    await release(leases, 0);
    const lowered = semaphoreOf("new", 3);
    // The one request of an attempt that nobody contends sees one permit.
    expect((await lowered.tryAcquire())?.held).toBe(true);
    expect(await lowered.tryAcquire()).toBeUndefined();
    await release(leases, 1);
    // By now it knows of those beyond its number, and looks first.
    expect(await lowered.tryAcquire()).toBeUndefined();
  });

  it("costs a strict caller one read, once, and none after a look that found nobody beyond", async () => {
    const lowered = semaphoreOf("new", 3, true);
    const lease = await lowered.acquire();
    expect(store.calls.map(({ method }) => method)).toEqual(["query", "update"]);
    expect(store.calls[0]?.consistent).toBe(true);
    await lease.release();
    store.calls.length = 0;
    await lowered.acquire();
    expect(store.calls.map(({ method }) => method)).toEqual(["update"]);
  });

  it("says when the next one can be let in: when the third of five has ended", async () => {
    const semaphore = semaphoreOf("old", 5);
    for (const seconds of [50, 20, 40, 10, 30]) {
      await semaphore.acquire({ owner: `${seconds} s`, leaseDurationMs: seconds * 1000 });
    }
    await expect(semaphoreOf("new", 3).acquire()).rejects.toMatchObject({
      holder: "30 s",
      retryAfterMs: watchedMs(30_000),
    });
  });

  it("counts a dead holder beyond N until its lease and the allowance are over, and no longer", async () => {
    const leases = await holdFive();
    await release(leases, 0, 1, 2);
    const lowered = semaphoreOf("new", 3, true);
    expect((await lowered.tryAcquire())?.held).toBe(true);
    expect(await lowered.tryAcquire()).toBeUndefined();
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    expect((await lowered.tryAcquire())?.held).toBe(true);
    expect((await lowered.tryAcquire())?.held).toBe(true);
    expect((await lowered.tryAcquire())?.held).toBe(true);
    expect(await lowered.tryAcquire()).toBeUndefined();
  });

  it("never lets a caller take a permit beyond its own number, not even its own of before", async () => {
    const leases = await holdFive();
    await release(leases, 0, 1, 2, 3);
    const lowered = semaphoreOf("old", 3, true);
    const lease = await lowered.acquire({ owner: "old", reentrant: true });
    expect(["permit#000", "permit#001"]).toContain(lease.toJSON().sortKey);
    expect(leases[4]?.held).toBe(true);
  });

  it("lets waiting callers in as the number falls, with consistent reads while it counts", async () => {
    const leases = await holdFive();
    const lowered = semaphoreOf("new", 3, true);
    let got: Lease | undefined;
    void lowered.acquire({ waitMs: 25_000 }).then((lease) => {
      got = lease;
    });
    await release(leases, 4, 0);
    await clock.advance(5_000);
    expect(got).toBeUndefined();
    expect(store.calls.filter(({ method }) => method === "query").every((call) => call.consistent)).toBe(
      true,
    );
    await release(leases, 1);
    await clock.advance(8_000);
    expect(got?.held).toBe(true);
  });
});

describe("raising N from 3 to 5 while 3 permits are out", () => {
  it("gives the added permits at once, and none beyond them", async () => {
    const before = semaphoreOf("old", 3);
    for (let count = 0; count < 3; count += 1) await before.acquire();
    const raised = semaphoreOf("new", 5, false, 0.99);
    expect((await raised.tryAcquire())?.toJSON().sortKey).toBe("permit#004");
    expect((await raised.tryAcquire())?.toJSON().sortKey).toBe("permit#003");
    expect(await raised.tryAcquire()).toBeUndefined();
    expect(await before.tryAcquire()).toBeUndefined();
  });
});

describe("two callers with different N at the same time", () => {
  it("never hold more than the larger N together", async () => {
    const [small, large] = [semaphoreOf("small", 2), semaphoreOf("large", 4, false, 0.5)];
    for (let round = 0; round < 4; round += 1) {
      await small.tryAcquire();
      await large.tryAcquire();
    }
    const { held } = await large.inspect();
    expect(held).toHaveLength(4);
    expect(held.filter(({ owner }) => owner === "small").length).toBeLessThanOrEqual(2);
  });

  it("each show their own number", async () => {
    const large = semaphoreOf("large", 4);
    for (let count = 0; count < 3; count += 1) await large.acquire();
    expect(await large.inspect()).toMatchObject({ permits: 4, free: 1 });
    expect(await semaphoreOf("small", 2).inspect()).toMatchObject({ permits: 2, free: 0 });
  });
});

describe("the rule by which permits are taken", () => {
  const holding = fc.record({ permit: fc.nat(11), isOver: fc.boolean() });
  const holdings = fc.uniqueArray(holding, { selector: ({ permit }) => permit });
  const surveyOf = (permits: number, all: readonly { permit: number; isOver: boolean }[]): Survey =>
    new Survey(
      permits,
      all.map(
        ({ permit, isOver }): Holding => ({
          permit,
          owner: "x",
          expiresAt: 0,
          inCooldown: false,
          reentrant: false,
          claimableAt: isOver ? 0 : 100,
        }),
      ),
    );

  it("offers a permit exactly where fewer than N live holders are left, and only below N", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), holdings, (permits, all) => {
        const { free, over } = surveyOf(permits, all).candidates(50);
        const live = all.filter(({ isOver }) => !isOver);
        expect(free.length + over.length > 0).toBe(live.length < permits);
        for (const permit of [...free, ...over]) expect(permit).toBeLessThan(permits);
        for (const permit of free) expect(all.some((one) => one.permit === permit)).toBe(false);
      }),
      { seed: 4 },
    );
  });

  it("keeps all holders within N though every caller acts on a look of some time ago", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("look" as const), caller: fc.nat(3) }),
      fc.record({ kind: fc.constant("take" as const), caller: fc.nat(3), choice: fc.nat(50) }),
      fc.record({ kind: fc.constant("end" as const), choice: fc.nat(50) }),
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.uniqueArray(fc.nat(9), { maxLength: 9 }),
        fc.array(step, { maxLength: 60 }),
        (permits, before, steps) => {
          const held = new Set(before);
          const old = new Set(before);
          const looks = new Map<number, Survey>();
          for (const one of steps) {
            if (one.kind === "look") {
              looks.set(
                one.caller,
                surveyOf(
                  permits,
                  [...held].map((permit) => ({ permit, isOver: false })),
                ),
              );
            } else if (one.kind === "take") {
              const free = looks.get(one.caller)?.candidates(50).free ?? [];
              const permit = free[one.choice % Math.max(1, free.length)];
              // The permit's own condition: nobody holds it.
              if (permit !== undefined && !held.has(permit)) held.add(permit);
            } else {
              const permit = [...held][one.choice % Math.max(1, held.size)];
              if (permit !== undefined) held.delete(permit);
              if (permit !== undefined) old.delete(permit);
            }
            expect(held.size).toBeLessThanOrEqual(Math.max(permits, old.size));
          }
        },
      ),
      { seed: 4, numRuns: 1_000 },
    );
  });
});
