import {
  LeaseClient,
  type LeaseClientOptions,
  LeaseConfigurationError,
  type LeaseEvent,
  LeaseServiceError,
} from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { ManualClock } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { JobRuns } from "@leasehold/jobs";
import { beforeEach, describe, expect, it } from "vitest";
import { isMistake, isOperational } from "../../packages/client/src/base/operational.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 9_000;

let clock: ManualClock;
let store: FaultyStore;
let events: LeaseEvent[];
let client: LeaseClient;
/** What the next call of the randomness throws. */
let unlucky: Error | undefined;

const methods = ["update", "updateMany", "transact", "get", "query"] as const;
type Method = (typeof methods)[number];

/** A store with a mistake in it: every call that `breaks` picks rejects with the error. */
class FaultyStore extends ScriptedStore {
  breaks: ((method: Method) => boolean) | undefined;
  readonly mistake = new TypeError("undefined is not a function");

  constructor() {
    super();
    for (const method of methods) {
      const call = this[method].bind(this) as (...args: unknown[]) => Promise<unknown>;
      const checked = async (...args: unknown[]): Promise<unknown> => {
        if (this.breaks?.(method)) throw this.mistake;
        return await call(...args);
      };
      Object.assign(this, { [method]: checked });
    }
  }

  /** Every write from now on has the mistake. */
  breakWrites(): void {
    this.breaks = (method) => method !== "get" && method !== "query";
  }
}

