/** What a holder sends after it has acquired, what it believes of the answers, and what it tells. */
import {
  type Lease,
  LeaseClient,
  type LeaseEvent,
  LeaseServiceError,
  type UpdateResult,
} from "@leasehold/client";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { failureOf } from "../support/failure-of.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { Machine } from "../support/wrong-clocks.ts";

const leaseDurationMs = 10_000;
const hourMs = 3_600_000;
const itemKey = { pk: "k", sk: "lease" };

let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];
let client: LeaseClient;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
  client = clientOf();
});

/** A client of this process, or of another one. */
const clientOf = (): LeaseClient =>
  new LeaseClient({
    ...{ store, clock, owner: "me", leaseDurationMs, clockSkewMs: 500 },
    onEvent: (event) => events.push(event),
  });
/** A lease by its handle, in another process. */
const adopted = async (lease: Lease | Promise<Lease>): Promise<Lease> =>
  clientOf().adopt((await lease).toJSON());
const types = (): string[] => events.map(({ type }) => type);
/** Forgets what has happened so far. */
const again = (): void => {
  events.length = 0;
  store.calls.length = 0;
};
/** Answers one write after the other as the test says, and the later ones as they are. */
function answering(...changes: ((result: UpdateResult) => Partial<UpdateResult>)[]): void {
  const update = store.update.bind(store);
  store.update = async (request, call) => {
    const change = changes.shift();
    const result = await update(request, call);
    return { ...result, ...change?.(result) };
  };
}
/** Refuses each write from now on, as the service would not by itself. */
const refusing = (result: Partial<UpdateResult>): void => {
  store.update = async () => ({ applied: false, item: undefined, retried: false, ...result });
};

describe("a renewal", () => {
  it("never brings the end forward that another process has written, whose clock is ahead", async () => {
    // No answer tells the time.
    store.isLocal = false;
    const clientWith = (wallMs: number) =>
      new LeaseClient({ store, clock: new Machine(clock, wallMs), leaseDurationMs });
    const lease = await clientWith(0).acquire("k");
    await clientWith(5_000).adopt(lease.toJSON()).renew();
    const shown = Number(store.table.peek(itemKey)?.expiresAt);
    await lease.renew();
    expect(Number(store.table.peek(itemKey)?.expiresAt)).toBeGreaterThanOrEqual(shown);
  });

  it("confirms the lease from the moment of its request", async () => {
    const lease = await client.acquire("k");
    answering((result) => {
      clock.freeze(1_000);
      return result;
    });
    await lease.renew();
    expect(lease.remainingMs()).toBe(leaseDurationMs - 1_000);
    expect(types()).toEqual(["acquired", "renewed"]);
  });

  it("that another process's has overtaken is repeated beyond its version", async () => {
    const lease = await client.acquire("k");
    answering(({ item }) => ({ item: { ...item, version: 7 } }));
    again();
    await lease.renew();
    expect(store.table.peek(itemKey)).toMatchObject({ version: 8 });
    expect([store.count("update"), types()]).toEqual([2, ["renewed"]]);
  });

  it("that others overtake each time is repeated five times, and fails without an end of the lease", async () => {
    const lease = await client.acquire("k");
    answering(
      ...Array.from({ length: 6 }, () => ({ item }: UpdateResult) => ({ item: { ...item, expiresAt: 1 } })),
    );
    again();
    expect(await failureOf(lease.renew())).toMatchObject({ code: "LEASE_CONFLICT" });
    expect([store.count("update"), lease.held]).toEqual([6, true]);
  });
});

it("a heartbeat ends by the function that its beginning gives, and may begin again", async () => {
  const lease = await client.acquire("k");
  const stop = lease.keepAlive(1_000);
  again();
  await clock.advance(1_100);
  expect(types()).toEqual(["renewed"]);
  stop();
  stop();
  await clock.advance(5_000);
  expect(types()).toEqual(["renewed"]);
  lease.keepAlive(1_000);
  await clock.advance(1_100);
  expect(types()).toEqual(["renewed", "renewed"]);
  expect(await lease.release()).toBe(true);
});

