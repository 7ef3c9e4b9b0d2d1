import { getEventListeners } from "node:events";
import {
  type Lease,
  LeaseClient,
  type LeaseEvent,
  LeaseServiceError,
  SlotDoneError,
} from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { beforeEach, describe, expect, it } from "vitest";
import { type GateOptions, RequestGate } from "../../packages/client/src/core/request-gate.ts";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { SlowStore } from "../support/slow-store.ts";

const unbounded: GateOptions = { signal: undefined, withinMs: Number.POSITIVE_INFINITY };

describe("the gate", () => {
  let clock: ManualClock;
  let gate: RequestGate;
  let sent: string[];
  /** What ends the requests under way, in the order in which they were sent. */
  let answers: PromiseWithResolvers<void>[];

  beforeEach(() => {
    clock = new ManualClock();
    clock.freeze(5_000);
    gate = new RequestGate(clock);
    sent = [];
    answers = [];
  });

  const send = (name: string) => (): Promise<void> => {
    sent.push(name);
    const answer = Promise.withResolvers<void>();
    answers.push(answer);
    return answer.promise;
  };
  const pass = (name: string, options = unbounded): Promise<void> => gate.pass(options, send(name));
  const renew = (name: string, deadline: number): Promise<void> =>
    gate.renew(deadline, undefined, send(name));
  const answer = async (index: number): Promise<void> => {
    answers[index]?.resolve();
    await settled();
  };

  it("keeps room for renewals beside any number of other requests", () => {
    for (let index = 0; index < 1_000; index += 1) void pass("acquire");
    expect(sent).toHaveLength(32);
    for (let index = 0; index < 17; index += 1) void renew("renewal", 1);
    expect(sent).toHaveLength(48);
  });

  it("tells a request how much of its time is left after its wait, and gives it up at its end", async () => {
    for (let index = 0; index < 32; index += 1) void pass("acquire");
    let left: number | undefined;
    const inTime = gate.pass({ signal: undefined, withinMs: 3_000 }, async (leftMs) => {
      left = leftMs;
    });
    const late = gate
      .pass({ signal: undefined, withinMs: 2_500 }, send("late"))
      .catch((error: unknown) => error);
    await clock.advance(2_000);
    await answer(0);
    await inTime;
    expect(left).toBe(1_000);
    // The one that was in time has left its place.
    await settled();
    expect(sent).toContain("late");
    const third = gate
      .pass({ signal: undefined, withinMs: 1_500 }, send("third"))
      .catch((error: unknown) => error);
    await clock.advance(1_500);
    expect(await third).toMatchObject({
      code: "LEASE_THROTTLED",
      message: expect.stringContaining("it waited 1500 ms behind"),
    });
    void late;
  });

  it("gives the place of a caller that has gone to the next one", async () => {
    for (let index = 0; index < 32; index += 1) void pass("acquire");
    const gone = new AbortController();
    const first = pass("gone", { signal: gone.signal, withinMs: 60_000 }).catch((error: unknown) => error);
    void pass("next");
    gone.abort(new Error("enough"));
    expect(await first).toEqual(new Error("enough"));
    await answer(0);
    expect(sent.slice(32)).toEqual(["next"]);
  });

  it("sends renewals first, the nearest deadline before the others, then releases, and then the rest in order of arrival", async () => {
    for (let index = 0; index < 48; index += 1) void renew("under way", 0);
    for (const name of ["first", "second"]) void pass(name);
    void gate.giveBack(send("release"));
    for (const [name, deadline] of [
      ["late", 3_000],
      ["soon", 1_000],
      ["later", 4_000],
    ] as const) {
      void renew(name, deadline);
    }
    sent.length = 0;
    for (let index = 0; index < 3; index += 1) await answer(index);
    expect(sent).toEqual(["soon", "late", "later"]);
    for (let index = 3; index < 48; index += 1) await answer(index);
    expect(sent).toEqual(["soon", "late", "later", "release", "first", "second"]);
  });

  describe("a request that waits", () => {
    beforeEach(() => {
      for (let index = 0; index < 32; index += 1) void pass("under way").catch(() => undefined);
      sent.length = 0;
    });

    it("goes on waiting as long as the service serves others, whatever it says", async () => {
      const waiting = [1, 2, 3].map((number) => pass(`waiting ${number}`));
      await clock.advance(9_000);
      await answer(0);
      await clock.advance(9_000);
      answers[1]?.reject(new SlotDoneError("k", "1", "1"));
      await settled();
      await clock.advance(9_000);
      await answer(2);
      expect(sent).toEqual(["waiting 1", "waiting 2", "waiting 3"]);
      for (const index of [32, 33, 34]) await answer(index);
      await Promise.all(waiting);
      expect(clock.pending).toBe(0);
    });
  });
});

