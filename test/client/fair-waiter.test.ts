/** What a waiter in line sends, and when: each process has a client of its own, and notes what it sends. */
import {
  type CallOptions,
  CloseIncompleteError,
  type GetRequest,
  type Item,
  type Lease,
  LeaseClient,
  type LeaseEvent,
  LeaseUnavailableError,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import { type FairAcquireOptions, FairLock, fair, type QueuePosition } from "@leasehold/client/fair";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { leaseItemKey, leaseSortKey } from "@leasehold/client/schema";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { pollIntervalMs } from "../../packages/client/src/primitives/fair/queue-estimate.ts";
import { ticketsIn } from "../../packages/client/src/primitives/fair/queue-ticket.ts";
import { ticketGraceMs } from "../../packages/client/src/primitives/fair/queue-waiter.ts";
import { put } from "../support/foreign-items.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 30_000;
const clockSkewMs = 500;
const waitMs = 3_600_000;

let clock: ManualClock;
/** Holds the table, which all processes share. */
let store: ScriptedStore;
/** Owners in the order in which they got the lock. */
let served: string[];
let events: LeaseEvent[];
/** By how much waiters shorten their sleeps, of the most that they may. */
let fraction: number;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  served = [];
  events = [];
  fraction = 0;
});

/** A process of its own. */
class Process extends ScriptedStore {
  readonly client: LeaseClient;
  readonly lock: FairLock;
  /** What it has sent, and when. */
  sent: string[] = [];
  #since = clock.monotonic();
  /** Whether its reads are never answered. */
  hangs = false;
  /** What its reads show in place of the table's item. */
  shown: Item | undefined;

  constructor(owner: string) {
    super(store.table);
    const randomness = { token: () => crypto.randomUUID(), fraction: () => fraction };
    const onEvent = (event: LeaseEvent): void => void events.push(event);
    const options = { store: this, clock, owner, leaseDurationMs, clockSkewMs, randomness, onEvent };
    this.client = new LeaseClient(options);
    this.lock = new FairLock(this.client, "k");
  }

  override async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
    this.#note("write");
    return await super.update(request, call);
  }

  override async get(request: GetRequest, call: CallOptions): Promise<Item | undefined> {
    this.#note("read");
    if (this.hangs) {
      await new Promise((_, reject) => {
        call.signal.addEventListener("abort", () => reject(call.signal.reason), { once: true });
      });
    }
    return this.shown ?? (await super.get(request, call));
  }

  #note(what: string): void {
    this.sent.push(`${Math.round(clock.monotonic() - this.#since)} ${what}`);
  }

  /** Forgets what it has sent, and counts the time from now. */
  again(): void {
    this.sent = [];
    this.#since = clock.monotonic();
  }

  /** Waits for the lock, and keeps it. */
  wait(options: FairAcquireOptions = {}): Promise<Lease> {
    const got = this.lock.acquire({ waitMs, leaseDurationMs: 600_000, ...options }).then((lease) => {
      served.push(lease.owner);
      return lease;
    });
    got.catch(() => undefined);
    return got;
  }
}

const itemNow = (): Item => store.table.peek(leaseItemKey("k")) ?? {};
const waitingNow = (): string[] => ticketsIn(itemNow()).map(({ owner }) => owner);

/** Holds the lock in a process of its own. */
const hold = (options: FairAcquireOptions = {}): Promise<Lease> =>
  new Process("holder").lock.acquire({ leaseDurationMs: 600_000, ...options });

/** Processes that join the line one after the other, at the same time of the clock. */
async function join(...owners: string[]): Promise<Process[]> {
  const processes = owners.map((owner) => new Process(owner));
  for (const process of processes) {
    void process.wait();
    await clock.advance(0);
    process.again();
  }
  return processes;
}

/** Lets an item seem to have a full line, as no client would. */
function spoilCount(): void {
  const { pk: _pk, sk: _sk, ...attributes } = itemNow();
  put(store.table, "k", leaseSortKey, { ...attributes, waiting: 1_000 });
}

describe("a caller that does not wait", () => {
  it("sends 1 request, and nothing more when it is refused", async () => {
    await hold();
    const a = new Process("a");
    await expect(a.lock.acquire()).rejects.toBeInstanceOf(LeaseUnavailableError);
    await clock.advance(1_000);
    expect(a.sent).toEqual(["0 write"]);
  });

  it("asks the table who holds the lock, whatever the waiters of its process have seen", async () => {
    const first = await hold();
    const [, w2] = (await join("w1", "w2")) as [Process, Process];
    await first.release();
    await clock.advance(250);
    expect(served).toEqual(["w1"]);
    await expect(w2.lock.acquire()).rejects.toMatchObject({ holder: "w1" });
    expect(w2.sent).toEqual(["250 write"]);
  });

  it("does not keep a waiter of its process from joining while its own request is under way", async () => {
    await hold();
    const a = new Process("a");
    a.next("hangs");
    a.lock.acquire().catch(() => undefined);
    void a.wait();
    await clock.advance(0);
    expect(waitingNow()).toEqual(["a"]);
  });
});

