import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient, type LeaseClientOptions, LeaseUnavailableError } from "@leasehold/client";
import { FairLock, fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns } from "@leasehold/jobs";
import { leased } from "@leasehold/middy";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { adminOf } from "../support/admin.ts";
import { heldLease, put } from "../support/foreign-items.ts";

/** What a caller without a type checker may write. */
// biome-ignore lint/suspicious/noExplicitAny: bad input is what is tested.
type Anything = any;

let clock: ManualClock;
let store: MemoryLeaseStore;
let client: LeaseClient;

beforeEach(() => {
  clock = new ManualClock();
  store = new MemoryLeaseStore();
  client = clientOf("me");
});

function clientOf(owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient {
  return new LeaseClient({ store, clock, owner, ...options });
}

/** What a call has ended with, once the clock has gone on for as long as it takes. */
async function messageOf(call: () => unknown, advanceMs = 0): Promise<string> {
  const outcome = (async () => await call())().then(
    (value) => `no error, but ${JSON.stringify(value)}`,
    (error: Error) => `${error.name}: ${error.message}`,
  );
  await clock.advance(advanceMs);
  return await outcome;
}

/** The client whose lease is in the way. */
const other = (): LeaseClient => clientOf("other");
const acquire =
  (options: Anything, key = "k") =>
  () =>
    client.acquire(key, options);

interface Case {
  readonly wrote: string;
  readonly call: () => unknown;
  /** What stands in the table before. */
  readonly before?: () => Promise<unknown>;
  /** How long the call takes. */
  readonly takesMs?: number;
  /** What the message has to say: the value, and what is allowed. */
  readonly says: readonly (string | RegExp)[];
}

const cases: Case[] = [
  {
    wrote: "new LeaseClient({ tableName: process.env.UNSET })",
    call: () => new LeaseClient({ tableName: undefined } as Anything),
    says: ["tableName is undefined", "a table's name (3 to 255"],
  },
  {
    wrote: "acquire(key, { heartBeat: true })",
    call: acquire({ heartBeat: true }),
    says: ["options.heartBeat is not an option here", "leaseDurationMs, heartbeat, owner"],
  },
  {
    wrote: "data of 500 KB",
    call: acquire({ data: "x".repeat(500_000) }),
    says: ["data is 500002 bytes of JSON; allowed: at most 401408 bytes"],
  },
  {
    wrote: "data of 300 KB with fair",
    call: acquire({ data: "x".repeat(300_000), order: fair() }),
    says: ["data is 300002 bytes of JSON; allowed: at most 262144 bytes with fair"],
  },
  {
    wrote: "data: { at: new Date() }",
    call: acquire({ data: { at: new Date(0) } }),
    says: ["data.at is an instance of Date", "arrays and plain objects"],
  },
  {
    wrote: 'acquireAll(client, ["a", "b", "a"])',
    call: () => acquireAll(client, ["a", "b", "a"]),
    says: ['keys name "a" more than once', "different keys", "leave the repetition out"],
  },
  {
    wrote: "acquireAll of more than a transaction takes",
    call: () =>
      acquireAll(
        client,
        Array.from({ length: 50 }, (_, index) => `k${index}`),
        { data: "x".repeat(300_000) },
      ),
    says: [/data needs \d+ bytes for 50 locks; allowed: at most 401408 bytes for one lock/],
  },
  {
    wrote: "signal: new AbortController()",
    call: acquire({ signal: new AbortController() }),
    says: ["signal is an instance of AbortController", "allowed: an AbortSignal"],
  },
  {
    wrote: "slot: new Date(NaN)",
    call: acquire({ slot: new Date(Number.NaN) }),
    says: ["slot is an instance of Date", "a valid Date, or 1 to 255 printable ASCII characters"],
  },
  {
    wrote: "acquire(key) of a held lock",
    before: () => other().acquire("k"),
    call: acquire({}),
    says: ['the lock "k" is held by "other" until 2026-', /; try again in \d+ ms$/],
  },
  {
    wrote: "acquire(key, { waitMs: 200 }) of a held lock",
    before: () => other().acquire("k"),
    call: acquire({ waitMs: 200 }),
    takesMs: 200,
    says: ['is held by "other"', "waited 200 ms"],
  },
  {
    wrote: "acquire(key) of a lock that this very caller holds",
    before: () => client.acquire("k"),
    call: acquire({}),
    says: ['held by "me"', "its owner is the caller's own, see reentrant"],
  },
  {
    wrote: "acquire(key, { order: fair() }) of a lock that another holds",
    before: () => other().acquire("k"),
    call: acquire({ order: fair() }),
    says: [/^(?!.*in turn).*the lock "k" is held by "other" until/],
  },
  {
    wrote: "acquire(key, { order: fair() }) of a lock that others wait for",
    before: async () => {
      await new FairLock(other(), "k").checkIn({ owner: "first" });
      await new FairLock(other(), "k").checkIn({ owner: "second" });
      await new FairLock(other(), "k").checkIn({ owner: "third" });
      await new FairLock(other(), "k").checkOut({ owner: "first" });
    },
    call: acquire({ order: fair() }),
    says: ['the lock "k" is not held; 2 wait in turn'],
  },
  {
    wrote: "a permit of a semaphore that has none left",
    before: async () => {
      for (const owner of ["a", "b", "c"])
        await new Semaphore(clientOf(owner), "sem5", { permits: 3 }).acquire();
    },
    call: () => new Semaphore(client, "sem5", { permits: 3 }).acquire(),
    says: [
      /too few of the 3 permits of the semaphore "sem5" are free, and the next to end is held by "[abc]" until/,
    ],
  },
  {
    wrote: "a fair permit while others wait",
    before: async () => {
      await new Semaphore(clientOf("a"), "s", { permits: 1, order: fair() }).acquire();
      void new Semaphore(clientOf("b"), "s", { permits: 1, order: fair() })
        .acquire({ waitMs: 60_000 })
        .catch(() => undefined);
      await clock.advance(1_000);
    },
    call: () => new Semaphore(client, "s", { permits: 1, order: fair() }).acquire(),
    says: [/LeaseUnavailableError: .*semaphore "s"/],
  },
  {
    wrote: "write() while somebody reads",
    before: () => new ReadWriteLock(other(), "k").read(),
    call: () => new ReadWriteLock(client, "k").write({ waitMs: 300 }),
    takesMs: 300,
    says: ['the read lock of "k" is held by "other" until', "waited 300 ms"],
  },
  {
    wrote: "a slot before one that is done",
    before: async () => await (await client.acquire("k", { slot: "2026-02-01" })).complete(),
    call: acquire({ slot: "2026-01-01" }),
    says: ['the slot "2026-01-01" of "k" is over: "2026-02-01" is done'],
  },
  {
    wrote: "an item of another application under the key",
    before: async () => put(store, "k", "lease", { ...heldLease, version: "v1.2" }),
    call: acquire({}),
    says: ['the key "k" and the sort key "lease"', 'attribute version is "v1.2"', "a whole number (N)"],
  },
  {
    wrote: "a cache that throws",
    call: () =>
      new SingleFlight(client, {
        freshForMs: 10,
        cache: {
          get: () => Promise.reject(new Error("redis is down")),
          set: async () => undefined,
        } as Anything,
      }).getOrCompute("k", { compute: () => 1 }),
    says: ['the cache could not be read for "k"', "nothing was computed", "redis is down", "try again"],
  },
  {
    wrote: "leased({ once: true }) for an event without a time",
    call: () => leased({ store, clock, key: "k", once: true, metrics: false }, () => 1)({}, {} as Anything),
    says: ["event.scheduledTime is undefined", "an ISO time there or in event.time", "a function as once"],
  },
];

describe("a message says what it is and what is allowed, where somebody writes", () => {
  it.each(cases)("$wrote", async ({ before, call, takesMs = 0, says }) => {
    await before?.();
    const message = await messageOf(call, takesMs);
    expect(message).toMatch(/^\w+Error: /);
    for (const part of says) {
      if (typeof part === "string") expect(message).toContain(part);
      else expect(message).toMatch(part);
    }
  });
});

describe("what callers write is taken", () => {
  it("a Date as a slot, as its ISO time", async () => {
    const at = new Date(Date.UTC(2025, 0, 31, 8));
    const lease = await client.acquire("k", { slot: at });
    expect(lease.slot).toBe("2025-01-31T08:00:00.000Z");
    await lease.complete();
    await expect(client.acquire("k", { slot: "2025-01-31T08:00:00.000Z" })).rejects.toMatchObject({
      code: "LEASE_SLOT_DONE",
    });
  });

  it("waitMs: Infinity beside a signal, which waits until the lock is free", async () => {
    const held = await other().acquire("k", { heartbeat: true });
    const { signal } = new AbortController();
    const waiting = client.acquire("k", { waitMs: Number.POSITIVE_INFINITY, signal });
    await clock.advance(24 * 60 * 60 * 1000);
    await held.release();
    await clock.advance(10_000);
    expect((await waiting).held).toBe(true);
  });

  it.each([
    [
      "in the queue",
      (key: string, signal: AbortSignal) => client.acquire(key, { order: fair(), waitMs: Infinity, signal }),
    ],
    [
      "for a permit",
      (key: string, signal: AbortSignal) =>
        new Semaphore(client, key, { permits: 1 }).acquire({ waitMs: Infinity, signal }),
    ],
    [
      "to write",
      (key: string, signal: AbortSignal) =>
        new ReadWriteLock(client, key).write({ waitMs: Infinity, signal }),
    ],
    [
      "for several",
      (key: string, signal: AbortSignal) => acquireAll(client, [key], { waitMs: Infinity, signal }),
    ],
  ])("waitMs: Infinity %s", async (_, call) => {
    const held = [
      await other().acquire("k"),
      await new Semaphore(other(), "k", { permits: 1 }).acquire(),
      await new ReadWriteLock(other(), "k").write(),
    ];
    const waiting = call("k", new AbortController().signal);
    await clock.advance(20_000);
    for (const lease of held) await lease.release();
    await clock.advance(20_000);
    expect(await waiting).toMatchObject({ held: true });
  });
});

describe("a call that its signal ends names the lock, and has the signal's reason as its cause:", () => {
  const waitMs = 60_000;
  const waits: [string, (signal: AbortSignal) => Promise<unknown>][] = [
    ["acquire", (signal) => client.acquire("k", { waitMs, signal })],
    ["a fair acquire", (signal) => client.acquire("k", { waitMs, signal, order: fair() })],
    ["a reentrant acquire", (signal) => client.acquire("k", { waitMs, signal, reentrant: true, owner: "w" })],
    ["withLease", (signal) => client.withLease("k", { waitMs, signal }, () => 1)],
    ["acquireAll", (signal) => acquireAll(client, ["k", "l"], { waitMs, signal })],
    ["a permit", (signal) => new Semaphore(client, "k", { permits: 1 }).acquire({ waitMs, signal })],
    [
      "a fair permit",
      (signal) => new Semaphore(client, "k", { permits: 1, order: fair() }).acquire({ waitMs, signal }),
    ],
    ["drain", (signal) => new Semaphore(client, "k", { permits: 1 }).drain({ waitMs, signal })],
    ["read", (signal) => new ReadWriteLock(client, "k").read({ waitMs, signal })],
    ["write", (signal) => new ReadWriteLock(client, "k").write({ waitMs, signal })],
    ["campaign", (signal) => new Leader(client, "k").campaign({ signal })],
    [
      "JobRuns.run",
      (signal) => new JobRuns(client, "k").run(new Date(clock.now()), () => 1, { waitMs, signal }),
    ],
    [
      "getOrCompute",
      (signal) =>
        new SingleFlight(client, { freshForMs: 1 }).getOrCompute("k", { compute: () => 1, waitMs, signal }),
    ],
  ];

  async function holdAll(): Promise<void> {
    const holder = other();
    await holder.acquire("k", { heartbeat: true });
    await new Semaphore(holder, "k", { permits: 1 }).acquire({ heartbeat: true });
    await new ReadWriteLock(holder, "k").write({ heartbeat: true });
    const never = new Promise<never>(() => undefined);
    void new JobRuns(holder, "k").run(new Date(clock.now()), () => never);
    void new SingleFlight(holder, { freshForMs: 1 }).getOrCompute("k", { compute: () => never });
    await clock.advance(0);
  }

  it.each(waits)("%s, in its wait", async (_, wait) => {
    await holdAll();
    const controller = new AbortController();
    const ended = wait(controller.signal).catch((error: unknown) => error);
    await clock.advance(3_000);
    controller.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
    await clock.advance(0);
    expect(await ended).toMatchObject({
      name: "LeaseAbortedError",
      code: "LEASE_ABORTED",
      key: "k",
      cause: controller.signal.reason,
      message: expect.stringMatching(
        /the lock "k" was aborted by its signal \(The operation was aborted due to timeout\)/,
      ),
    });
  });

  it.each(waits)("%s, before it has sent anything", async (_, wait) => {
    const error: unknown = await wait(AbortSignal.abort("no more")).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "LEASE_ABORTED", key: "k", cause: "no more" });
    expect(store.peek({ pk: "k", sk: "lease" })).toBeUndefined();
  });

  it("but a reason that is a LeaseError says enough by itself", async () => {
    await other().acquire("k");
    const first = await client.acquire("first", { leaseDurationMs: 1_000 });
    const waiting = client.acquire("k", { waitMs, signal: first.signal }).catch((error: unknown) => error);
    await clock.advance(1_000);
    expect(await waiting).toBe(first.signal.reason);
    expect(await waiting).toMatchObject({ code: "LEASE_LOST", key: "first" });
  });

  it("and lead() ends without an error", async () => {
    await other().acquire("k", { heartbeat: true });
    const controller = new AbortController();
    const leading = new Leader(client, "k").lead(() => undefined, { signal: controller.signal });
    await clock.advance(3_000);
    controller.abort(new Error("enough"));
    expect(await leading).toBeUndefined();
  });
});

