/** What a fair lock accepts, and how it says what it does not. */
import { InvalidOptionsError, LeaseClient, LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
import { type FairAcquireOptions, FairLock, type FairLockOptions, fair } from "@leasehold/client/fair";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { ScriptedStore } from "../support/scripted-store.ts";

describe("a fair lock's options", () => {
  let clock: ManualClock;
  let store: ScriptedStore;
  let client: LeaseClient;

  beforeEach(() => {
    clock = new ManualClock();
    store = new ScriptedStore();
    client = new LeaseClient({ store, clock, owner: "a" });
  });

  it("let a caller wait for as long as it likes, and tell it its position", async () => {
    const lock = new FairLock(client, "k");
    await lock.acquire();
    const onPosition = vi.fn();
    const waiting = lock.acquire({ waitMs: 5_000, onPosition });
    const over = vi.fn();
    waiting.catch(over);
    await clock.advance(4_999);
    expect(over).not.toHaveBeenCalled();
    await clock.advance(1);
    await expect(waiting).rejects.toBeInstanceOf(LeaseUnavailableError);
    expect(onPosition.mock.calls).toEqual([[{ position: 1, estimatedWaitMs: undefined }]]);
  });

  it("let a slot be acquired once", async () => {
    const lock = new FairLock(client, "k");
    const slot = "2026-11-21T10:00:00.000Z";
    await (await lock.acquire({ slot })).complete();
    await expect(lock.acquire({ slot })).rejects.toBeInstanceOf(SlotDoneError);
  });

  it("let 100 callers wait, or as many as are asked for, up to 500", () => {
    expect(new FairLock(client, "k").maxWaiters).toBe(100);
    for (const maxWaiters of [1, 500])
      expect(new FairLock(client, "k", { maxWaiters }).maxWaiters).toBe(maxWaiters);
  });

  it.each<[string, (lock: FairLock) => Promise<unknown>, string]>([
    [
      "an order of its caller's",
      (lock) => lock.acquire({ order: fair() } as FairAcquireOptions),
      "options.order is an instance of Object; allowed: nothing: the lock has its own",
    ],
    [
      "what it does not know, of itself",
      async () => new FairLock(client, "k", { most: 1 } as FairLockOptions),
      "options.most is not an option here",
    ],
    [
      "what it does not know, of a check-out",
      (lock) => lock.checkOut({ owner: "a", join: false } as { owner: string }),
      "options.join is not an option here",
    ],
  ])("refuse %s, by its name, before anything is sent", async (_, call, message) => {
    const refused = call(new FairLock(client, "k"));
    await expect(refused).rejects.toBeInstanceOf(InvalidOptionsError);
    await expect(refused).rejects.toThrow(message);
    expect(store.calls).toHaveLength(0);
  });
});
