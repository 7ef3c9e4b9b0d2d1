/** How a leadership and a campaign end, and what is told of it. */
import { LeaseClient, LeaseLostError } from "@leasehold/client";
import { limits } from "@leasehold/client/schema";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { Leader, type LeaderOptions, type Leadership } from "../../packages/client/src/entries/leader.ts";
import { adminOf } from "../support/admin.ts";
import { follow } from "../support/follow.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { collectUncaught } from "../support/uncaught.ts";

let clock: ManualClock;
let store: ScriptedStore;

const leaseDurationMs = 10_000;
const clientOf = (owner: string): LeaseClient => {
  const randomness = { token: () => crypto.randomUUID(), fraction: () => 0.5 };
  return new LeaseClient({ store, clock, randomness, owner, leaseDurationMs });
};
const candidate = (owner: string, options: LeaderOptions = {}): Leader =>
  new Leader(clientOf(owner), "k", options);
const breakLeaseOf = ({ token }: Leadership): Promise<boolean> =>
  adminOf(clientOf("operator")).forceRelease("k", { token });

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

describe("listeners", () => {
  it("need not be there: an election, a loss and a resignation go on without them", async () => {
    const uncaught = collectUncaught();
    const one = candidate("one");
    await breakLeaseOf(await one.campaign());
    await clock.advance(leaseDurationMs);
    await one.campaign();
    expect(await one.resign()).toBe(true);
    await settled();
    expect(uncaught).toEqual([]);
  });

  it("that throw do not disturb the election: their errors are uncaught exceptions", async () => {
    const uncaught = collectUncaught();
    const error = new Error("the listener failed");
    const fail = (): never => {
      throw error;
    };
    const one = candidate("one", { onElected: fail, onLost: fail, onResigned: fail });
    await breakLeaseOf(await one.campaign());
    await clock.advance(leaseDurationMs);
    expect((await one.campaign()).held).toBe(true);
    expect(await one.resign()).toBe(true);
    await settled();
    expect(uncaught).toEqual([error, error, error, error]);
  });

  it("that hear of an election find the candidate leading, and may resign for it", async () => {
    const told: unknown[] = [];
    const one = candidate("one", {
      onElected: () => told.push(one.leadership?.held, one.resign()),
      onResigned: () => told.push("resigned"),
    });
    await one.campaign();
    await settled();
    expect(await Promise.all(told)).toEqual([true, true, "resigned"]);
  });
});

describe("lead", () => {
  /** Leads with work that waits for its signal, and ends as the test says. */
  const leadUntil = (end: (leadership: Leadership, signal: AbortSignal) => Promise<unknown>) => {
    const stop = new AbortController();
    const elected: Leadership[] = [];
    const one = candidate("one", { pauseMs: 60_000, onElected: (leadership) => elected.push(leadership) });
    const work = async (leadership: Leadership, signal: AbortSignal): Promise<unknown> => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return await end(leadership, signal);
    };
    return { stop, elected, leading: one.lead(work, { signal: stop.signal }) };
  };

  it.each<[string, (leadership: Leadership, signal: AbortSignal) => Promise<unknown>]>([
    ["ends", () => Promise.resolve()],
    ["rejects with its signal's reason", (_, signal) => Promise.reject(signal.reason)],
    ["rejects with an AbortError", () => Promise.reject(new DOMException("The fetch ended.", "AbortError"))],
    ["rejects with the loss of its lease", (leadership) => leadership.renew()],
  ])(
    "stands again at once, without a pause, when its work %s after a loss, and resolves when it is stopped",
    async (_, end) => {
      const { stop, elected, leading } = leadUntil(end);
      await settled();
      for (const leadership of elected) await breakLeaseOf(leadership);
      await clock.advance(leaseDurationMs);
      expect(elected).toHaveLength(2);
      stop.abort(new Error("shut down"));
      await expect(leading).resolves.toBeUndefined();
      expect(elected).toHaveLength(2);
      expect(await candidate("two").current()).toBeUndefined();
    },
  );

  it.each([
    ["an AbortError", new DOMException("The fetch ended.", "AbortError")],
    ["the loss of another lease", new LeaseLostError("another", "expired")],
  ])("rejects with %s of the work's own while it leads", async (_, error) => {
    await expect(candidate("one").lead(() => Promise.reject(error))).rejects.toBe(error);
  });

  it("begins no work when it is stopped at its election, or has resigned already", async () => {
    const stop = new AbortController();
    let elections = 0;
    const one: Leader = candidate("one", {
      onElected: () => {
        elections += 1;
        if (elections > 1) stop.abort();
        else void one.resign();
      },
    });
    const leading = one.lead(() => expect.unreachable(), { signal: stop.signal });
    await clock.advance(1_000);
    await leading;
    expect(elections).toBe(2);
    expect(await one.current()).toBeUndefined();
  });

  it("refuses work that is no function, and sends nothing", async () => {
    for (const work of [undefined, null, {}]) {
      const leading = candidate("one").lead(work as never);
      await expect(leading).rejects.toMatchObject({ code: "LEASE_INVALID_OPTIONS", option: "work" });
    }
    expect(store.calls).toEqual([]);
  });
});