it.each([
  [0, 10_000],
  [2_000, 2_000],
])("with waitMs %i, a request that is not answered is given up after %i ms", async (waitMs, endsAfterMs) => {
  const a = new Process("a");
  a.weather = "hangs";
  let error: unknown;
  a.wait({ waitMs }).catch((reason: unknown) => {
    error = reason;
  });
  await clock.advance(endsAfterMs - 1);
  expect(error).toBeUndefined();
  await clock.advance(1);
  expect(error).toMatchObject({ code: "LEASE_NO_ANSWER" });
});

describe("a caller that is to wait", () => {
  it("tells whose lease it meets", async () => {
    await hold();
    await join("w1");
    const contended = events.filter(({ type }) => type === "contended");
    expect(contended).toMatchObject([{ owner: "w1", holder: "holder" }]);
  });

  it("has the lock at once where it is let go before the caller joins", async () => {
    const first = await hold();
    const w1 = new Process("w1");
    const { update } = w1;
    w1.update = async (...call) => {
      if (w1.sent.length === 1) await first.release();
      return await update.apply(w1, call);
    };
    void w1.wait();
    await clock.advance(0);
    expect(served).toEqual(["w1"]);
    expect(w1.sent).toEqual(["0 write", "0 write", "0 write"]);
  });

  it("tries again before it joins where its first try was not answered", async () => {
    const w1 = new Process("w1");
    w1.next("throttled");
    void w1.wait();
    await clock.advance(1_000);
    expect(served).toEqual(["w1"]);
    expect(w1.sent).toEqual(["0 write", "250 write"]);
  });

  it("looks before it joins again where its joining was not answered, and tells no position before that", async () => {
    await hold();
    const w1 = new Process("w1");
    const positions: QueuePosition[] = [];
    w1.next(undefined, "throttled");
    void w1.wait({ onPosition: (position) => positions.push(position) });
    await clock.advance(249);
    expect(w1.sent).toEqual(["0 write", "0 write"]);
    expect(positions).toEqual([]);
    await clock.advance(1);
    expect(w1.sent.slice(2)).toEqual(["250 read", "250 write"]);
    expect(positions).toEqual([{ position: 1, estimatedWaitMs: undefined }]);
  });

  it("tries 3 times to join between two looks while the table refuses it, and not more", async () => {
    await hold();
    spoilCount();
    const w1 = new Process("w1");
    void w1.wait();
    await clock.advance(250);
    const joining = ["write", "write", "write"];
    expect(w1.sent.map((sent) => sent.split(" ")[1])).toEqual(["write", ...joining, "read", ...joining]);
  });

  it("joins where its second try is refused as well, though a look would promise it the lock", async () => {
    put(store.table, "k", leaseSortKey, { waiting: 1 });
    const w1 = new Process("w1");
    void w1.wait();
    await clock.advance(250);
    expect(w1.sent).toEqual(["0 write", "0 write", "0 write", "250 write"]);
    expect(served).toEqual(["w1"]);
  });

  it("ends with its own refusal where the lock is vacant and the line has no room for it", async () => {
    const first = await hold();
    const [dead] = (await join("dead")) as [Process];
    dead.cutOff();
    await first.release();
    spoilCount();
    const w2 = new Process("w2");
    const waiting = w2.wait({ waitMs: 2_000 });
    await clock.advance(2_000);
    await expect(waiting).rejects.toBeInstanceOf(LeaseUnavailableError);
  });

  it("ends with the service's error where its last try failed, though its looks were answered since", async () => {
    const first = await hold();
    const w1 = new Process("w1");
    const waiting = w1.wait({ waitMs: 5_500 });
    await clock.advance(4_000);
    await first.release();
    w1.weather = "throttled";
    const outcome = expect(waiting).rejects.toMatchObject({ code: "LEASE_THROTTLED" });
    await clock.advance(1_500);
    await outcome;
  });

  it("takes over from a holder that held the lock for long, and tries again after a second if that fails", async () => {
    await hold({ leaseDurationMs: 60_000 });
    const [w1] = (await join("w1")) as [Process];
    await clock.advance(60_000);
    w1.again();
    w1.next("throttled");
    await clock.advance(3_000);
    expect(served).toEqual(["w1"]);
    expect(w1.sent).toEqual(["150 write", "1150 write"]);
  });
});

