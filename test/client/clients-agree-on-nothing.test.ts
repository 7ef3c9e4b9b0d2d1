/**
 * Clients of one table need not agree on anything: not on whether an answer tells the service's time, nor on clockSkewMs.
 * Whatever one client lacks, no two believe to hold one lock.
 */
import { type Lease, LeaseClient, type LeaseClientOptions, type LeaseEvent } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ScriptedStore } from "../support/scripted-store.ts";

/** Late in a second: answers tell a time that is as much too early as can be. */
const epoch = Date.UTC(2026, 10, 1) + 990;
const hourMs = 3_600_000;
const leaseDurationMs = 30_000;

let clock: ManualClock;
let table: MemoryLeaseStore;

beforeEach(() => {
  clock = new ManualClock(epoch);
  table = new MemoryLeaseStore();
});

interface Machine {
  readonly client: LeaseClient;
  readonly store: ScriptedStore;
  readonly events: LeaseEvent[];
}

/** A client on a machine of its own: its wall clock is off by so much, and `date` says what its answers tell. */
function machine(owner: string, { wallMs = 0, date = () => 0, ...options }: MachineOptions = {}): Machine {
  const store = new ScriptedStore(table);
  store.isLocal = false;
  store.time = () => {
    const offMs = date();
    if (offMs === undefined) return undefined;
    const earliest = Math.floor((epoch + clock.monotonic() + offMs) / 1_000) * 1_000;
    return { earliest, latest: earliest + 1_000 };
  };
  const events: LeaseEvent[] = [];
  const own = {
    now: () => clock.now() + wallMs,
    monotonic: () => clock.monotonic(),
    schedule: (callback: () => void, delayMs: number) => clock.schedule(callback, delayMs),
  };
  const onEvent = (event: LeaseEvent): void => void events.push(event);
  const client = new LeaseClient({ store, clock: own, owner, leaseDurationMs, onEvent, ...options });
  return { client, store, events };
}

interface MachineOptions extends Partial<LeaseClientOptions> {
  readonly wallMs?: number;
  /** How far the Date of the next answer is off; undefined for none. */
  readonly date?: () => number | undefined;
}

const noDate = (): undefined => undefined;
/** Of each answer in its turn; the last is for all that follow. */
const inTurn = (...offsMs: readonly number[]) => {
  let answers = 0;
  return () => offsMs[Math.min(answers++, offsMs.length - 1)];
};

/** Lets time pass while a rival tries, until it has the lock; the holder must not believe in it then. */
async function expectNoTwoBelieve(
  holder: Lease,
  rival: LeaseClient,
  forMs: number,
): Promise<Lease | undefined> {
  for (let passedMs = 0; passedMs < forMs; passedMs += 100) {
    await clock.advance(100);
    const isBelieved = holder.held;
    const taken = await rival.tryAcquire("k");
    if (taken === undefined) continue;
    expect({ isBelieved, heldByBoth: holder.held && taken.held }).toEqual({
      isBelieved: false,
      heldByBoth: false,
    });
    return taken;
  }
  return undefined;
}