describe("acquiring many locks at once", () => {
  const acquireAtOnce = (client: LeaseClient, count: number, options: object) =>
    Promise.allSettled(Array.from({ length: count }, (_, index) => client.acquire(`k${index}`, options)));

  it("counts each lease from when its own request is sent", async () => {
    const clock = new ManualClock();
    const client = new LeaseClient({ store: new SlowStore(clock, 100), clock });
    const remaining: number[] = [];
    const acquired = Promise.all(
      Array.from({ length: 1_000 }, async (_, index) => {
        const lease = await client.acquire(`k${index}`, { leaseDurationMs: 5_000 });
        remaining.push(lease.remainingMs());
      }),
    );
    await clock.advance(11_000);
    await acquired;
    // 32 requests under way at 100 in a second: each is answered within a third of a second.
    expect(Math.min(...remaining)).toBeGreaterThan(4_600);
  });

  it("sends no more once the service has answered none for ten seconds, however many have failed", async () => {
    const clock = new ManualClock();
    const store = new SlowStore(clock, 0);
    let sent = 0;
    store.update = async () => {
      sent += 1;
      await new Promise<void>((resolve) => clock.schedule(resolve, 4_000));
      throw new LeaseServiceError("LEASE_THROTTLED", "too busy");
    };
    const all = acquireAtOnce(new LeaseClient({ store, clock }), 150, {});
    await clock.advance(60_000);
    await all;
    expect(sent).toBe(3 * 32);
  });

  it("respects each caller's own time and signal before anything is sent", async () => {
    const clock = new ManualClock();
    const store = new ScriptedStore();
    store.weather = "hangs";
    const client = new LeaseClient({ store, clock });
    const caller = new AbortController();
    const { signal } = caller;
    const first = acquireAtOnce(client, 32, {});
    const patient = client.acquire("patient", { waitMs: 3_000 }).catch((error: unknown) => error);
    const aborted = client.acquire("aborted", { signal }).catch((error: unknown) => error);
    const sentLater = new AbortController();
    const later = client.acquire("later", { waitMs: 60_000, signal: sentLater.signal });
    await clock.advance(1_000);
    caller.abort(new Error("enough"));
    expect(await aborted).toMatchObject({ name: "LeaseAbortedError", cause: { message: "enough" } });
    await clock.advance(2_000);
    expect(await patient).toMatchObject({
      ...{ code: "LEASE_THROTTLED", retryable: true, mayHaveLanded: false },
      message: expect.stringContaining("was not sent: it waited 3000 ms"),
    });
    expect(store.calls).toHaveLength(32);
    store.weather = undefined;
    await clock.advance(20_000);
    expect((await later).held).toBe(true);
    expect(getEventListeners(sentLater.signal, "abort")).toEqual([]);
    await first;
  });

  it.each([
    ["each by itself", {}],
    ["together", { renewals: together() }],
  ])("loses no lease to renewals that wait behind acquisitions: %s", async (_, options) => {
    const clock = new ManualClock();
    // 2,000 leases of 15 s need 400 writes in a second, and beside them 2,000 wait to be acquired.
    const store = new SlowStore(clock, 420);
    const tally = new Map<string, number>();
    const onEvent = ({ type }: LeaseEvent): void => void tally.set(type, (tally.get(type) ?? 0) + 1);
    const client = new LeaseClient({ store, clock, leaseDurationMs: 15_000, onEvent, ...options });
    const acquired = acquireAtOnce(client, 2_000, { heartbeat: true });
    await clock.advance(60_000);
    expect((await acquired).filter(({ status }) => status === "rejected")).toEqual([]);
    await clock.advance(30_000);
    expect(tally.get("lost")).toBeUndefined();
    expect(tally.get("acquired")).toBe(2_000);
    expect(store.longestQueue).toBe(0);
    expect(store.sent.updateMany > 0).toBe("renewals" in options);
  });
});

describe("giving many leases back at once", () => {
  const hold = async (store: SlowStore, clock: ManualClock, count: number) => {
    const client = new LeaseClient({ store, clock, leaseDurationMs: 600_000 });
    const all = Promise.all(Array.from({ length: count }, (_, index) => client.acquire(`k${index}`)));
    await clock.advance((count / store.writesPerSecond) * 1_000 + 1_000);
    store.longestQueue = 0;
    return { client, leases: await all };
  };
  const outcomeOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => "done",
      (error: unknown) => error,
    );
  const heldIn = async (store: SlowStore, clock: ManualClock): Promise<number> => {
    let held = 0;
    for await (const _ of adminOf(new LeaseClient({ store, clock })).list()) held += 1;
    return held;
  };

  it.each([
    ["releases", (_: LeaseClient, leases: Lease[]) => Promise.all(leases.map((lease) => lease.release()))],
    ["closes a client with", (client: LeaseClient) => client.close()],
  ])(
    "%s all of them, however long that takes, and lets none grow old while it waits",
    async (_, giveBack) => {
      const clock = new ManualClock();
      const store = new SlowStore(clock, 100);
      const { client, leases } = await hold(store, clock, 2_000);
      const outcome = outcomeOf(giveBack(client, leases));
      await clock.advance(21_000);
      expect(await outcome).toBe("done");
      expect(store.longestQueue).toBe(0);
      expect(await heldIn(store, clock)).toBe(0);
    },
  );

  it("gives a close up that the service does not serve, and sends no more than it has room for", async () => {
    const clock = new ManualClock();
    const store = new SlowStore(clock, 100);
    const { client } = await hold(store, clock, 300);
    let sent = 0;
    store.update = (_, { signal }) => {
      sent += 1;
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new LeaseServiceError("LEASE_NO_ANSWER", "silence")));
      });
    };
    const outcome = outcomeOf(client.close());
    await settled();
    expect(sent).toBe(48);
    await clock.advance(10_001);
    const { code, left } = (await outcome) as { readonly code: string; readonly left: readonly unknown[] };
    expect(code).toBe("LEASE_CLOSE_INCOMPLETE");
    expect(left).toHaveLength(300);
    // As many again where a request is given up a moment before those that wait for its room.
    expect(sent).toBeLessThanOrEqual(2 * 48);
  });
});
