/** One acquisition: what it sends within which bounds, what it makes of the answers, how it is given up. */
import { type AcquireOptions, LeaseClient, type LeaseEvent, type UpdateResult } from "@leasehold/client";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { seatLimits } from "../../packages/client/src/primitives/seats/seat.ts";
import { failureOf } from "../support/failure-of.ts";
import { follow } from "../support/follow.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

type Answer = Partial<UpdateResult>;

const leaseDurationMs = 10_000;
const itemKey = { pk: "k", sk: "lease" };

let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
});

/** A client of the store as it is now. */
const clientOf = (owner: string): LeaseClient =>
  new LeaseClient({ store, clock, owner, leaseDurationMs, onEvent: (event) => events.push(event) });
const acquire = (options: AcquireOptions = {}) => clientOf("me").acquire("k", options);
/** How often a call has written, and what was taken back after it. */
async function writesOf(call: () => Promise<unknown>): Promise<number> {
  store.calls.length = 0;
  await failureOf(call());
  await settled();
  return store.count("update");
}
/** Answers one write after the other as the test says, and the later ones as they are. */
function answering(...changes: (((result: UpdateResult) => Answer | Promise<Answer>) | undefined)[]): void {
  const update = store.update.bind(store);
  store.update = async (request, call) => {
    const change = changes.shift();
    const result = await update(request, call);
    return { ...result, ...(await change?.(result)) };
  };
}
/** The store is far away, and its clock ahead of this machine's, by so much in each answer. */
function beFarAhead(aheadMs: () => number): void {
  store.isLocal = false;
  store.time = () => {
    const earliest = clock.now() + aheadMs();
    return { earliest, latest: earliest + 1 };
  };
}
const tokenNow = (): unknown => store.table.peek(itemKey)?.token;

describe("a try", () => {
  it("is sent in its caller's own turn where there is room", () => {
    void acquire();
    expect(store.calls).toHaveLength(1);
  });

  it.each<[string, AcquireOptions, number]>([
    ["10 s", { leaseDurationMs: 60_000 }, 10_000],
    ["its lease", { leaseDurationMs: 4_000 }, 4_000],
    ["what its caller waits", { leaseDurationMs: 4_000, waitMs: 3_000 }, 3_000],
    ["a second, however little its caller waits", { waitMs: 300 }, 1_000],
  ])("takes no longer than %s", async (_, options, mostMs) => {
    store.weather = "hangs";
    const trying = follow(acquire(options), clock);
    await clock.advance(20_000);
    expect([trying.at, trying.error]).toMatchObject([mostMs, { code: "LEASE_NO_ANSWER" }]);
  });

  it("takes as much less as it has waited for room", async () => {
    const client = clientOf("me");
    store.weather = "hangs";
    for (let index = 0; index < 32; index += 1)
      client.acquire(`k${index}`, { leaseDurationMs: 2_000 }).catch(() => undefined);
    const trying = follow(client.acquire("k", { waitMs: 5_000 }), clock);
    await clock.advance(1_999);
    expect(store.calls).toHaveLength(32);
    await clock.advance(18_001);
    expect(trying.at).toBe(5_000);
  });

  it("is not made where one of those that have to go first is renewed meanwhile", async () => {
    const permits = seatLimits.passedPerWrite + 2;
    const dead = new Semaphore(clientOf("dead"), "k", { permits });
    const [first] = await Promise.all(Array.from({ length: permits }, () => dead.acquire()));
    clock.freeze(leaseDurationMs + 5_000);
    let sent = 0;
    const update = store.update.bind(store);
    store.update = async (request, call) => {
      sent += 1;
      // After the refusal that has shown them all.
      if (sent === 2) {
        store.update = update;
        await dead.adopt(first?.toJSON() as never).renew();
      }
      return await update(request, call);
    };
    const refused = await failureOf(new Semaphore(clientOf("me"), "k", { permits }).acquire({ permits }));
    expect(refused).toMatchObject({ code: "LEASE_UNAVAILABLE", holder: "dead" });
    // The first try, the clearing that is refused, and the renewal.
    expect(store.count("update") - permits).toBe(3);
    const { permits: taken } = store.table.peek({ pk: "k", sk: "semaphore" }) ?? {};
    expect(taken).toBe(permits);
  });
});

describe("a grant", () => {
  it.each([
    ["an earlier try's write", { version: 5 }, 6],
    ["another's write of the same version with another expiry", { expiresAt: 1 }, 2],
  ])("is renewed where the table shows %s", async (_, change, version) => {
    answering(({ item }) => ({ item: { ...item, ...change } }));
    expect(await writesOf(() => acquire())).toBe(2);
    expect(store.table.peek(itemKey)).toMatchObject({ version });
  });

  it("fails where each answer takes longer than the lease, after two renewals, and is taken back", async () => {
    const late = (result: UpdateResult): UpdateResult => {
      clock.freeze(leaseDurationMs);
      return result;
    };
    answering(late, late, late);
    expect(await writesOf(() => acquire())).toBe(4);
    expect(tokenNow()).toBeUndefined();
  });

  it("that has to be renewed at once is taken back where that renewal is throttled", async () => {
    beFarAhead(() => 3_600_000);
    store.next(undefined, "throttled");
    expect(await writesOf(() => acquire())).toBe(3);
    expect(tokenNow()).toBeUndefined();
  });

  it("that has to be renewed at once is taken back where its caller aborts before that", async () => {
    const caller = new AbortController();
    beFarAhead(() => {
      caller.abort(new Error("enough"));
      return 3_600_000;
    });
    expect(await writesOf(() => acquire({ signal: caller.signal }))).toBe(2);
    expect(tokenNow()).toBeUndefined();
  });

  it("is taken as it is when its second renewal shows an expiry that still covers little of the lease", async () => {
    let aheadMs = 0;
    beFarAhead(() => {
      aheadMs += 0.8 * leaseDurationMs;
      return aheadMs;
    });
    expect(await writesOf(() => acquire())).toBe(3);
    expect(store.table.peek(itemKey)).toMatchObject({ version: 3, owner: "me" });
  });

  it("is no grant where the reply does not show it, and is taken back", async () => {
    answering(() => ({ item: undefined }));
    expect(await failureOf(acquire())).toMatchObject({
      code: "LEASE_REQUEST_REJECTED",
      message: expect.stringContaining("does not show the record"),
    });
    await settled();
    expect(tokenNow()).toBeUndefined();
  });
});

describe("an acquisition that is given up", () => {
  it("is taken back by one write where its request was lost, and no lease was to be taken over", async () => {
    await clientOf("other").acquire("k");
    store.next("request lost");
    expect(await writesOf(() => acquire())).toBe(2);
    expect(events.map(({ type }) => type)).not.toContain("error");
  });

  it("and cannot be taken back for a mistake in the program tells so", async () => {
    store.next("answer lost");
    const update = store.update.bind(store);
    store.update = (request, call) => {
      store.update = () => Promise.reject(new TypeError("no such thing"));
      return update(request, call);
    };
    await failureOf(acquire());
    await settled();
    expect(events).toMatchObject([{ type: "error", key: "k", operation: "cancel", owner: "me" }]);
  });

  it("is taken back where a request was repeated: an earlier copy may land yet", async () => {
    await clientOf("other").acquire("k");
    answering(() => ({ retried: true }));
    expect(await writesOf(() => acquire())).toBe(2);
  });
});
