/** An owner's calls share what it holds, win what it lacks once, and never wait for each other without end. */
import { LeaseUnavailableError } from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import type { HeldLease } from "../../packages/client/src/core/held-lease.ts";
import { Sharing } from "../../packages/client/src/core/sharing.ts";

let clock: ManualClock;
let leases: Sharing;

beforeEach(() => {
  clock = new ManualClock();
  leases = new Sharing(clock);
});

/** A lease that counts who shares it. */
class Lease {
  holds = 1;
  leftMs = 1_000;
  /** How often its time was looked at. */
  looks = 0;
  readonly #onEnd: (() => void)[] = [];

  remainingMs(): number {
    this.looks += 1;
    return this.leftMs;
  }

  retain(): void {
    this.holds += 1;
  }

  async suit(): Promise<void> {}

  async release(completed: boolean): Promise<void> {
    this.holds -= completed ? Number.NaN : 1;
  }

  onEnd(listener: () => void): void {
    this.#onEnd.push(listener);
  }

  end(): void {
    this.leftMs = 0;
    for (const listener of this.#onEnd) listener();
  }
}

const newLease = () => new Lease() as Lease & HeldLease;
const wish = { key: "k", sortKey: "lease", owner: "me", slot: undefined };
const patience = { waitMs: 0, signal: undefined };
const share = (won: HeldLease, more: Partial<typeof wish & { shareKey: string }> = {}) =>
  leases.share({ ...wish, ...more }, patience, async () => won);
const never = async (): Promise<never> => {
  throw new Error("won a second time");
};

describe("a lease that an owner holds", () => {
  it("is shared, held once more each time", async () => {
    const lease = newLease();
    expect(await share(lease)).toBe(lease);
    expect(lease.holds).toBe(1);
    expect(await leases.share(wish, patience, never)).toBe(lease);
    expect(lease.holds).toBe(2);
  });

  it.each([
    ["key", { key: "l" }],
    ["sort key", { sortKey: "semaphore" }],
    ["kind of seat", { shareKey: "write" }],
    ["owner", { owner: "you" }],
  ])("is not shared with another %s", async (_, more) => {
    await share(newLease());
    const other = newLease();
    expect(await share(other, more)).toBe(other);
    expect(await leases.share({ ...wish, ...more }, patience, never)).toBe(other);
  });

  it("is won anew once its time is over, and the end of the old one does not forget the new one", async () => {
    const [old, young] = [newLease(), newLease()];
    await share(old);
    old.leftMs = 0;
    expect(await share(young)).toBe(young);
    old.end();
    expect(await leases.share(wish, patience, never)).toBe(young);
    young.end();
    const next = newLease();
    expect(await share(next)).toBe(next);
  });

  it("is forgotten when it ends", async () => {
    const lease = newLease();
    await share(lease);
    lease.end();
    lease.looks = 0;
    await share(newLease());
    expect(lease.looks).toBe(0);
  });
});

describe("calls at the same time", () => {
  it("win one lease together", async () => {
    const winning = Promise.withResolvers<HeldLease>();
    const first = leases.share(wish, patience, () => winning.promise);
    const others = [leases.share(wish, patience, never), leases.share(wish, patience, never)];
    const lease = newLease();
    winning.resolve(lease);
    expect(await Promise.all([first, ...others])).toEqual([lease, lease, lease]);
    expect(lease.holds).toBe(3);
    expect(clock.pending).toBe(0);
  });

  it("do not fail with one that fails: the next one wins, and those behind it wait for that one", async () => {
    const [lost, winning] = [Promise.withResolvers<HeldLease>(), Promise.withResolvers<HeldLease>()];
    const first = leases.share(wish, patience, () => lost.promise);
    const second = leases.share(wish, patience, () => winning.promise);
    const third = leases.share(wish, patience, never);
    const reason = new Error("no");
    lost.reject(reason);
    await expect(first).rejects.toBe(reason);
    await settled();
    const lease = newLease();
    winning.resolve(lease);
    expect(await Promise.all([second, third])).toEqual([lease, lease]);
  });

  it("wait no longer than a call may take, or than they are ready to wait where that is longer", async () => {
    clock.freeze(5_000);
    void leases.share(wish, patience, () => new Promise<HeldLease>(() => undefined));
    const outcomes: unknown[] = [];
    for (const waitMs of [0, 20_000])
      void leases.share(wish, { waitMs, signal: undefined }, never).catch((error) => outcomes.push(error));
    await clock.advance(9_999);
    expect(outcomes).toEqual([]);
    await clock.advance(1);
    expect(outcomes).toEqual([expect.any(LeaseUnavailableError)]);
    await clock.advance(9_999);
    expect(outcomes).toHaveLength(1);
    await clock.advance(1);
    expect(outcomes).toHaveLength(2);
  });

  /** The first wins for all of them, the second would win next and for ever, and the third waits: how it fails. */
  function threeInTurn() {
    const first = Promise.withResolvers<HeldLease>();
    void leases.share(wish, patience, () => first.promise).catch(() => undefined);
    void leases.share(wish, patience, () => new Promise<HeldLease>(() => undefined)).catch(() => undefined);
    const outcomes: unknown[] = [];
    void leases.share(wish, patience, never).catch((error) => outcomes.push(error));
    return { first, outcomes };
  }

  it("have one time for all that they wait for", async () => {
    const { first, outcomes } = threeInTurn();
    await clock.advance(6_000);
    first.reject(new Error("no"));
    await clock.advance(3_999);
    expect(outcomes).toEqual([]);
    await clock.advance(1);
    expect(outcomes).toEqual([expect.any(LeaseUnavailableError)]);
  });

  it("do not begin another wait when their time is over", async () => {
    const { first, outcomes } = threeInTurn();
    clock.freeze(10_000);
    first.reject(new Error("no"));
    await settled();
    expect(outcomes).toEqual([expect.any(LeaseUnavailableError)]);
  });
});

describe("several locks", () => {
  const [a, b] = [
    { ...wish, key: "a" },
    { ...wish, key: "b" },
  ];

  it("are given in the order of the wishes, the missing ones won together", async () => {
    const [held, won] = [newLease(), newLease()];
    await leases.share(b, patience, async () => held);
    const asked: unknown[] = [];
    const got = await leases.shareAll([a, b], patience, async (missing) => {
      asked.push(missing);
      return [won];
    });
    expect([got[0] === won, got[1] === held, asked]).toEqual([true, true, [[a]]]);
    expect([held.holds, won.holds]).toEqual([2, 1]);
    expect(await leases.shareAll([a, b], patience, never)).toHaveLength(2);
  });

  it("stay retained by nobody where the missing ones were not won, which are free to win then", async () => {
    const held = newLease();
    await leases.share(b, patience, async () => held);
    const reason = new Error("no");
    await expect(leases.shareAll([a, b], patience, () => Promise.reject(reason))).rejects.toBe(reason);
    expect(held.holds).toBe(1);
    const won = newLease();
    expect(await leases.share(a, patience, async () => won)).toBe(won);
  });

  it("are waited for all together", async () => {
    const calls = [Promise.withResolvers<HeldLease>(), Promise.withResolvers<HeldLease>()];
    const winning = [a, b].map((one, index) => {
      const { promise } = calls[index] as PromiseWithResolvers<HeldLease>;
      return leases.share(one, patience, () => promise);
    });
    const both = leases.shareAll([a, b], patience, never);
    for (const call of calls) {
      call.resolve(newLease());
      await settled();
    }
    expect(await both).toEqual(await Promise.all(winning));
  });
});
