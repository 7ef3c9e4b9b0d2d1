import {
  type CallOptions,
  type Lease,
  LeaseClient,
  type LeaseEvent,
  LeaseServiceError,
  type UpdateRequest,
} from "@leasehold/client";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, settled } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { beforeEach, describe, expect, it } from "vitest";
import { AgreeingStore, adoptMany } from "../support/agreeing-store.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 9_000;
const randomness = { token: () => crypto.randomUUID(), fraction: () => 0 };
let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];
let client: LeaseClient;

const countOf = (type: LeaseEvent["type"]): number => events.filter((event) => event.type === type).length;
/** The leases of each batch, by their keys. */
const batches = (): string[][] =>
  store.calls
    .filter(({ method }) => method === "updateMany")
    .map(({ requests }) => requests.map(({ key }) => key.pk));

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
  client = new LeaseClient({
    store,
    clock,
    leaseDurationMs,
    randomness,
    renewals: together(),
    onEvent: (event) => events.push(event),
  });
});

async function holdTogether(count: number): Promise<Lease[]> {
  const keys = Array.from({ length: count }, (_, index) => `k${index}`);
  const leases = await Promise.all(keys.map((key) => client.acquire(key, { heartbeat: true })));
  store.calls.length = 0;
  return leases;
}

describe("leases that are renewed in one batch", () => {
  /** Lets the batches hang until the test answers them, and their calls end as their signals do. */
  const holdBatches = (): {
    readonly signals: AbortSignal[];
    answer: () => void;
    answerWith: (results: Awaited<ReturnType<ScriptedStore["updateMany"]>>) => void;
  } => {
    const updateMany = store.updateMany.bind(store);
    const signals: AbortSignal[] = [];
    const answers: ((results?: Awaited<ReturnType<ScriptedStore["updateMany"]>>) => void)[] = [];
    store.updateMany = (requests: readonly UpdateRequest[], options: CallOptions) =>
      new Promise((resolve, reject) => {
        signals.push(options.signal);
        options.signal.addEventListener("abort", () =>
          reject(new LeaseServiceError("LEASE_NO_ANSWER", "cut off")),
        );
        answers.push((results) => resolve(results ?? updateMany(requests, options)));
      });
    return {
      signals,
      answer: () => {
        for (const answer of answers) answer();
      },
      answerWith: (results) => {
        for (const answer of answers) answer(results);
      },
    };
  };

  it("stay in it when one of them is released", async () => {
    const [released, ...others] = await holdTogether(25);
    const held = holdBatches();
    await clock.advance(3_000);
    expect(held.signals).toHaveLength(1);
    const releasing = released?.release();
    await clock.advance(1_000);
    expect(await releasing).toBe(true);
    // The release itself, and no renewal.
    expect(store.calls.map(({ method }) => method)).toEqual(["update"]);
    expect(held.signals.map(({ aborted }) => aborted)).toEqual([false]);
    held.answer();
    await settled();
    expect(others.every((lease) => lease.remainingMs() === leaseDurationMs - 1_000)).toBe(true);
    expect(countOf("lost")).toBe(0);
  });

  it("are not sent once more by themselves when they have been released meanwhile", async () => {
    const [released, other] = await holdTogether(2);
    const { answerWith } = holdBatches();
    await clock.advance(3_000);
    const releasing = released?.release();
    await clock.advance(1_000);
    await releasing;
    store.calls.length = 0;
    // The store could settle neither in the batch.
    answerWith([undefined, undefined]);
    await settled();
    expect(store.calls.map(({ method, requests }) => [method, requests[0]?.key.pk])).toEqual([
      ["update", "k1"],
    ]);
    expect(other?.held).toBe(true);
  });

  it("stay in it when the time of one of them is over", async () => {
    const short = await client.acquire("short", { heartbeat: 3_000, leaseDurationMs: 6_001 });
    const long = await client.acquire("long", { heartbeat: 3_000, leaseDurationMs: 60_000 });
    store.calls.length = 0;
    const held = holdBatches();
    await clock.advance(4_600);
    expect(held.signals.map(({ aborted }) => aborted)).toEqual([false]);
    expect(store.calls).toEqual([]);
    held.answer();
    await settled();
    expect([short.held, long.remainingMs() > 58_000]).toEqual([true, true]);
  });

  it("end it when none of them waits for it any longer", async () => {
    const leases = await holdTogether(2);
    const held = holdBatches();
    await clock.advance(3_000);
    const releasing = leases.map((lease) => lease.release());
    await clock.advance(1_000);
    expect(await Promise.all(releasing)).toEqual([true, true]);
    expect(held.signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  it.each<[string, () => unknown]>([
    ["was rejected, for one of them may be at fault", () => store.next("rejected")],
    [
      "leaves some of them open and refuses others",
      () => {
        const refused = new LeaseServiceError("LEASE_REQUEST_REJECTED", "no");
        store.updateMany = async () => [undefined, refused, refused];
      },
    ],
  ])("are renewed one by one at once when the batch %s", async (_, go) => {
    const leases = await holdTogether(3);
    go();
    await clock.advance(3_000);
    expect(store.count("update")).toBe(3);
    expect(leases.every((lease) => lease.remainingMs() === leaseDurationMs)).toBe(true);
  });

  it("end one by one where the store throws at once, as mistakes in the program", async () => {
    const leases = await holdTogether(2);
    const mistake = new TypeError("no such thing");
    store.updateMany = async () => [undefined, undefined];
    store.update = () => {
      throw mistake;
    };
    await clock.advance(3_000);
    for (const { signal } of leases)
      expect(signal.reason).toMatchObject({ reason: "failed", cause: mistake });
  });

  it("are sent only while each of them that still waits may be, and tell the service's time", async () => {
    store.isLocal = false;
    const onEvent = (event: LeaseEvent): void => void events.push(event);
    client = new LeaseClient({ store, clock, randomness, renewals: together(), onEvent });
    const short = await client.acquire("short", { heartbeat: 3_000, leaseDurationMs: 6_001 });
    await client.acquire("long", { heartbeat: 3_000, leaseDurationMs: 60_000 });
    const calls: CallOptions[] = [];
    store.updateMany = (_, call) => {
      calls.push(call);
      return new Promise(() => undefined);
    };
    await clock.advance(3_000);
    const isCurrent = (): boolean | undefined => calls[0]?.isCurrent();
    const answered = calls[0]?.timed?.();
    expect(isCurrent()).toBe(true);
    clock.freeze(1_501);
    expect(isCurrent()).toBe(false);
    void short.release();
    await clock.advance(1_000);
    expect(isCurrent()).toBe(true);
    clock.freeze(2_500);
    expect(isCurrent()).toBe(false);
    events.length = 0;
    answered?.({ earliest: clock.now() + 3_600_000, latest: clock.now() + 3_601_000 });
    expect(events).toMatchObject([{ type: "skew" }]);
  });

  it("wait ever shorter, and never past the nearest deadline, while the service throttles them", async () => {
    await holdTogether(10);
    store.weather = "throttled";
    await clock.advance(leaseDurationMs - 500);
    const tries = store.calls.length;
    expect(tries).toBeGreaterThan(5);
    expect(tries).toBeLessThan(40);
    expect(countOf("lost")).toBe(0);
    store.weather = undefined;
    await clock.advance(400);
    expect(countOf("renewed")).toBe(10);
    await clock.advance(60_000);
    expect(countOf("lost")).toBe(0);
  });
});

describe("a heartbeat of leases that share requests", () => {
  it("sends leases that are due together in one call", async () => {
    const other = new LeaseClient({ store, clock, owner: "b", leaseDurationMs, renewals: together() });
    await Promise.all(["k1", "k2", "k3"].map((key) => client.acquire(key, { heartbeat: true })));
    // Its renewals are those of another client.
    for (const key of ["o1", "o2"]) await other.acquire(key, { heartbeat: true });
    await clock.advance(3_000);
    expect(batches().map((keys) => keys.toSorted())).toContainEqual(["k1", "k2", "k3"]);
    expect(batches()).toHaveLength(2);
  });

  it("sends one that is due alone as a write of its own", async () => {
    await holdTogether(1);
    await clock.advance(3_000);
    expect(store.calls.map(({ method }) => method)).toEqual(["update"]);
  });

  it("keeps two handles of one lease out of one batch, which would be refused as a whole", async () => {
    const lease = await client.acquire("k1");
    const adopted = [1, 2].map(() => client.adopt(lease.toJSON(), { heartbeat: true }));
    await client.acquire("k2", { heartbeat: true });
    await clock.advance(3_000);
    expect(batches()[0]?.toSorted()).toEqual(["k1", "k2"]);
    expect(adopted.map((handle) => handle.remainingMs())).toEqual([leaseDurationMs, leaseDurationMs]);
  });

  it("sends by itself what comes after its batch: the renewal of an adopted permit, which is read first", async () => {
    const semaphore = new Semaphore(client, "s", { permits: 2 });
    const permit = semaphore.adopt((await semaphore.acquire()).toJSON(), { heartbeat: true });
    await client.acquire("k1", { heartbeat: true });
    await clock.advance(3_000);
    expect(permit.remainingMs()).toBe(leaseDurationMs);
  });
});

describe("a hundred and fifty thousand leases", () => {
  it("are renewed in batches, each in its time, and none is lost", { tags: ["long"] }, async () => {
    const count = 150_000;
    const agreeing = new AgreeingStore();
    const tally = new Map<string, number>();
    const onEvent = ({ type }: LeaseEvent): void => void tally.set(type, (tally.get(type) ?? 0) + 1);
    const many = new LeaseClient({ store: agreeing, clock, randomness, renewals: together(), onEvent });
    const leases = await adoptMany(many, count, { leaseDurationMs: 3_600_000, heartbeat: 1_200_000 });
    await clock.advance(1_200_000);
    expect(tally.get("renewed")).toBe(count);
    expect(agreeing.batches).toEqual(Array(count / 25).fill(25));
    expect(leases.every((lease) => lease.remainingMs() === 3_600_000)).toBe(true);
  });
});

it("leases that are renewed together are sent in 48 requests at a time at most", async () => {
  const agreeing = new AgreeingStore();
  const many = new LeaseClient({ store: agreeing, clock, randomness, renewals: together() });
  await adoptMany(many, 49 * 25, { leaseDurationMs: 3_600_000, heartbeat: 1_200_000 });
  let sent = 0;
  agreeing.updateMany = () => {
    sent += 1;
    return new Promise(() => undefined);
  };
  await clock.advance(1_200_000);
  expect(sent).toBe(48);
});