it("a candidate refuses a second call by its name while the first goes on", async () => {
  await candidate("other").campaign();
  const one = candidate("one");
  const stop = new AbortController();
  const { signal } = stop;
  const leading = one.lead(() => undefined, { signal });
  await expect(one.lead(() => undefined)).rejects.toMatchObject({ option: "lead" });
  await expect(one.campaign()).rejects.toMatchObject({ option: "campaign" });
  stop.abort();
  await leading;
});

describe("a campaign", () => {
  it("goes on when it has lasted for as long as the longest wait", async () => {
    const two = candidate("two");
    await candidate("one").campaign();
    const campaign = two.campaign();
    await settled();
    clock.freeze(limits.durationMs);
    const successor = await clientOf("three").acquire("k", { leaseDurationMs: 60_000 });
    await clock.advance(30_000);
    expect(two.leadership).toBeUndefined();
    expect(successor.held).toBe(true);
    await clock.advance(35_000);
    expect((await campaign).held).toBe(true);
    await two.resign();
  });
});

it("a candidate that resigns stops its work and is told so, though its owner leads by another one too", async () => {
  const client = clientOf("one");
  const told: string[] = [];
  const mine = { owner: "one", reentrant: true, onResigned: () => told.push("resigned") };
  const [one, other] = [new Leader(client, "k", mine), new Leader(client, "k", mine)];
  const stop = new AbortController();
  const work = (_: Leadership, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => signal.addEventListener("abort", () => resolve(stop.abort())));
  const leading = one.lead(work, { signal: stop.signal });
  await settled();
  const leadership = await other.campaign();
  await one.resign();
  await leading;
  expect([told, leadership.held]).toEqual([["resigned"], true]);
});

it.each<[string, (stop: AbortController, client: LeaseClient) => unknown, string]>([
  ["its signal aborts", (stop) => stop.abort(), "LEASE_ABORTED"],
  [
    "its client is closed",
    (_, client) => client.close({ timeoutMs: 0 }).catch(() => undefined),
    "LEASE_CLIENT_CLOSED",
  ],
])(
  "a campaign ends at once when %s, also where the end of its lost leadership hangs",
  async (_, end, code) => {
    const client = clientOf("one");
    const one = new Leader(client, "k");
    await one.campaign();
    store.weather = "hangs";
    clock.freeze(leaseDurationMs);
    const stop = new AbortController();
    const campaign = follow(one.campaign({ signal: stop.signal }), clock);
    await settled();
    const at = clock.monotonic();
    void end(stop, client);
    await clock.advance(0);
    expect(campaign).toMatchObject({ at, error: { code } });
  },
);

describe("an observer", () => {
  it("hears once that nobody leads, however often it looks, and then who leads", async () => {
    const seen: (string | undefined)[] = [];
    const observe = async (): Promise<void> => {
      for await (const leader of candidate("observer").observe()) seen.push(leader?.owner);
    };
    void observe();
    await clock.advance(60_000);
    expect(seen).toEqual([undefined]);
    await candidate("one").campaign();
    await clock.advance(20_000);
    expect(seen).toEqual([undefined, "one"]);
  });

  it("hears of each election of one candidate", async () => {
    const one = candidate("one");
    const observation = candidate("observer").observe();
    const first = await one.campaign();
    expect((await observation.next()).value?.fencingToken).toBe(first.fencingToken);
    await one.resign();
    const second = await one.campaign();
    const next = observation.next();
    await clock.advance(1_000);
    expect((await next).value?.fencingToken).toBe(second.fencingToken);
    await one.resign();
  });

  it("hears that nobody leads where ttl has removed a leader while its loop was at work", async () => {
    const dead = new LeaseClient({ store, clock: new ManualClock(), owner: "dead", leaseDurationMs });
    await new Leader(dead, "k").campaign();
    const observation = candidate("observer").observe();
    expect((await observation.next()).value?.owner).toBe("dead");
    clock.freeze(limits.durationMs);
    expect(store.table.collectGarbage(clock.now())).toBe(1);
    const next = observation.next();
    await clock.advance(1_000);
    expect(await next).toEqual({ done: false, value: undefined });
  });

  it.each<[string, (stop: AbortController, client: LeaseClient) => unknown, object]>([
    ["its signal aborts", (stop) => stop.abort(), { value: { done: true, value: undefined } }],
    ["its client is closed", (_, client) => client.close(), { error: { code: "LEASE_CLIENT_CLOSED" } }],
  ])("whose look hangs ends at once when %s", async (_, end, outcome) => {
    const stop = new AbortController();
    const client = clientOf("observer");
    store.get = (_request, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const next = follow(new Leader(client, "k").observe({ signal: stop.signal }).next(), clock);
    await clock.advance(10);
    await end(stop, client);
    await settled();
    expect(next).toMatchObject({ at: 10, ...outcome });
  });

  it.each([
    [0, 250],
    [1, 750],
  ])(
    "looks after a half to one and a half of each pause: with the fraction %d after %d ms",
    async (part, ms) => {
      const randomness = { token: () => crypto.randomUUID(), fraction: () => part };
      const observation = new Leader(new LeaseClient({ store, clock, randomness }), "k").observe();
      await observation.next();
      store.calls.length = 0;
      void observation.next();
      await clock.advance(ms - 1);
      expect(store.count("get")).toBe(0);
      await clock.advance(1);
      expect(store.count("get")).toBe(1);
    },
  );
});
