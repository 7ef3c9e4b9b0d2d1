import {
  InvalidOptionsError,
  type Lease,
  LeaseClient,
  type LeaseClientOptions,
  type LeaseEvent,
} from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { leaseItemKey } from "@leasehold/client/schema";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import {
  LeaseUpgradeError,
  mostReaders,
  type ReadOptions,
  ReadWriteLock,
  type ReadWriteOptions,
} from "../../packages/client/src/entries/read-write.ts";
import { Semaphore } from "../../packages/client/src/entries/semaphore.ts";
import { adminOf } from "../support/admin.ts";
import { follow } from "../support/follow.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 30_000;
const clockSkewMs = 1_000;

let clock: ManualClock;
let store: ScriptedStore;
let clients = 0;

const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient => {
  clients += 1;
  const client = clients;
  const choice = (client % 16) / 16;
  let tokens = 0;
  const randomness = { token: () => `${owner}-${client}-${++tokens}`, fraction: () => choice };
  return new LeaseClient({ store, clock, owner, leaseDurationMs, clockSkewMs, randomness, ...options });
};
const lockOf = (owner: string, options: Partial<LeaseClientOptions> = {}): ReadWriteLock =>
  new ReadWriteLock(clientOf(owner, options), "k");
const methods = (): string[] => store.calls.map((call) => call.method);
/** How many of each kind the item counts. */
const counted = () => {
  const { readers = 0, writers = 0, intents = 0 } = store.table.peek(leaseItemKey("k", "read-write")) ?? {};
  return { readers, writers, intents };
};

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  clients = 0;
});

describe("requests", () => {
  it("are 1 for a read or a write that is refused, which leaves nothing behind", async () => {
    const writer = await lockOf("w").write();
    store.calls.length = 0;
    expect(await lockOf("r").tryRead()).toBeUndefined();
    expect(methods()).toEqual(["update"]);
    await writer.release();
    await lockOf("r").read();
    store.calls.length = 0;
    expect(await lockOf("w").tryWrite()).toBeUndefined();
    expect(methods()).toEqual(["update"]);
    expect(counted()).toEqual({ readers: 1, writers: 0, intents: 0 });
  });

  it("are 1 more for each sixty of dead readers, at a single attempt too", async () => {
    for (let index = 0; index < 150; index += 1) await lockOf(`r${index}`).read();
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    store.calls.length = 0;
    expect((await lockOf("w").tryWrite())?.held).toBe(true);
    expect(methods()).toEqual(["update", "update", "update", "update"]);
  });

  it("are those of an intent more for a writer that waits: to take it, to keep it, and to give it up", async () => {
    const reader = await lockOf("r").read();
    const retry = { strategy: "fixed", delayMs: 1_000 } as const;
    store.calls.length = 0;
    const writing = follow(lockOf("w").write({ waitMs: 20_000, retry }), clock);
    await clock.advance(0);
    expect(methods()).toEqual(["update", "update"]);
    expect(counted().intents).toBe(1);
    await clock.advance(4_500);
    expect(store.count("update")).toBe(3);
    await reader.release();
    store.calls.length = 0;
    await clock.advance(600);
    expect(writing.value?.held).toBe(true);
    expect(methods()).toEqual(["get", "update", "update"]);
    expect(counted()).toEqual({ readers: 0, writers: 1, intents: 0 });
  });
});

describe("many readers or one writer", () => {
  it("lets neither a reader nor a writer in beside a writer, and says who writes", async () => {
    const writer = await lockOf("w").write();
    const refusals = [
      await lockOf("r")
        .read()
        .catch((error: unknown) => error),
      await lockOf("w2")
        .write()
        .catch((error: unknown) => error),
    ];
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({ code: "LEASE_UNAVAILABLE", holder: "w" });
      expect(String(refusal)).toContain('the write lock of "k" is held by "w"');
    }
    await writer.release();
    expect((await lockOf("r").read()).held).toBe(true);
  });

  it("shows who writes, and not who waited before it", async () => {
    const reader = await lockOf("r").read();
    follow(lockOf("waits").write({ waitMs: 10_000 }), clock);
    await clock.advance(0);
    await reader.release();
    const quick = await lockOf("quick").tryWrite();
    expect((await lockOf("x").inspect()).writer?.token).toBe(quick?.token);
  });
});

