import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { type LeaseChange, LeaseOperator, leaseChanges, snapshotOf } from "@leasehold/client/admin";
import { coreOf, scan } from "@leasehold/client/internal";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { leaseItemKey } from "@leasehold/client/schema";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import type { AttributeValue, DynamoDBRecord } from "aws-lambda";
import { beforeEach, describe, expect, it } from "vitest";
import { recordHistory } from "../../packages/cdk/history/recording.ts";
import type { Item } from "../../packages/client/src/base/store.ts";
import { toAttributeValues } from "../../packages/client/src/stores/sdk/encoding.ts";
import { adminOf } from "../support/admin.ts";
import { put } from "../support/foreign-items.ts";
import { setting } from "../support/recomposed.ts";

const retentionMs = 30 * 86_400_000;
const reason = "INC-4411";
let store: MemoryLeaseStore;
let clock: ManualClock;
let records: DynamoDBRecord[];
let sortKey: string;
let last: Item | undefined;

const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
  new LeaseClient({ store, clock, owner, leaseDurationMs: 1_000, clockSkewMs: 100, ...options });

/** What the stream shows of one item: each state of it, whenever a test looks. */
function look(): void {
  const next = store.peek(leaseItemKey("k", sortKey));
  if (JSON.stringify(next) === JSON.stringify(last)) return;
  const image = (item: Item | undefined): object | undefined =>
    item && (toAttributeValues(item) as Record<string, AttributeValue>);
  records.push({
    eventID: String(records.length),
    dynamodb: {
      SequenceNumber: String(records.length),
      ApproximateCreationDateTime: clock.now() / 1000,
      ...(last && { OldImage: image(last) as never }),
      ...(next && { NewImage: image(next) as never }),
    },
  });
  last = next;
}

/** Looks, and lets a moment pass. */
async function lookOn(): Promise<void> {
  look();
  await clock.advance(1);
}

/** Writes down what has been seen, and reads it back. */
async function history(options = {}): Promise<LeaseChange[]> {
  look();
  const core = coreOf(clientOf("writer"));
  const put = async ({ pk, sk, ...content }: Item): Promise<void> => {
    await core.update(setting({ pk: String(pk), sk: String(sk) }, content));
  };
  expect(await recordHistory({ put, retentionMs }, { Records: records })).toEqual({ batchItemFailures: [] });
  const found: LeaseChange[] = [];
  const operator = new LeaseOperator(clientOf("reader"), { by: "reader" });
  for await (const change of operator.history("k", options)) found.push(change);
  return found;
}

const told = (changes: readonly LeaseChange[]): string[] =>
  changes.map(({ what, owner, reason: why }) => [what, owner, why].filter(Boolean).join(" "));

beforeEach(() => {
  store = new MemoryLeaseStore();
  clock = new ManualClock();
  records = [];
  last = undefined;
  sortKey = "lease";
});

describe("the history of a lock", () => {
  it("tells of acquisitions and of how each hold ended, and not of renewals", async () => {
    const first = await clientOf("a").acquire("k");
    look();
    await clock.advance(500);
    await first.renew();
    look();
    await first.release();
    look();
    await clock.advance(10);
    const second = await clientOf("b").acquire("k", { slot: "1" });
    look();
    await clock.advance(5);
    await second.complete();
    const changes = await history();
    expect(told(changes)).toEqual(["acquired a", "released a", "acquired b", "completed b"]);
    expect(changes[1]).toEqual({
      ...{ key: "k", sortKey: "lease", what: "released", owner: "a", fencingToken: first.fencingToken },
      ...{ acquiredAt: first.acquiredAt, at: first.acquiredAt + 500, reason: undefined },
    });
  });

  it("tells of a dead holder that was taken over, and of one that ttl has removed", async () => {
    await clientOf("a").acquire("k");
    look();
    await clock.advance(1_200);
    await clientOf("b").acquire("k");
    look();
    await clock.advance(8 * 86_400_000);
    store.collectGarbage(clock.now());
    expect(told(await history())).toEqual(["acquired a", "takenOver a", "acquired b", "expired b"]);
  });

  it("tells of breaks, stops and pauses, with their reasons", async () => {
    const operator = new LeaseOperator(clientOf("op"), { by: "alice" });
    const { token } = (await clientOf("a").acquire("k")).toJSON();
    await lookOn();
    await operator.stop("k", { token, reason });
    await lookOn();
    await operator.break("k", { token, reason });
    await lookOn();
    await operator.pause("k", { forMs: 60_000, reason });
    await lookOn();
    await operator.resume("k");
    expect(told(await history())).toEqual([
      "acquired a",
      `stopping a ${reason}`,
      "broken a",
      `paused paused by alice ${reason}`,
      "resumed paused by alice",
    ]);
  });

  it("takes a cooldown for a release, and its end for nothing", async () => {
    const lease = await clientOf("a").acquire("k", { lockAtLeastForMs: 1_000 });
    await lookOn();
    await lease.release();
    look();
    await clock.advance(1_200);
    await clientOf("b").acquire("k");
    expect(told(await history())).toEqual(["acquired a", "released a", "acquired b"]);
  });

  it("is the same when each record comes twice, in whatever batches", async () => {
    const lease = await clientOf("a").acquire("k");
    await lookOn();
    await lease.release();
    const once = await history();
    expect(await history()).toEqual(once);
    records = records.toReversed();
    expect(await history()).toEqual(once);
    expect(once).toHaveLength(2);
  });

  it("can be read from its end, so many changes, and only lately", async () => {
    for (const owner of ["a", "b", "c"]) {
      const lease = await clientOf(owner).acquire("k");
      await lookOn();
      await lease.release();
      look();
      await clock.advance(10_000);
    }
    expect(told(await history({ newestFirst: true, limit: 3 }))).toEqual([
      "released c",
      "acquired c",
      "released b",
    ]);
    expect(told(await history({ sinceMs: 11_000 }))).toEqual(["acquired c", "released c"]);
    const [item] = (
      await scan(coreOf(clientOf("r")), {
        filter: "begins_with(#sk, :h)",
        names: { "#sk": "sk" },
        values: { ":h": "~history#" },
      })
    ).items;
    expect(Number(item?.ttl)).toBeGreaterThanOrEqual((clock.now() + retentionMs) / 1000 - 60);
  });

  it("is nothing that other readers of the key see", async () => {
    const lease = await clientOf("a").acquire("k");
    look();
    await lease.release();
    await history();
    const client = clientOf("reader");
    expect(await adminOf(client).inspectAll("k")).toEqual([]);
    const description = await new LeaseOperator(client, { by: "r" }).describe("k");
    expect(description.items).toEqual({ lease: 1 });
    for await (const { key } of adminOf(client).list({ all: true })) expect(key).toBeUndefined();
  });
});