function makeClient(owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient {
  const randomness = {
    token: () => crypto.randomUUID(),
    fraction: () => {
      if (unlucky !== undefined) throw unlucky;
      return 0.5;
    },
  };
  const onEvent = (event: LeaseEvent): void => void events.push(event);
  return new LeaseClient({ store, clock, owner, leaseDurationMs, randomness, onEvent, ...options });
}

const errors = (): unknown[] =>
  events.flatMap((event) => (event.type === "error" ? [[event.operation, event.error]] : []));

beforeEach(() => {
  clock = new ManualClock();
  store = new FaultyStore();
  events = [];
  unlucky = undefined;
  client = makeClient("a");
});

describe.each([
  ["by itself", undefined],
  ["together with others", together()],
] as const)("a mistake in the program that a heartbeat meets, whose lease is renewed %s,", (_, renewals) => {
  it.each<[string, () => Error]>([
    [
      "in the store",
      () => {
        store.breakWrites();
        return store.mistake;
      },
    ],
    [
      "in the clock",
      () => {
        const mistake = new RangeError("no such hour");
        const now = clock.now.bind(clock);
        // Once: without a clock nothing at all can be told.
        clock.now = () => {
          clock.now = now;
          throw mistake;
        };
        return mistake;
      },
    ],
    [
      "in the randomness",
      () => {
        unlucky = new ReferenceError("seed is not defined");
        return unlucky;
      },
    ],
  ])("%s ends the lease at once, with the mistake as its cause", async (_where, plant) => {
    if (renewals) client = makeClient("a", { renewals });
    const lease = await client.acquire("k", { heartbeat: true });
    const { signal } = lease;
    const mistake = plant();
    await clock.advance(leaseDurationMs / 3);
    expect(signal.reason).toMatchObject({ name: "LeaseLostError", reason: "failed" });
    expect(signal.reason.cause).toBe(mistake);
    // Without the fencing token: the lease may not be held any more.
    const subject = { key: "k", sortKey: "lease", owner: "a" };
    expect(events.slice(-2)).toEqual([
      { type: "error", operation: "renew", ...subject, error: mistake },
      expect.objectContaining({ type: "lost", reason: "failed" }),
    ]);
    expect(clock.pending).toBe(0);
  });
});

it("a mistake in the program that a shared renewal meets ends each of its leases", async () => {
  client = makeClient("a", { renewals: together() });
  const leases = await Promise.all(["k1", "k2", "k3"].map((key) => client.acquire(key, { heartbeat: true })));
  store.breaks = (method) => method === "updateMany";
  await clock.advance(leaseDurationMs / 3);
  for (const { signal } of leases) expect(signal.reason?.cause).toBe(store.mistake);
  expect(errors()).toEqual(leases.map(() => ["renew", store.mistake]));
});

describe("a mistake in what a call leaves to the background is published", () => {
  it("when a waiter leaves its queue", async () => {
    const holder = await client.acquire("k");
    const giveUp = new AbortController();
    const waiting = client.acquire("k", { order: fair(), waitMs: 60_000, signal: giveUp.signal });
    waiting.catch(() => undefined);
    await clock.advance(3_000);
    store.breakWrites();
    giveUp.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await clock.advance(0);
    expect(errors()).toContainEqual(["leaveQueue", store.mistake]);
    expect(holder.held).toBe(true);
  });
});

describe("a mistake in a release", () => {
  const runs: [string, (work: () => void) => Promise<unknown>][] = [
    ["withLease", (work) => client.withLease("k", work)],
    ["a leader's loop", (work) => new Leader(client, "election").lead(work)],
    ["a run", (work) => new JobRuns(client, "job").run("2026-01-01T00:00:00.000Z", work)],
  ];

  it.each(runs.slice(0, 2))("is what %s rejects with after work that succeeded", async (_, run) => {
    await expect(run(() => store.breakWrites())).rejects.toBe(store.mistake);
  });

  it.each(runs)("comes after the own error of the work of %s, and is published", async (_, run) => {
    const own = new Error("out of paper");
    const outcome = run(() => {
      store.breakWrites();
      throw own;
    });
    await expect(outcome).rejects.toBe(own);
    expect(errors()).toEqual([["release", store.mistake]]);
  });

  it("is what a disposal rejects with", async () => {
    const lease = await client.acquire("k");
    const group = await acquireAll(client, ["k1", "k2"]);
    const leader = new Leader(client, "election");
    await leader.campaign();
    store.breakWrites();
    for (const held of [lease, group, leader]) {
      await expect(held[Symbol.asyncDispose]()).rejects.toBe(store.mistake);
    }
  });

  it("is published by a writer that waits, where its intent meets it", async () => {
    const reader = await new ReadWriteLock(makeClient("b"), "book").read();
    let writes = 0;
    store.breaks = (method) => method === "update" && ++writes > 1;
    const writing = new ReadWriteLock(client, "book").write({ waitMs: 60_000 });
    writing.catch(() => undefined);
    await clock.advance(0);
    expect(errors()).toEqual([["renew", store.mistake]]);
    store.breaks = () => false;
    await reader.release();
    await clock.advance(5_000);
    expect((await writing).held).toBe(true);
  });

  it("is published by a writer that waits, where the renewal of its intent meets it, and the writer waits on", async () => {
    const reader = await new ReadWriteLock(makeClient("b"), "book").read({ heartbeat: true });
    const writing = new ReadWriteLock(client, "book").write({ waitMs: 60_000 });
    await clock.advance(0);
    const { update } = store;
    store.update = async (...call) => {
      if (!JSON.stringify(call).includes("intent")) return await update.apply(store, call);
      store.update = update;
      throw store.mistake;
    };
    await clock.advance(4_000);
    expect(errors()).toEqual([["renew", store.mistake]]);
    await reader.release();
    await clock.advance(8_000);
    expect((await writing).held).toBe(true);
  });
});

it("a mistake that a renewal meets after the release is not told of a lease that nobody holds any more", async () => {
  const lease = await client.acquire("k", { heartbeat: 1_000 });
  const update = store.update.bind(store);
  store.update = () => {
    store.update = update;
    return new Promise((_, reject) => clock.schedule(() => reject(store.mistake), 500));
  };
  await clock.advance(1_000);
  const releasing = lease.release();
  await clock.advance(5_000);
  expect(await releasing).toBe(true);
  expect(errors()).toEqual([]);
});

describe("a mistake in a look of a waiter is what the wait ends with", () => {
  const waits: [string, (waiter: LeaseClient) => Promise<unknown>][] = [
    ["for a lock", (waiter) => waiter.acquire("k", { waitMs: 60_000 })],
    ["for a fair lock", (waiter) => waiter.acquire("k", { order: fair(), waitMs: 60_000 })],
    ["for a group", (waiter) => acquireAll(waiter, ["k", "k2"], { waitMs: 60_000 })],
    ["for a permit", (waiter) => new Semaphore(waiter, "pool", { permits: 1 }).acquire({ waitMs: 60_000 })],
    ["for a read", (waiter) => new ReadWriteLock(waiter, "book").read({ waitMs: 60_000 })],
    [
      "for a result",
      (waiter) => new SingleFlight(waiter, { freshForMs: 1_000 }).getOrCompute("v", { compute: () => 1 }),
    ],
  ];

  it.each(waits)("%s", async (_name, wait) => {
    await client.acquire("k");
    await new Semaphore(client, "pool", { permits: 1 }).acquire();
    await new ReadWriteLock(client, "book").write();
    void new SingleFlight(client, { freshForMs: 1_000 }).getOrCompute("v", {
      compute: () => new Promise(() => undefined),
    });
    await clock.advance(0);
    const waiting = wait(makeClient("b"));
    waiting.catch(() => undefined);
    await clock.advance(1);
    store.breaks = (method) => method === "get" || method === "query";
    await clock.advance(leaseDurationMs - 2);
    store.breaks = undefined;
    await expect(waiting).rejects.toSatisfy(
      (error: Error) => error === store.mistake || error.cause === store.mistake,
    );
  });

  it("for an election, whether as a candidate or as an observer", async () => {
    await new Leader(client, "election").campaign();
    const other = new Leader(makeClient("b"), "election");
    const campaign = other.campaign();
    campaign.catch(() => undefined);
    await clock.advance(1);
    store.breaks = () => true;
    await clock.advance(8_000);
    await expect(campaign).rejects.toBe(store.mistake);
    await expect(other.observe().next()).rejects.toBe(store.mistake);
  });
});

describe("what a DynamoDB client throws", () => {
  const failing = (error: Error): LeaseClient =>
    new LeaseClient({ tableName: "leases", dynamodb: { send: () => Promise.reject(error) } as never, clock });
  const mistake = new TypeError("undefined is not a function");

  it("is given as it is where it is a mistake in the program", async () => {
    await expect(failing(mistake).acquire("k")).rejects.toBe(mistake);
    await expect(failing(mistake).inspect("k")).rejects.toBe(mistake);
    await expect(acquireAll(failing(mistake), ["k1", "k2"])).rejects.toBe(mistake);
  });
});

describe("an error is operational", () => {
  const system = (code: string): Error =>
    Object.assign(new Error(`connect ${code}`), { code, syscall: "connect" });
  const marked = (error: Error, marks: object): Error => Object.assign(error, marks);

  it.each<[string, unknown]>([
    ["of this package", new LeaseServiceError("LEASE_THROTTLED", "busy")],
    ["of its configuration", new LeaseConfigurationError("LEASE_ACCESS_DENIED", "no")],
    [
      "of the service",
      marked(new Error("no"), { name: "AccessDeniedException", $fault: "client", $metadata: {} }),
    ],
    ["of an answer", marked(new Error("no"), { $metadata: { httpStatusCode: 500 } })],
    ["of an answer that is no JSON", marked(new SyntaxError("<html>"), { $response: { statusCode: 200 } })],
    ["of the network", system("ECONNREFUSED")],
    ["of TLS", marked(new Error("expired"), { code: "CERT_HAS_EXPIRED" })],
    ["of fetch", new TypeError("fetch failed", { cause: system("ENOTFOUND") })],
    ["of a time limit", marked(new Error("late"), { name: "TimeoutError" })],
    ["of credentials", marked(new Error("none"), { name: "CredentialsProviderError" })],
    ["an abort", new DOMException("stop", "AbortError")],
  ])("%s", (_name, error) => {
    expect(isOperational(error)).toBe(true);
    expect(isMistake(error)).toBe(false);
  });

  it.each<[string, unknown]>([
    ["a TypeError", new TypeError("undefined is not a function")],
    ["a ReferenceError", new ReferenceError("x is not defined")],
    ["a RangeError", new RangeError("Invalid time value")],
    ["a SyntaxError", new SyntaxError("Unexpected token")],
    [
      "a wrong argument of Node's",
      marked(new TypeError("must be a string"), { code: "ERR_INVALID_ARG_TYPE" }),
    ],
    ["one that the SDK's retries have marked", marked(new TypeError("x"), { $metadata: { attempts: 1 } })],
    ["one whose causes go in a circle", circular()],
  ])("but not %s", (_name, error) => {
    expect(isOperational(error)).toBe(false);
    expect(isMistake(error)).toBe(true);
  });

  it("but not an error of nobody's that is known; out of the SDK's transport it may be", () => {
    for (const error of [new Error("oops"), "oops", undefined, null]) {
      expect(isOperational(error)).toBe(false);
      expect(isMistake(error)).toBe(false);
    }
  });

  function circular(): Error {
    const error = new TypeError("round");
    error.cause = error;
    return error;
  }
});
