import * as crypto from "node:crypto";
import { LeaseClient } from "@leasehold/client";
import { acquireAll } from "@leasehold/client/group";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { systemRandomness } from "../../packages/client/src/base/clock.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

vi.mock("node:crypto", async (original) => {
  const actual = await original<typeof crypto>();
  return { ...actual, randomUUID: vi.fn(actual.randomUUID) };
});

let store: ScriptedStore;
let clock: ManualClock;

beforeEach(() => {
  store = new ScriptedStore();
  clock = new ManualClock();
});

/** One of several clones of a process: each draws the same tokens as the others, but runs under an owner of its own. */
function cloneOf(owner: string): LeaseClient {
  let drawn = 0;
  const randomness = {
    token: () => {
      drawn += 1;
      return `token-${drawn}`;
    },
    fraction: () => 0,
  };
  return new LeaseClient({ store, clock, owner, randomness });
}

describe("of two clones that draw the same token", () => {
  it("one has the lock, and the other is refused", async () => {
    const lease = await cloneOf("a").acquire("k");
    await expect(cloneOf("b").acquire("k")).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE", holder: "a" });
    expect(await lease.release()).toBe(true);
  });

  it("one has the lock where the other would take it over", async () => {
    const first = cloneOf("a");
    const second = cloneOf("b");
    await new LeaseClient({ store, clock, owner: "dead" }).acquire("k");
    await clock.advance(31_001);
    const lease = await first.acquire("k");
    await expect(second.acquire("k")).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE", holder: "a" });
    expect(lease.held).toBe(true);
  });

  it("one has a permit, and the other is refused", async () => {
    await new Semaphore(cloneOf("a"), "s", { permits: 1 }).acquire();
    await expect(new Semaphore(cloneOf("b"), "s", { permits: 1 }).acquire()).rejects.toMatchObject({
      code: "LEASE_UNAVAILABLE",
    });
  });

  it("one has several locks, and the other is refused", async () => {
    await acquireAll(cloneOf("a"), ["k", "l"]);
    await expect(acquireAll(cloneOf("b"), ["k", "l"])).rejects.toMatchObject({
      code: "LEASE_UNAVAILABLE",
      holder: "a",
    });
  });
});

describe("the default owner", () => {
  /** One more clone of a process that has been stored: what it draws from then on is its own. */
  const restored = (name: string, options: { readonly isUsed: boolean }) => {
    let drawn = 0;
    let isRestored = false;
    const randomness = {
      token: () => `${isRestored ? name : "snapshot"}-${++drawn}-0000000`,
      fraction: () => 0,
    };
    const own = new ManualClock();
    const client = new LeaseClient({ store: new ScriptedStore(), clock: own, randomness });
    const ownerOf = async (key: string): Promise<string> => (await client.acquire(key)).owner;
    return {
      ownerOf,
      restore: async () => {
        if (options.isUsed) await ownerOf("before");
        isRestored = true;
      },
      client,
      clock: own,
    };
  };

  it("of the clones of a snapshot that was taken before it was used differs", async () => {
    const owners: string[] = [];
    for (const name of ["one", "two"]) {
      const clone = restored(name, { isUsed: false });
      await clone.restore();
      owners.push(await clone.ownerOf("k"));
    }
    expect(new Set(owners).size).toBe(2);
  });

  it("of the clones of a snapshot that was taken later differs once their wall clock has jumped", async () => {
    const owners: string[] = [];
    for (const name of ["one", "two"]) {
      const clone = restored(name, { isUsed: true });
      await clone.restore();
      clone.clock.jump(60_000);
      owners.push(
        await clone.ownerOf("k"),
        (await new Semaphore(clone.client, "s", { permits: 1 }).acquire()).owner,
      );
    }
    expect(new Set(owners).size).toBe(2);
  });

  it("stays the same while nothing happens", async () => {
    const process = restored("one", { isUsed: true });
    await process.restore();
    const owners = [await process.ownerOf("a"), await process.ownerOf("b")];
    await process.clock.advance(3_600_000);
    owners.push(await process.ownerOf("c"));
    expect(new Set(owners).size).toBe(1);
  });
});

it("a token is drawn without what was drawn in advance, which every clone of a snapshot has alike", () => {
  const draw = vi.mocked(crypto.randomUUID);
  draw.mockClear();
  const tokens = new Set(Array.from({ length: 100 }, () => systemRandomness.token()));
  expect(tokens.size).toBe(100);
  expect(draw).toHaveBeenCalledTimes(100);
  for (const call of draw.mock.calls) expect(call).toEqual([{ disableEntropyCache: true }]);
});
