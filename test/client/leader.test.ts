import { InvalidOptionsError, LeaseClient, LeaseServiceError } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { leaseItemKey, limits } from "@leasehold/client/schema";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { Leader, type LeaderOptions, type Leadership } from "../../packages/client/src/entries/leader.ts";
import { adminOf } from "../support/admin.ts";
import { follow } from "../support/follow.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { collectUncaught } from "../support/uncaught.ts";

const leaseDurationMs = 10_000;

let clock: ManualClock;
let store: ScriptedStore;

/** Jitter that is always the middle. */
const randomness = { token: () => crypto.randomUUID(), fraction: () => 0.5 };
const clientOf = (owner: string): LeaseClient =>
  new LeaseClient({ store, clock, randomness, owner, leaseDurationMs });
const candidate = (owner: string, options: LeaderOptions = {}): Leader =>
  new Leader(clientOf(owner), "k", options);
const breakLeaseOf = ({ token }: Leadership): Promise<boolean> =>
  adminOf(clientOf("operator")).forceRelease("k", { token });

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

describe("the requests of an election", () => {
  it("1 to be elected, 1 for each third of the lease to stay it, 1 to resign", async () => {
    const leader = candidate("one");
    await leader.campaign();
    expect(store.calls).toHaveLength(1);
    await clock.advance(30_000);
    const renewals = store.calls.length - 1;
    expect(renewals).toBeGreaterThanOrEqual(9);
    expect(renewals).toBeLessThanOrEqual(11);
    await leader.resign();
    expect(store.calls).toHaveLength(renewals + 2);
    expect(await leader.resign()).toBe(false);
    expect(store.calls).toHaveLength(renewals + 2);
    expect(clock.pending).toBe(0);
  });

  it("reads alone while another leads, every 5 s in the long run", async () => {
    await candidate("one").campaign();
    const stop = new AbortController();
    const campaign = candidate("two").campaign({ signal: stop.signal });
    const outcome = expect(campaign).rejects.toThrow("stop");
    await clock.advance(60_000);
    const reads = store.count("get");
    await clock.advance(600_000);
    expect(store.count("get") - reads).toBe(120);
    expect(store.calls.filter(({ requests }) => requests[0]?.update.includes("if_not_exists"))).toHaveLength(
      2,
    );
    stop.abort(new Error("stop"));
    await outcome;
  });

  it("of an observer: reads that get rarer, up to every 10 s", async () => {
    await candidate("one").campaign();
    store.calls.length = 0;
    const stop = new AbortController();
    const observation = candidate("two").observe({ signal: stop.signal });
    expect((await observation.next()).value).toMatchObject({ owner: "one" });
    const next = observation.next();
    await clock.advance(15_000);
    const early = store.count("get");
    await clock.advance(600_000);
    expect(early).toBeGreaterThanOrEqual(4);
    expect(store.count("get") - early).toBeLessThanOrEqual(120);
    expect(store.count("get") - early).toBeGreaterThanOrEqual(40);
    expect(store.calls.filter(({ method }) => method === "get").every(({ consistent }) => !consistent)).toBe(
      true,
    );
    stop.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });
});