describe("waiting", () => {
  it("a writer gets in once the readers of before it end, however many come after it", async () => {
    const first = await lockOf("r").read();
    const writing = follow(lockOf("w").write({ waitMs: 20_000 }), clock);
    await clock.advance(0);
    const lateReaders = Array.from({ length: 40 }, (_, index) => lockOf(`late ${index}`));
    for (const late of lateReaders) {
      expect(await late.tryRead()).toBeUndefined();
      await clock.advance(100);
    }
    expect(writing.value).toBeUndefined();
    await first.release();
    await clock.advance(7_500);
    expect(writing.value?.held).toBe(true);
    expect(writing.at).toBeLessThan(12_000);
  });

  it("a writer that is refused again keeps new readers out by the one intent that it has, and leaves none", async () => {
    const reader = await lockOf("r").read();
    const retry = { strategy: "fixed", delayMs: 1_000 } as const;
    const writing = follow(lockOf("w").write({ waitMs: 10_000, retry }), clock);
    await clock.advance(500);
    await reader.release();
    const { get } = store;
    let quick: Lease | undefined;
    // Between the look that shows room and the write.
    store.get = async (request, call) => {
      const item = await get.call(store, request, call);
      store.get = get;
      quick = await lockOf("quick").tryWrite();
      return item;
    };
    await clock.advance(600);
    expect([quick?.held, writing.value]).toEqual([true, undefined]);
    expect(counted()).toEqual({ readers: 0, writers: 1, intents: 1 });
    await quick?.release();
    await clock.advance(1_000);
    expect(writing.value?.held).toBe(true);
    expect(counted()).toEqual({ readers: 0, writers: 1, intents: 0 });
  });

  it("writers of one client keep new readers out each by an intent of its own", async () => {
    await lockOf("r").read({ heartbeat: true });
    const lock = lockOf("w");
    const writing = [1_000, 20_000].map((waitMs) => follow(lock.write({ waitMs }), clock));
    await clock.advance(0);
    expect(counted().intents).toBe(2);
    await clock.advance(1_000);
    expect(writing.map(({ at }) => at)).toEqual([1_000, undefined]);
    expect(counted().intents).toBe(1);
    expect(await lockOf("late").tryRead()).toBeUndefined();
  });

  it("a writer tells once whom it waits for, and nothing of its intent", async () => {
    const told: LeaseEvent[] = [];
    const reader = await lockOf("r").read();
    const writing = follow(
      lockOf("w", { onEvent: (event) => told.push(event) }).write({ waitMs: 20_000 }),
      clock,
    );
    await clock.advance(8_000);
    await reader.release();
    await clock.advance(8_000);
    await writing.value?.release();
    expect(told).toMatchObject([
      { type: "contended", owner: "w", holder: "r" },
      { type: "acquired", owner: "w", fencingToken: writing.value?.fencingToken },
      { type: "released", owner: "w", fencingToken: writing.value?.fencingToken },
    ]);
  });
});