describe("a client whose answers have no Date", () => {
  it.each([
    [-35_000, true],
    [-35_000, false],
    [-5_000, false],
    [35_000, false],
  ])(
    "and whose wall clock is off by %i ms is not replaced while it believes; with a heartbeat: %s",
    async (wallMs, heartbeat) => {
      const { client } = machine("a", { wallMs, date: noDate });
      const lease = await client.acquire("k", { heartbeat });
      const taken = await expectNoTwoBelieve(lease, machine("b").client, 2 * leaseDurationMs);
      expect([taken !== undefined, lease.held]).toEqual([!heartbeat, heartbeat]);
    },
  );

  it("does not take a lease that stands, whatever its wall clock says", async () => {
    const lease = await machine("a").client.acquire("k", { heartbeat: true });
    const { client } = machine("b", { wallMs: hourMs, date: noDate });
    expect(await expectNoTwoBelieve(lease, client, 2 * leaseDurationMs)).toBeUndefined();
    expect(lease.held).toBe(true);
  });

  it("hands that over with its lease: the next process holds it once a renewal is confirmed", async () => {
    const handle = (await machine("a", { wallMs: -35_000, date: noDate }).client.acquire("k")).toJSON();
    expect(handle.ownClock).toBe(true);
    const { client } = machine("b");
    await client.inspect("k");
    const adopted = client.adopt(JSON.parse(JSON.stringify(handle)));
    expect(adopted.held).toBe(false);
    await adopted.renew();
    expect(adopted.held).toBe(true);
    expect(await machine("c").client.inspect("k")).not.toHaveProperty("ownClock");
  });

  it("hands it over again and again with that mark, before any renewal is confirmed", async () => {
    const first = (await machine("a", { wallMs: 2 * hourMs, date: noDate }).client.acquire("k")).toJSON();
    const second = machine("b", { wallMs: 2 * hourMs, date: noDate })
      .client.adopt(first)
      .toJSON();
    clock.freeze(2 * leaseDurationMs);
    const { client } = machine("c");
    await client.inspect("k");
    expect(client.adopt(second).held).toBe(false);
  });

  it("keeps that mark in a renewal of another process that has heard no time either", async () => {
    const handle = (await machine("a", { date: noDate }).client.acquire("k")).toJSON();
    const { client, store } = machine("b", { date: noDate });
    await client.adopt(handle).renew();
    expect(store.calls[0]?.requests[0]?.update).toContain("#ownClock = :");
  });

  it.each([-2 * hourMs, 2 * hourMs])(
    "nor a process that releases before it has heard the time, by %i ms off, opens a cooldown early",
    async (wallMs) => {
      const handle = (await machine("a").client.acquire("k", { lockAtLeastForMs: 20_000 })).toJSON();
      await machine("b", { wallMs }).client.adopt(handle).release();
      const rival = machine("c").client;
      await clock.advance(19_000);
      expect(await rival.tryAcquire("k")).toBeUndefined();
    },
  );

  it("tells it once, and a process that lives for one try never takes over", async () => {
    await machine("dead").client.acquire("k");
    for (let hour = 0; hour < 24; hour += 1) {
      clock.freeze(hourMs);
      const { client, events } = machine(`try ${hour}`, { date: noDate });
      expect(await client.tryAcquire("k")).toBeUndefined();
      await client.inspect("k");
      expect(events.filter(({ type }) => type === "timeUnknown")).toEqual([{ type: "timeUnknown" }]);
    }
    const { client, events } = machine("told");
    expect(await client.tryAcquire("k")).toBeDefined();
    expect(events.some(({ type }) => type === "timeUnknown")).toBe(false);
  });
});

describe("a proxy that sends a Date of its own now and then", () => {
  it("ahead ends a lease early, and for its holder alone", async () => {
    const { client } = machine("a", { date: inTurn(0, hourMs, 0) });
    const lease = await client.acquire("k");
    expect(lease.held).toBe(true);
    await client.inspect("k");
    expect(lease.held).toBe(false);
    expect(await machine("b").client.tryAcquire("k")).toBeUndefined();
    expect((await client.acquire("other")).held).toBe(true);
  });
});

describe("clients that have different allowances", () => {
  it.each([
    [10_000, 0],
    [0, 10_000],
    [Number.POSITIVE_INFINITY, 0],
  ])("do not both believe: a holder's is %d ms, a taker's %d ms", async (holders, takers) => {
    const { client } = machine("a", { clockSkewMs: holders, wallMs: -4_000 });
    const lease = await client.acquire("k");
    const taken = await expectNoTwoBelieve(lease, machine("b", { clockSkewMs: takers }).client, 60_000);
    expect(taken).toBeDefined();
  });
});