describe("at its worst moments", () => {
  it("a campaign outlasts a service that fails, and gives up at an error that will not pass", async () => {
    store.weather = "throttled";
    const campaign = candidate("one").campaign();
    await clock.advance(3_600_000);
    store.weather = undefined;
    await clock.advance(10_000);
    expect((await campaign).held).toBe(true);
    store.weather = "rejected";
    await expect(candidate("two").campaign()).rejects.toMatchObject({ code: "LEASE_REQUEST_REJECTED" });
  });

  it("a leader that was asked to stop lets its key go before it stands again", async () => {
    const one = candidate("one");
    const leadership = await one.campaign();
    await adminOf(clientOf("operator")).requestRevocation("k", { token: leadership.token });
    await clock.advance(4_000);
    expect(leadership.signal.reason).toMatchObject({ reason: "revoked" });
    const again = await one.campaign();
    expect(again.fencingToken).toBe(leadership.fencingToken + 1);
    await one.resign();
  });

  it("a dead leader is nobody to an observer, once clocks cannot explain it any more", async () => {
    const dead = new LeaseClient({ store, clock: new ManualClock(), owner: "dead", leaseDurationMs: 10_000 });
    await new Leader(dead, "k").campaign();
    const observer = candidate("observer");
    await clock.advance(11_000);
    expect(await observer.current()).toMatchObject({ owner: "dead" });
    await clock.advance(1);
    expect(await observer.current()).toBeUndefined();
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

  it.each<[number, string, (one: Leader) => unknown, LeaderOptions]>([
    [1_000, "its work has ended of itself", () => undefined, {}],
    [5_000, "its work has ended of itself", () => undefined, { pauseMs: 5_000 }],
    [5_000, "its work has resigned", (one) => one.resign(), { pauseMs: 5_000 }],
  ])("leaves the field to others for %i ms after %s", async (pauseMs, _, work, options) => {
    const stop = new AbortController();
    const startedAt: number[] = [];
    const one = candidate("one", options);
    const leading = one.lead(
      () => {
        startedAt.push(clock.monotonic());
        return work(one);
      },
      { signal: stop.signal },
    );
    await clock.advance(2.5 * pauseMs);
    expect(startedAt).toEqual([0, pauseMs, 2 * pauseMs]);
    stop.abort();
    await leading;
  });

  it("stands again after a pause where it was asked to stop, though its work ends later", async () => {
    const { stop, elected, leading } = leadUntil(() => Promise.resolve());
    await settled();
    const token = elected[0]?.token ?? "";
    await adminOf(clientOf("operator")).requestRevocation("k", { token });
    await clock.advance(leaseDurationMs);
    expect(elected).toHaveLength(1);
    await clock.advance(60_000);
    expect(elected).toHaveLength(2);
    stop.abort();
    await leading;
  });

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

  it("resolves where it is stopped and has lost its lease at the same moment, whichever of the two its work tells", async () => {
    for (const tellsLoss of [true, false]) {
      const { stop, leading } = leadUntil((_, signal) => {
        stop.abort(new Error("shut down"));
        return Promise.reject(tellsLoss ? signal.reason : stop.signal.reason);
      });
      await settled();
      store.weather = "hangs";
      await clock.advance(leaseDurationMs);
      store.weather = undefined;
      await clock.advance(leaseDurationMs);
      await expect(leading).resolves.toBeUndefined();
      expect(await candidate("two").current()).toBeUndefined();
    }
  });

  it("rejects with an AbortError of the work's own while it leads", async () => {
    const error = new DOMException("The fetch ended.", "AbortError");
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

  it("resigns and rejects when its work fails", async () => {
    const told: string[] = [];
    const one = candidate("one", { onResigned: () => told.push("resigned") });
    await expect(
      one.lead(() => {
        throw new Error("broken");
      }),
    ).rejects.toThrow("broken");
    expect(told).toEqual(["resigned"]);
    expect(await one.current()).toBeUndefined();
  });

  it("does not hide an error of the work's own that came after its signal", async () => {
    const one = candidate("one");
    const stop = new AbortController();
    const leading = one.lead(
      async (_, signal) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        throw new Error("could not clean up");
      },
      { signal: stop.signal },
    );
    const outcome = expect(leading).rejects.toThrow("could not clean up");
    await settled();
    stop.abort();
    await outcome;
  });
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

  it.each<[string, (leadership: Leadership) => unknown]>([
    [
      "expired",
      () => {
        store.weather = "request lost";
      },
    ],
    ["taken", (leadership) => breakLeaseOf(leadership).then(() => clientOf("other").acquire("k"))],
    ["revoked", ({ token }) => adminOf(clientOf("operator")).requestRevocation("k", { token })],
  ])("hear of a lease that is %s, also where its abort handler resigns at once", async (reason, end) => {
    const told: string[] = [];
    const one = candidate("one", {
      onLost: (loss) => told.push(loss.reason),
      onResigned: () => told.push("resigned"),
    });
    const leadership = await one.campaign();
    leadership.signal.addEventListener("abort", () => void one.resign().catch(() => undefined));
    await end(leadership);
    await clock.advance(leaseDurationMs);
    expect(told).toEqual([reason]);
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
  it("ends at once when its signal aborts, also where the end of its lost leadership hangs", async () => {
    const one = candidate("one");
    await one.campaign();
    store.weather = "hangs";
    clock.freeze(leaseDurationMs);
    const stop = new AbortController();
    const campaign = follow(one.campaign({ signal: stop.signal }), clock);
    await settled();
    const at = clock.monotonic();
    stop.abort();
    await clock.advance(0);
    expect(campaign).toMatchObject({ at, error: { code: "LEASE_ABORTED" } });
  });

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

describe("an observer", () => {
  it("outlasts a service that fails", async () => {
    const get = store.get.bind(store);
    store.get = () => Promise.reject(new LeaseServiceError("LEASE_THROTTLED", "too busy"));
    const seen = candidate("observer").observe().next();
    await clock.advance(20_000);
    store.get = get;
    await clock.advance(20_000);
    expect(await seen).toEqual({ done: false, value: undefined });
  });

  it("hears of nothing that was before what it has heard, where one look lags more than the one before it", async () => {
    const get = store.get.bind(store);
    const itemNow = () => store.table.peek(leaseItemKey("k"));
    const seen: (string | undefined)[] = [];
    const observe = async (): Promise<void> => {
      for await (const leader of candidate("observer").observe()) seen.push(leader?.owner);
    };
    void observe();
    const first = candidate("first");
    await first.campaign();
    const underFirst = itemNow();
    await clock.advance(20_000);
    await first.resign();
    const interregnum = itemNow();
    await candidate("second").campaign();
    await clock.advance(20_000);
    for (const past of [underFirst, interregnum]) {
      store.get = async () => past;
      await clock.advance(20_000);
      store.get = get;
      await clock.advance(20_000);
    }
    expect(seen).toEqual([undefined, "first", "second"]);
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

  it("whose look hangs ends at once when its signal aborts", async () => {
    const stop = new AbortController();
    store.get = (_request, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const next = follow(candidate("observer").observe({ signal: stop.signal }).next(), clock);
    await clock.advance(10);
    stop.abort();
    await settled();
    expect(next).toMatchObject({ at: 10, value: { done: true, value: undefined } });
  });

  it("hears nothing more of a look that is answered after its end", async () => {
    const stop = new AbortController();
    const next = candidate("observer").observe({ signal: stop.signal }).next();
    stop.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });

  it("hears of nobody while an operator keeps the key closed: a pause does not lead", async () => {
    const operator = new LeaseOperator(clientOf("operator"), { by: "alice" });
    await operator.pause("k", { forMs: 60_000, reason: "INC-4411" });
    const observer = candidate("observer");
    expect(await observer.current()).toBeUndefined();
    const observation = observer.observe();
    expect((await observation.next()).value).toBeUndefined();
    await operator.resume("k");
    await candidate("one").campaign();
    const next = observation.next();
    await clock.advance(20_000);
    expect((await next).value?.owner).toBe("one");
  });

  it("looks after half of each pause at the earliest", async () => {
    const early = { ...randomness, fraction: () => 0 };
    const observation = new Leader(new LeaseClient({ store, clock, randomness: early }), "k").observe();
    await observation.next();
    store.calls.length = 0;
    void observation.next();
    await clock.advance(249);
    expect(store.count("get")).toBe(0);
    await clock.advance(1);
    expect(store.count("get")).toBe(1);
  });
});

describe("bad input", () => {
  const refused: [string, object][] = [
    ["an option that nobody knows", { waitMs: 5 }],
    ["no heartbeat", { heartbeat: false }],
    ["a heartbeat of more than half the lease", { heartbeat: 6_000 }],
    ["a callback that is no function", { onLost: "log" }],
    ["a negative pause", { pauseMs: -1 }],
    ["an unknown rhythm", { retry: { strategy: "often" } }],
    ["a payload that JSON changes", { data: new Map() }],
  ];

  it.each(refused)("%s is refused by the constructor", (_, options) => {
    expect(() => candidate("one", options)).toThrow(InvalidOptionsError);
  });
});