it("a reader at the head, whose try fails, tries again without a look in between", async () => {
  const bookOf = ({ client }: Process): ReadWriteLock => new ReadWriteLock(client, "k", { order: fair() });
  const first = await bookOf(new Process("holder")).write();
  const r1 = new Process("r1");
  void bookOf(r1).read({ waitMs });
  await clock.advance(4_000);
  await first.release();
  r1.again();
  r1.next("throttled");
  await clock.advance(2_000);
  expect(r1.sent).toEqual(["250 read", "250 write", "1250 write"]);
});

describe("callers of one process", () => {
  it("come one after the other: only the first of them tries, and each joins with 1 request", async () => {
    await hold();
    const a = new Process("a");
    for (const owner of ["a1", "a2", "a3"]) void a.wait({ owner });
    await clock.advance(0);
    expect(a.sent).toHaveLength(1 + 3);
    expect(waitingNow()).toEqual(["a1", "a2", "a3"]);
  });

  it("keep their order where one between them gives up before the first of them has joined", async () => {
    await hold();
    const a = new Process("a");
    const giveUp = new AbortController();
    a.next("hangs");
    void a.wait({ owner: "a1" });
    void a.wait({ owner: "a2", signal: giveUp.signal });
    void a.wait({ owner: "a3" });
    giveUp.abort(new Error("enough"));
    await clock.advance(9_999);
    expect(a.sent).toEqual(["0 write"]);
    await clock.advance(1_000);
    expect(waitingNow()).toEqual(["a1", "a3"]);
  });

  it("hear at once what an answer to one of them shows", async () => {
    const first = await hold();
    const a = new Process("a");
    const told: number[] = [];
    void a.wait({ owner: "a1" });
    void a.wait({ owner: "a2", onPosition: ({ position }) => told.push(position) });
    await clock.advance(0);
    await first.release();
    // The first one looks, and has the lock; the second one would look after 500 ms.
    await clock.advance(250);
    expect([served, told]).toEqual([["a1"], [2, 1]]);
  });

  it("keep their tickets when one of them gives up", async () => {
    await hold();
    const a = new Process("a");
    const giveUp = new AbortController();
    void a.wait({ owner: "a1" });
    a.wait({ owner: "a2", signal: giveUp.signal }).catch(() => undefined);
    await clock.advance(1_000);
    giveUp.abort();
    const [before] = ticketsIn(itemNow());
    await clock.advance(60_000);
    const after = ticketsIn(itemNow());
    expect(after.map(({ owner }) => owner)).toEqual(["a1"]);
    expect(after[0]?.until).toBeGreaterThan(before?.until ?? 0);
  });
});

describe("a waiter's looks", () => {
  it("are put out of step by chance", async () => {
    fraction = 0.8;
    await hold();
    const [w1] = (await join("w1")) as [Process];
    await clock.advance(240);
    expect(w1.sent).toEqual(["240 read"]);
  });

  it.each([
    ["near its turn, where holds are alike", 2, 0, 0, 2_000],
    ["half a step later for each hold before the last", 3, 0, 0, 3_050],
    ["earlier, where holds differ", 2, 200, 0, 1_408],
    ["after two steps at least", 2, 1_000, 1_000, 200],
  ])("of one behind the head come %s", (_, round, spreadMs, heldMs, sleepMs) => {
    const holds = { typicalMs: 1_000, spreadMs };
    expect(pollIntervalMs({ position: round, round, holds, heldMs })).toBeCloseTo(sleepMs, 6);
  });

  it("are given up after 2 s without an answer, and made again", async () => {
    await hold();
    const [w1] = (await join("w1")) as [Process];
    w1.hangs = true;
    await clock.advance(2_500);
    expect(w1.sent).toEqual(["250 read", "2500 read"]);
  });

  it("that show an older state than the waiter knows change nothing", async () => {
    await hold();
    const old = itemNow();
    const [w1] = (await join("w1")) as [Process];
    w1.shown = old;
    await clock.advance(1_000);
    expect(w1.sent).toEqual(["250 read", "500 read", "750 read", "1000 read"]);
  });
});