describe("a renewal in a process whose clock the service contradicts", () => {
  let lease: Lease;
  beforeEach(async () => {
    const handle = await client.acquire("k");
    store.isLocal = false;
    lease = await adopted(handle);
    again();
  });
  /** Lets the service's clock be ahead by so much in each answer; as in the last one from then on. */
  function tellAhead(...aheadMs: number[]): void {
    let ahead = 0;
    store.time = () => {
      ahead = aheadMs.shift() ?? ahead;
      return { earliest: clock.now() + ahead, latest: clock.now() + ahead + 1 };
    };
  }

  it("is what the lease begins to protect with: it is not lost before that", async () => {
    expect([lease.held, lease.loss]).toEqual([false, undefined]);
    tellAhead(hourMs);
    await lease.renew();
    expect([lease.held, lease.loss]).toEqual([true, undefined]);
  });

  it("is sent again where the expiry was over by then, and only that is confirmed", async () => {
    tellAhead(hourMs);
    await lease.renew();
    expect([store.count("update"), types()]).toEqual([2, ["skew", "renewed"]]);
    expect(lease.remainingMs()).toBeGreaterThan(leaseDurationMs - 100);
  });

  it("fails after two where that moves on each time, and ends nothing", async () => {
    tellAhead(hourMs, 2 * hourMs);
    expect(await failureOf(lease.renew())).toMatchObject({
      code: "LEASE_NO_ANSWER",
      message: expect.stringContaining("clocks moved apart"),
    });
    expect([store.count("update"), types()]).toEqual([2, ["skew"]]);
  });

  it("is good enough after two where some of the lease is left", async () => {
    tellAhead(hourMs, hourMs + 8_000);
    await lease.renew();
    expect([store.count("update"), types()]).toEqual([2, ["skew", "renewed"]]);
    expect(Math.round(lease.remainingMs() / 1_000)).toBe(2);
  });

  it("is not repeated where its holder was asked to stop", async () => {
    tellAhead(-hourMs);
    answering(({ item }) => ({ item: { ...item, revocation: "please" } }));
    expect(await failureOf(lease.renew())).toMatchObject({ reason: "revoked" });
    expect(store.count("update")).toBe(1);
  });
});

describe("a seat that came by a handle", () => {
  const semaphoreOf = (of: LeaseClient): Semaphore => new Semaphore(of, "k", { permits: 2 });
  const seat = async (): Promise<Lease> => {
    const lease = await semaphoreOf(client).acquire();
    again();
    return lease;
  };
  const adopted = (lease: Lease): Lease => semaphoreOf(clientOf()).adopt(lease.toJSON());
  const methods = (): string[] => store.calls.map(({ method }) => method);

  it("is read once before its first renewal, consistently, and not where this process has acquired it", async () => {
    const own = await seat();
    const lease = adopted(own);
    for (const one of [own, own, lease, lease]) await one.renew();
    expect(methods()).toEqual(["update", "update", "get", "update", "update"]);
    expect(store.calls[2]).toMatchObject({ consistent: true, readsKey: "k" });
  });

  it("is read before it is released, and lost where it is not there", async () => {
    const lease = await seat();
    expect(await adopted(lease).release()).toBe(true);
    expect(methods()).toEqual(["get", "update"]);
    expect(await failureOf(adopted(lease).renew())).toMatchObject({ code: "LEASE_LOST" });
  });
});

/** Freezes its process once, right after so many further looks at it. */
class FreezingClock extends ManualClock {
  looks = 0;

  override now(): number {
    const now = super.now();
    this.looks -= 1;
    if (this.looks === 0) this.freeze(60_000);
    return now;
  }
}

it.each([
  ["renew", 2],
  ["release", 1],
] as const)("a write is not sent where the process froze while it was made: %s", async (how, looks) => {
  const freezing = new FreezingClock();
  const lease = await new LeaseClient({ store, clock: freezing, leaseDurationMs: 600_000 }).acquire("k");
  const isCurrent: boolean[] = [];
  store.update = async (_, call) => {
    isCurrent.push(call.isCurrent());
    throw new LeaseServiceError("LEASE_NO_ANSWER", "lost");
  };
  freezing.looks = looks;
  await failureOf(lease[how]());
  expect(isCurrent).toEqual([false]);
});