describe("at the worst moment", () => {
  it("a writer that gives up while it takes its intent leaves none", async () => {
    await lockOf("r").read({ heartbeat: true });
    const abort = new AbortController();
    const { update } = store;
    let writes = 0;
    store.update = async (request, call) => {
      const result = await update.call(store, request, call);
      writes += 1;
      if (writes === 2) abort.abort();
      return result;
    };
    const writing = follow(lockOf("w").write({ waitMs: 100_000, signal: abort.signal }), clock);
    await clock.advance(0);
    expect(writing.error).toMatchObject({ code: "LEASE_ABORTED" });
    expect((await lockOf("late").tryRead())?.held).toBe(true);
  });

  it("a writer whose intent was passed over while it was frozen takes another one, and does not get in beside readers", async () => {
    await lockOf("r").read({ heartbeat: true });
    const frozen = follow(lockOf("w").write({ waitMs: 100_000 }), clock);
    await clock.advance(1_000);
    clock.freeze(leaseDurationMs + clockSkewMs + 1);
    const other = await lockOf("other").read({ heartbeat: true });
    await clock.advance(20_000);
    expect(frozen.value).toBeUndefined();
    expect(await lockOf("late").tryRead()).toBeUndefined();
    await other.release();
    await clock.advance(8_000);
    expect(frozen.value?.held).toBe(true);
  });

  it.each(Array.from({ length: 12 }, (_, step) => step))(
    "a writer frozen in step %i of taking its intent takes another one",
    async (step) => {
      await lockOf("r").read({ heartbeat: true });
      const { update } = store;
      let writes = 0;
      const freezeAfter = (steps: number): void =>
        steps === 0 ? clock.freeze(10_000 + clockSkewMs + 1) : queueMicrotask(() => freezeAfter(steps - 1));
      store.update = async (request, call) => {
        const result = await update.call(store, request, call);
        writes += 1;
        if (writes === 2) freezeAfter(step);
        return result;
      };
      const writing = follow(lockOf("w").write({ waitMs: 100_000 }), clock);
      await settled();
      await clock.advance(1_000);
      expect(await lockOf("late").tryRead()).toBeUndefined();
      expect(writing.at).toBeUndefined();
    },
  );

  it("a writer whose intent is broken while it waits takes another one, and waits for those who came between", async () => {
    const retry = { strategy: "fixed", delayMs: 1_000 } as const;
    const first = await lockOf("r").read();
    const writing = follow(lockOf("w").write({ waitMs: 20_000, retry }), clock);
    await clock.advance(500);
    const { writer } = await lockOf("x").inspect();
    const operator = clientOf("operator");
    const broken = { sortKey: "read-write", token: writer?.token ?? "" };
    expect(await adminOf(operator).forceRelease("k", broken)).toBe(true);
    const second = await lockOf("r2").read();
    await first.release();
    await clock.advance(5_000);
    expect(second.held).toBe(true);
    expect(writing.value).toBeUndefined();
    expect(await lockOf("late").tryRead()).toBeUndefined();
    await second.release();
    await clock.advance(2_000);
    expect(writing.value?.held).toBe(true);
  });

  it("1,000 readers read at once, and not one more", async () => {
    const lock = lockOf("readers");
    for (let count = 0; count < mostReaders; count += 1) await lock.read();
    expect(await lockOf("b").tryRead()).toBeUndefined();
    expect(counted()).toMatchObject({ readers: 1_000 });
  });

  it("100 writers keep new readers out while they wait, and others wait without that", async () => {
    await lockOf("writer").write({ heartbeat: true });
    for (let count = 0; count < 102; count += 1)
      lockOf(`w${count}`)
        .write({ waitMs: 60_000 })
        .catch(() => undefined);
    await clock.advance(1_000);
    expect(counted()).toMatchObject({ writers: 1, intents: 100 });
  });

  it("a writer that waits in vain for the end of a pause of weeks leaves it closed", async () => {
    const dayMs = 86_400_000;
    const operator = new LeaseOperator(clientOf("operator"), { by: "alice" });
    await operator.pause("k", { forMs: 30 * dayMs, reason: "INC-4411" });
    const refused = expect(lockOf("w").write({ waitMs: 5_000 })).rejects.toMatchObject({
      code: "LEASE_UNAVAILABLE",
    });
    await clock.advance(6_000);
    await refused;
    await clock.advance(8 * dayMs);
    store.table.collectGarbage(clock.now());
    expect(await lockOf("r").tryRead()).toBeUndefined();
  });

  it("a writer that dies while it waits keeps readers out for no longer than its intent lasts", async () => {
    await lockOf("r").read({ heartbeat: true });
    const writing = follow(lockOf("w").write({ waitMs: 100_000 }), clock);
    await clock.advance(0);
    const { update } = store;
    // Nothing that the writer sends arrives any more.
    store.update = async (request, call) => {
      if (JSON.stringify(request.values).includes('"w')) return await new Promise(() => undefined);
      return await update.call(store, request, call);
    };
    expect(await lockOf("r2").tryRead()).toBeUndefined();
    await clock.advance(10_000 + clockSkewMs + 1);
    const told: string[] = [];
    const reader = await lockOf("r3", { onEvent: ({ type }) => told.push(type) }).tryRead();
    expect(reader?.held).toBe(true);
    expect(writing.value).toBeUndefined();
    // It has passed the intent, which was no hold.
    expect(told).toEqual(["acquired"]);
  });
});