it.each(["forceRelease", "requestRevocation"] as const)(
  "%s that resolves to false where nobody holds the lock tells of no holder",
  async (call) => {
    await (await other().acquire("k")).release();
    const onRefused = vi.fn();
    expect(await adminOf(client)[call]("k", { token: "an old one", onRefused })).toBe(false);
    expect(onRefused.mock.calls).toEqual([[undefined]]);
  },
);

it("a table that cannot be used is named with its region and endpoint", async () => {
  const dynamodb = new DynamoDBClient({
    region: "eu-west-1",
    endpoint: "http://127.0.0.1:8123",
    credentials: { accessKeyId: "a", secretAccessKey: "b" },
  });
  const missing = Object.assign(new Error("not found"), {
    ...{ name: "ResourceNotFoundException", $metadata: { httpStatusCode: 400 } },
  });
  const failing = Object.assign(Object.create(dynamodb), { send: () => Promise.reject(missing) });
  const client = new LeaseClient({ tableName: "leases", dynamodb: failing });
  expect(await messageOf(() => client.inspect("k"))).toMatch(
    /^LeaseTableError: the table "leases" in the region eu-west-1 at http:\/\/127\.0\.0\.1:8123: table not found \(/,
  );
});

it("a refusal of a lock that was let go as the call gave up says so", () => {
  expect(new LeaseUnavailableError("k", undefined, 0).message).toBe(
    'the lock "k" is not held; try again in 0 ms',
  );
});