it("traces and history are nothing that the jobs, tasks and values under the same key see", async () => {
  const client = clientOf("a", { retentionMs: 90 * 86_400_000 });
  const operator = new LeaseOperator(client, { by: "alice" });
  await operator.pause("k", { forMs: 60_000, reason });
  await lookOn();
  await operator.resume("k");
  expect(await history()).toHaveLength(2);

  const runs = new JobRuns(client, "k");
  const slot = new Date(clock.now() - 60_000).toISOString();
  const later = new Date(clock.now() - 30_000).toISOString();
  await runs.run(slot, () => "done");
  for (const options of [{}, { until: later }, { since: slot }]) {
    const found: string[] = [];
    for await (const run of runs.runs(options)) found.push(run.slot);
    expect(found).toEqual([slot]);
  }

  const tasks = new TaskSet(client, "k");
  await tasks.add([{ id: "1" }]);
  expect(await tasks.counts()).toMatchObject({ waiting: 1 });
  expect((await tasks.claim())?.id).toBe("1");
  expect(await tasks.claim()).toBeUndefined();

  const values = new SingleFlight(client, { freshForMs: 1_000 });
  expect(await values.getOrCompute("k", { compute: () => 7 })).toBe(7);
});

describe("changes of seats", () => {
  it("tell of each permit by itself", async () => {
    sortKey = "semaphore";
    const permits = (owner: string): Semaphore => new Semaphore(clientOf(owner), "k", { permits: 2 });
    const lease = await permits("a").acquire();
    look();
    await permits("b").acquire();
    await lookOn();
    await lease.release();
    look();
    await clock.advance(1_200);
    await permits("c").acquire({ permits: 2 });
    expect(told(await history())).toEqual([
      "acquired a",
      "acquired b",
      "released a",
      "takenOver b",
      "acquired c",
    ]);
  });

  it("tell of writers and readers, and not of a writer that waits", async () => {
    sortKey = "read-write";
    const reading = await new ReadWriteLock(clientOf("a"), "k").read();
    look();
    const writing = new ReadWriteLock(clientOf("b"), "k").write({ waitMs: 900 });
    await clock.advance(10);
    look();
    await reading.release();
    look();
    await clock.advance(2_000);
    await writing;
    expect(told(await history())).toEqual(["acquired a", "released a", "acquired b"]);
  });
});

describe("the recorder", () => {
  const put = async (): Promise<void> => {
    throw new Error("no");
  };

  it("repeats from what it could not write", async () => {
    await clientOf("a").acquire("k");
    look();
    const event = { Records: records };
    expect(await recordHistory({ put, retentionMs }, event)).toEqual({
      batchItemFailures: [{ itemIdentifier: "0" }],
    });
  });

  it("leaves out what it cannot read, and what is no change", async () => {
    const image = { pk: { S: "k" }, sk: { S: "lease" }, token: { N: "7" } };
    const none = { pk: { S: "k" }, sk: { S: "~history#x" }, data: { S: "{}" } };
    const Records = [{ dynamodb: { NewImage: image } }, { dynamodb: { NewImage: none } }, {}];
    expect(await recordHistory({ put, retentionMs }, { Records })).toEqual({ batchItemFailures: [] });
  });
});

it("a lease whose end another program has written in a way that nobody can read has gone, and the history goes on", async () => {
  await clientOf("a").acquire("k");
  look();
  put(store, "k", "lease", {
    fence: 7,
    lastOwner: "a",
    lastAcquiredAt: clock.now(),
    lastEnd: "released soon",
  });
  const [, end, ...more] = await history();
  expect([end, more]).toEqual([expect.objectContaining({ what: "gone", at: clock.now() }), []]);
});

it("looks without an item tell that a lease has gone, but not how", async () => {
  const client = clientOf("a");
  const lease = await client.acquire("k");
  const [before] = await adminOf(client).inspectAll("k");
  await lease.release();
  const after = leaseChanges({ leases: before ? [before] : [] }, { leases: [] }, 7);
  expect(after).toMatchObject([{ what: "gone", owner: "a", at: 7 }]);
  const { lastHolder } = await adminOf(client).describe("k");
  const better = leaseChanges({ leases: before ? [before] : [] }, { leases: [], lastHolder }, 7);
  expect(better).toMatchObject([{ what: "released", owner: "a" }]);
  expect(snapshotOf(undefined)).toBeUndefined();
});