describe("for how long a lease was held", () => {
  const heldMs = (): unknown => events.flatMap((event) => (event.type === "released" ? event.heldMs : []));

  it.each([
    [3_000.4, 0, [3_000, 3_000]],
    [0, -60_000, [0, 0]],
  ])(
    "counts from its acquisition, here or in another process: %i ms, wall clock %i ms",
    async (ms, jumpMs, told) => {
      const [here, other] = [await client.acquire("k"), await client.acquire("l")];
      clock.freeze(ms);
      clock.jump(jumpMs);
      await here.release();
      await (await adopted(other)).release();
      expect(heldMs()).toEqual(told);
    },
  );
});

describe("a cooldown", () => {
  const cooldown = (): unknown => {
    const { expiresAt, leaseDurationMs: forMs } = store.table.peek(itemKey) ?? {};
    return forMs === undefined ? undefined : [Number(expiresAt) - clock.now(), forMs];
  };

  it.each([
    ["what is left by the monotonic clock, in the process that has acquired it", false, 2_000, 60_000, 7_000],
    ["what is left by the wall clock, in another one", true, 0, 2_000, 7_000],
    ["all of its time, where another's wall clock was ahead", true, 0, -60_000, 9_000],
    ["no time once it is over", false, 9_000, 0, undefined],
  ])("lasts for %s", async (_, isAdopted, freezeMs, jumpMs, leftMs) => {
    clock.freeze(500);
    const acquired = await client.acquire("k", { lockAtLeastForMs: 9_000, leaseDurationMs: 60_000 });
    const lease = isAdopted ? await adopted(acquired) : acquired;
    clock.freeze(freezeMs);
    clock.jump(jumpMs);
    await lease.release();
    expect(cooldown()).toEqual(leftMs && [leftMs, leftMs]);
  });
});

describe("a release", () => {
  it("is sent once for all who ask at the same time, in their own turn, and again after it failed", async () => {
    const lease = await client.acquire("k");
    again();
    store.next("throttled");
    const releasing = [lease.release(), lease.release()];
    expect(store.calls).toHaveLength(1);
    for (const failure of await Promise.all(releasing.map(failureOf)))
      expect(failure).toMatchObject({ code: "LEASE_THROTTLED" });
    expect(await lease.release()).toBe(true);
    expect([store.calls.length, types()]).toEqual([2, ["released", "released"]]);
  });
});

describe("a release that finds the lease gone", () => {
  const unknown = { code: "LEASE_NO_ANSWER", message: expect.stringContaining("not known") };

  it("was not its holder's to end where its request was repeated, and the item shows the lease all the same", async () => {
    const lease = await client.acquire("k");
    refusing({ item: store.table.peek(itemKey), retried: true });
    expect(await lease.release()).toBe(false);
    expect(events.at(-1)).toMatchObject({ type: "released", confirmed: false });
  });

  it.each([
    ["an answer that was lost", new LeaseServiceError("LEASE_NO_ANSWER", "no"), true],
    ["a refusal", new LeaseServiceError("LEASE_THROTTLED", "no"), false],
  ])("may have landed after a first try that ended with %s: %#", async (_, first, mayHaveLanded) => {
    const lease = await client.acquire("k");
    store.update = () => Promise.reject(first);
    await failureOf(lease.release());
    refusing({ item: { ...itemKey, releasedToken: "other" } });
    const outcome = await lease.release().catch((error: unknown) => error);
    expect(outcome).toEqual(mayHaveLanded ? expect.objectContaining(unknown) : false);
  });

  it("of a seat is not known to have landed where the time of the seat was over before", async () => {
    const lease = await new Semaphore(client, "k", { permits: 1 }).acquire();
    clock.freeze(leaseDurationMs);
    refusing({ retried: true });
    expect(await failureOf(lease.release())).toMatchObject(unknown);
  });
});

it("a release of a seat that finds it gone had landed before, where nobody else could have taken the seat yet, or when its first try began", async () => {
  const seatOf = (key: string): Promise<Lease> => new Semaphore(client, key, { permits: 1 }).acquire();
  const [repeated, again] = [await seatOf("k"), await seatOf("l")];
  store.update = () => Promise.reject(new LeaseServiceError("LEASE_NO_ANSWER", "lost"));
  await failureOf(again.release());
  refusing({ retried: true });
  expect(await repeated.release()).toBe(true);
  expect(events.at(-1)).toMatchObject({ type: "released", confirmed: true });
  clock.freeze(leaseDurationMs - 1);
  expect(await again.release()).toBe(true);
});