describe("a ticket", () => {
  it("lasts until a little after the end of its waiter's patience, and is not renewed then", async () => {
    await hold();
    const w1 = new Process("w1");
    const until = clock.now() + 30_000 + ticketGraceMs;
    w1.wait({ waitMs: 30_000 }).catch(() => undefined);
    await clock.advance(0);
    expect(ticketsIn(itemNow())[0]?.until).toBe(until);
    await clock.advance(29_999);
    expect(ticketsIn(itemNow())[0]?.until).toBe(until);
    expect(w1.sent.filter((sent) => sent.endsWith("write"))).toEqual(["0 write", "0 write"]);
  });

  it("that cannot be given up when its client closes is named, with its end", async () => {
    await hold();
    const [w1] = (await join("w1")) as [Process];
    await clock.advance(5_000);
    const expiresAt = ticketsIn(itemNow())[0]?.until;
    w1.weather = "request lost";
    const left = [{ key: "k", sortKey: leaseSortKey, expiresAt }];
    const closed = w1.client.close();
    await expect(closed).rejects.toBeInstanceOf(CloseIncompleteError);
    await expect(closed).rejects.toMatchObject({ left });
  });

  it.each(["answer lost", "hangs"] as const)(
    "whose joining ends with: %s, is given up as well",
    async (fate) => {
      await hold();
      const w1 = new Process("w1");
      const giveUp = new AbortController();
      w1.next(undefined, fate);
      const waiting = w1.wait({ signal: giveUp.signal });
      await clock.advance(0);
      expect(waitingNow()).toEqual(["w1"]);
      giveUp.abort(new Error("enough"));
      await expect(waiting).rejects.toThrow("enough");
      await clock.advance(0);
      expect(waitingNow()).toEqual([]);
    },
  );
});

describe("behind waiters that have died,", () => {
  /** The holder has held the lock for 4 s; of the waiters, three are dead. */
  const deadLine = async (): Promise<{ first: Lease; w4: Process; w5: Process }> => {
    const first = await hold();
    await clock.advance(4_000);
    const [w1, w2, w3, w4, w5] = (await join("w1", "w2", "w3", "w4", "w5")) as Process[];
    for (const dead of [w1, w2, w3]) dead?.cutOff();
    return { first, w4: w4 as Process, w5: w5 as Process };
  };

  /** Lets the lock go so long before the fourth waiter looks, when no ticket is new any more. */
  const releasedBeforeLook = async (ms: number): Promise<Process> => {
    const { first, w4 } = await deadLine();
    await clock.advance(20_000);
    const nextLookMs = async (): Promise<number> => {
      w4.again();
      const since = clock.monotonic();
      while (w4.sent.length === 0) await clock.advance(10);
      return clock.monotonic() - since;
    };
    await clock.advance((await nextLookMs().then(nextLookMs)) - ms);
    await first.release();
    w4.again();
    return w4;
  };
  const kinds = ({ sent }: Process): (string | undefined)[] => sent.map((one) => one.split(" ")[1]);

  it("the first living one shows that it is alive, and looks once a second; one behind shows it where it looks before", async () => {
    const { first, w4, w5 } = await deadLine();
    await clock.advance(500);
    await first.release();
    await clock.advance(8_000);
    const looks = (...at: number[]): string[] => at.map((ms) => `${ms} read`);
    // The dead have joined at 0: for 6 s they could be alive.
    const before = looks(1_500, 2_500, 3_500, 4_500, 5_500, 6_500);
    expect(w4.sent).toEqual([...before, "6500 write", ...looks(7_500, 8_500)]);
    const w5Looks = looks(2_000, 3_000, 4_000, 5_000, 6_000);
    expect(w5.sent).toEqual([...w5Looks, "6000 write", ...looks(7_000, 8_000)]);
    await clock.advance(4_000);
    // A sign of life counts for 4 s.
    expect(w4.sent.slice(9)).toEqual([
      ...looks(9_500, 10_500),
      "10500 write",
      ...looks(11_500),
      "12001 write",
    ]);
    expect(served).toEqual(["w4"]);
  });

  it("the first living one shows that it is alive with its next look if the service was too busy", async () => {
    const w4 = await releasedBeforeLook(1_500);
    w4.next("throttled");
    await clock.advance(2_700);
    expect(kinds(w4)).toEqual(["read", "write", "read", "write"]);
  });

  it("a waiter for one of several permits looks after an eighth of the time for which one is free", async () => {
    const { client } = new Process("holder");
    const semaphoreOf = (of: LeaseClient): Semaphore => new Semaphore(of, "k", { permits: 2, order: fair() });
    const first = await semaphoreOf(client).acquire({ permits: 2, leaseDurationMs: 600_000 });
    await clock.advance(4_000);
    const waiters = ["w1", "w2", "w3", "w4"].map((owner) => new Process(owner));
    for (const waiter of waiters) {
      void semaphoreOf(waiter.client).acquire({ waitMs });
      await clock.advance(0);
    }
    const [w4] = waiters.splice(3) as [Process];
    for (const dead of waiters) dead.cutOff();
    await clock.advance(1_420);
    await first.release();
    w4.again();
    await clock.advance(1_000);
    const looks = [80];
    for (let last = 80; last < 350; looks.push(last)) last += Math.max(25, last / 8);
    expect(w4.sent.slice(0, looks.length)).toEqual(looks.map((at) => `${Math.round(at)} read`));
  });
});