describe("reentrancy", () => {
  const again = { reentrant: true, owner: "me" } as const;

  it("lets a writer read and write beside its own write lock", async () => {
    const lock = lockOf("a");
    const outer = await lock.write(again);
    const reader = await lock.read(again);
    const inner = await lock.write(again);
    expect([reader.held, inner.held]).toEqual([true, true]);
    await inner.release();
    expect(await lockOf("b").tryRead()).toBeUndefined();
    await outer.release();
    expect(await lockOf("b").tryWrite()).toBeUndefined();
    await reader.release();
    expect((await lockOf("b").tryWrite())?.held).toBe(true);
  });

  it("lets nobody into the intent of a writer that waits, its own owner neither", async () => {
    const reader = await lockOf("r").read();
    const writing = ["a", "b"].map((process) =>
      follow(lockOf(process).write({ ...again, waitMs: 20_000 }), clock),
    );
    await clock.advance(0);
    expect(counted().intents).toBe(2);
    expect((await lockOf("x").inspect()).writer).toMatchObject({ owner: "me", reentrant: false });
    expect(await lockOf("c").tryRead(again)).toBeUndefined();
    await reader.release();
    await clock.advance(8_000);
    expect(writing.map(({ value }) => value?.owner)).toEqual(["me", "me"]);
    expect(counted()).toEqual({ readers: 0, writers: 1, intents: 0 });
  });

  it("refuses a reader that wants to write before anything is sent, and nobody else", async () => {
    const lock = lockOf("a");
    const reader = await lock.read(again);
    store.calls.length = 0;
    const writing = follow(lock.write({ ...again, waitMs: 1_000 }), clock);
    await clock.advance(0);
    expect(writing.error).toBeInstanceOf(LeaseUpgradeError);
    expect(writing.error).toMatchObject({ key: "k", owner: "me" });
    expect(String(writing.error)).toContain('"me" holds a read lock of "k"');
    expect(store.calls).toEqual([]);
    await reader.release();
    expect((await lock.write(again)).held).toBe(true);
  });

  it("lets an owner write that reads under another key, or has the lock or a permit of this one", async () => {
    const client = clientOf("a");
    await new ReadWriteLock(client, "other").read(again);
    await client.acquire("k", again);
    await new Semaphore(client, "k", { permits: 1 }).acquire(again);
    expect((await new ReadWriteLock(client, "k").write(again)).held).toBe(true);
  });

  it("lets an owner wait for another owner that reads in the same client", async () => {
    const lock = lockOf("a");
    const reader = await lock.read({ ...again, owner: "you" });
    const writing = follow(lock.write({ ...again, waitMs: 10_000 }), clock);
    await clock.advance(100);
    await reader.release();
    await clock.advance(9_900);
    expect(writing.value?.held).toBe(true);
  });

  it("lets an owner write once its read lock has ended, released or not", async () => {
    const lock = lockOf("a");
    await lock.read(again);
    clock.freeze(leaseDurationMs + clockSkewMs + 1);
    expect((await lock.write(again)).held).toBe(true);
  });
});

describe("bad input", () => {
  it.each([
    [{ slot: "2026-01-01" }, "options.slot"],
    [{ lockAtLeastForMs: 10 }, "options.lockAtLeastForMs"],
    [{ wait: 10 }, "options.wait"],
    [{ waitMs: -1 }, "waitMs"],
    [{ data: () => 1 }, "data"],
    [{ owner: "" }, "owner"],
    [{ leaseDurationMs: 0 }, "leaseDurationMs"],
    [{ leaseDurationMs: clockSkewMs - 1 }, "leaseDurationMs"],
  ])("refuses %j before anything is sent", async (options, option) => {
    const lock = lockOf("a");
    for (const attempt of [lock.read(options as ReadOptions), lock.write(options as ReadOptions)]) {
      await expect(attempt).rejects.toMatchObject({ code: "LEASE_INVALID_OPTIONS", option });
    }
    expect(store.calls).toEqual([]);
  });

  it("refuses to wait in an attempt that never waits, a work that is no function, and what is no client", async () => {
    const lock = lockOf("a");
    await expect(lock.tryRead({ waitMs: 1 } as object)).rejects.toBeInstanceOf(InvalidOptionsError);
    await expect(lock.tryWrite({ waitMs: 1 } as object)).rejects.toBeInstanceOf(InvalidOptionsError);
    await expect(lock.withRead({}, undefined as never)).rejects.toMatchObject({ option: "work" });
    await expect(lock.withWrite({}, "work" as never)).rejects.toMatchObject({ option: "work" });
    expect(() => new ReadWriteLock({} as LeaseClient, "k")).toThrow(InvalidOptionsError);
    expect(() => new ReadWriteLock(clientOf("a"), "")).toThrow(InvalidOptionsError);
    expect(store.calls).toEqual([]);
  });

  it("refuses by its name an option of the lock that there is not", () => {
    const options = { fair: true } as ReadWriteOptions;
    expect(() => new ReadWriteLock(clientOf("a"), "k", options)).toThrow(
      expect.objectContaining({ code: "LEASE_INVALID_OPTIONS", option: "options.fair" }),
    );
  });
});
