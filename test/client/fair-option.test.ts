import { type AcquireOptions, LeaseClient, LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
import { fair, QueueFullError, type QueuePosition } from "@leasehold/client/fair";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 30_000;
const waitMs = 3_600_000;

describe("acquire with order: fair()", () => {
  let clock: ManualClock;
  let store: ScriptedStore;
  let served: string[];

  beforeEach(() => {
    clock = new ManualClock();
    store = new ScriptedStore();
    served = [];
  });

  const clientOf = (owner: string): LeaseClient =>
    new LeaseClient({ store, clock, owner, leaseDurationMs, clockSkewMs: 500 });
  /** Comes in a process of its own, holds the lock for a second once it has it, and lets it go. */
  const come = async (owner: string, options: AcquireOptions): Promise<void> => {
    const lease = await clientOf(owner).acquire("k", { waitMs, heartbeat: true, ...options });
    served.push(owner);
    await clock.advance(0);
    clock.schedule(() => void lease.release(), 1_000);
  };

  it("is the same lock as without: the two keep each other out", async () => {
    const plain = await clientOf("plain").acquire("k");
    await expect(clientOf("fair").acquire("k", { order: fair() })).rejects.toThrow(LeaseUnavailableError);
    await plain.release();
    await clientOf("fair").acquire("k", { order: fair() });
    expect(await clientOf("plain").tryAcquire("k")).toBeUndefined();
    expect((await clientOf("observer").inspect("k"))?.owner).toBe("fair");
  });

  it("lets callers in as they came, and one that does not ask for it past the queue", async () => {
    const first = await clientOf("first").acquire("k", { heartbeat: true });
    for (const owner of ["a", "b", "c"]) {
      void come(owner, { order: fair() });
      await clock.advance(10);
    }
    await first.release();
    const plain = await clientOf("plain").acquire("k");
    await plain.release();
    await clock.advance(60_000);
    expect(served).toEqual(["a", "b", "c"]);
  });

  it("costs 1 request to acquire and 1 to release while nobody waits", async () => {
    await (await clientOf("a").acquire("k", { order: fair(), waitMs })).release();
    expect(store.calls).toHaveLength(2);
  });

  it("tryAcquire with fair is refused while others wait, though nobody holds the lock", async () => {
    const first = await clientOf("first").acquire("k");
    const giveUp = new AbortController();
    const waiting = clientOf("a").acquire("k", { order: fair(), waitMs, signal: giveUp.signal });
    waiting.catch(() => undefined);
    await clock.advance(10);
    await first.release();
    expect(await clientOf("b").tryAcquire("k", { order: fair() })).toBeUndefined();
    await clock.advance(2_000);
    expect((await waiting).held).toBe(true);
  });

  it("refuses beyond maxWaiters and says how many wait; onPosition tells the place", async () => {
    await clientOf("first").acquire("k", { heartbeat: true });
    const places: QueuePosition[] = [];
    const onPosition = (place: QueuePosition): void => void places.push(place);
    void come("a", { order: fair({ maxWaiters: 1, onPosition }) });
    await clock.advance(10);
    const refusal = clientOf("b").acquire("k", { order: fair({ maxWaiters: 1 }), waitMs });
    await expect(refusal).rejects.toThrow(QueueFullError);
    await expect(refusal).rejects.toMatchObject({ waiting: 1, maxWaiters: 1 });
    expect(places).toEqual([{ position: 1, estimatedWaitMs: undefined }]);
  });

  it("a slot that was done while its caller waited is refused, and its place is given up", async () => {
    const slot = "2026-11-21T10:00:00.000Z";
    const runner = await clientOf("runner").acquire("k", { slot, order: fair() });
    const second = clientOf("second").acquire("k", { slot, order: fair(), waitMs });
    second.catch(() => undefined);
    await clock.advance(10);
    await runner.complete();
    await clock.advance(5_000);
    await expect(second).rejects.toThrow(SlotDoneError);
    expect(await clientOf("later").tryAcquire("k", { order: fair() })).toBeDefined();
  });

  it("callers of one client share what they see, whether by acquire or by withLease", async () => {
    const client = clientOf("one");
    const first = await client.acquire("k", { heartbeat: true });
    const work = ["a", "b", "c"].map((owner) =>
      client.withLease("k", { order: fair(), waitMs, owner }, () => void served.push(owner)),
    );
    await clock.advance(100);
    store.calls.length = 0;
    await first.release();
    await clock.advance(2_000);
    await Promise.all(work);
    expect(served).toEqual(["a", "b", "c"]);
    expect(store.count("get")).toBeLessThanOrEqual(8);
  });

  it("lets a reentrant owner past the queue while its lease lasts, and then only in its turn", async () => {
    const again = { order: fair(), owner: "x", reentrant: true, leaseDurationMs: 5_000 } as const;
    await clientOf("x").acquire("k", again);
    void come("a", { order: fair() });
    await clock.advance(1_000);
    expect(await clientOf("x").tryAcquire("k", again)).toBeDefined();
    store.weather = "throttled";
    await clock.advance(5_400);
    store.weather = undefined;
    expect(
      await clientOf("x").tryAcquire("k", { order: fair(), owner: "x", reentrant: true }),
    ).toBeUndefined();
    await clock.advance(20_000);
    expect(served).toEqual(["a"]);
  });

  it.each<[() => AcquireOptions, string]>([
    [() => ({ order: fair({ maxWaiters: 0 }) }), "maxWaiters"],
    [() => ({ order: fair({ maxWaiters: 501 }) }), "maxWaiters"],
    [() => ({ order: fair({ onPosition: 1 as never }) }), "onPosition"],
    [() => ({ order: fair({ onPlace: () => undefined } as object) }), "options.onPlace"],
    [() => ({ order: 1 as never }), "order"],
    [() => ({ order: {} as never }), "order"],
    [() => ({ order: fair(), retry: { strategy: "fixed", delayMs: 5 } }), "retry"],
    [() => ({ order: fair(), data: "x".repeat(300_000) }), "data"],
    [() => ({ ordr: fair() }) as object, "options.ordr"],
  ])("refuses bad options before it sends anything: %s", async (options, option) => {
    const call = async (): Promise<unknown> => await clientOf("a").acquire("k", options());
    await expect(call()).rejects.toMatchObject({
      code: "LEASE_INVALID_OPTIONS",
      message: expect.stringContaining(option),
    });
    expect(store.calls).toHaveLength(0);
  });
});
