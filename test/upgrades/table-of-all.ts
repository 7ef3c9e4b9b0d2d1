/** A table with an item of each kind, as one release writes it, and what another one makes of it. */

import type { Item } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { itemsOf, put } from "../support/foreign-items.ts";
import type { Release } from "../worlds/release.ts";

/** When the items are written, and their short leases are over. */
const writtenAt = Date.UTC(2026, 0, 1);
const readAt = writtenAt + 60_000;
const writer = "writer";
const slots = ["2025-12-31T08:00:00.000Z", "2025-12-31T09:00:00.000Z"] as const;
const retentionMs = 24 * 3_600_000;
const longMs = 600_000;
const shortMs = 1_000;

/** Writes an item of each kind. */
export async function itemsWrittenBy(release: Release): Promise<readonly Item[]> {
  const { FairLock, JobRuns, LeaseClient, ReadWriteLock, Semaphore, SingleFlight, TaskSet } = release;
  const store = new MemoryLeaseStore();
  const clock = new ManualClock(writtenAt);
  let tokens = 0;
  const token = () => `0000000${++tokens}-0000-4000-8000-00000000000${tokens}`.slice(-36);
  const randomness = { token, fraction: () => 0.5 };
  const client = new LeaseClient({ store, clock, owner: writer, retentionMs, randomness });
  const long = { leaseDurationMs: longMs };

  await client.acquire("held", { ...long, data: { order: 7 } });
  await client.acquire("expired", { leaseDurationMs: shortMs });
  await (await client.acquire("released", long)).release();
  await (await client.acquire("done", { ...long, slot: "2026-01-01" })).complete();
  await (await client.acquire("cooling", { ...long, lockAtLeastForMs: longMs })).release();

  const semaphore = new Semaphore(client, "semaphore", { permits: 3 });
  await semaphore.acquire(long);
  await semaphore.acquire({ leaseDurationMs: shortMs });
  await semaphore.acquire(long);
  await new ReadWriteLock(client, "read-write").read(long);
  await new FairLock(client, "line").acquire(long);
  const waits = new FairLock(client, "line").acquire({ ...long, waitMs: longMs });
  waits.catch(() => undefined); // Ignored: it still waits when the table is read, and nobody goes on with it.
  await clock.advance(0);

  await new SingleFlight(client, { freshForMs: longMs }).getOrCompute("result", {
    compute: () => "computed",
  });
  const runs = new JobRuns(client, "report", { maxAttempts: 2 });
  await runs.run(slots[0], () => Promise.resolve("sent"));
  await runs.run(slots[1], () => Promise.reject(new Error("no paper"))).catch(() => undefined);
  const tasks = new TaskSet(client, "import", { maxAttempts: 1 });
  await tasks.add([{ id: "a", payload: 1 }]);
  await (await tasks.claim())?.succeed();
  await tasks.add([{ id: "b", payload: 2 }]);
  await (await tasks.claim())?.fail("unreadable");
  await tasks.add([{ id: "c", payload: 3 }]);
  return await itemsOf(store);
}

/** Acquires, reads and goes on with everything that is in the table; tells what came of it. */
export async function useOf(release: Release, items: readonly Item[]): Promise<Record<string, unknown>> {
  const { FairLock, JobRuns, LeaseClient, ReadWriteLock, Semaphore, SingleFlight, TaskSet } = release;
  const store = new MemoryLeaseStore();
  for (const { pk, sk, ...attributes } of items) put(store, String(pk), String(sk), attributes);
  const clock = new ManualClock(readAt);
  const client = new LeaseClient({ store, clock, owner: "reader", retentionMs });
  const fenceOf = (key: string): number => Number(items.find(({ pk }) => pk === key)?.fence);
  const isNewer = (lease: { key: string; fencingToken: number } | undefined): boolean =>
    lease !== undefined && lease.fencingToken > fenceOf(lease.key);
  const codeOf = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => "granted",
      ({ code }) => code,
    );
  const long = { leaseDurationMs: longMs };
  const semaphore = new Semaphore(client, "semaphore", { permits: 3 });
  const pages = new ReadWriteLock(client, "read-write");
  const line = new FairLock(client, "line");
  const flight = new SingleFlight(client, { freshForMs: longMs });
  const runs = new JobRuns(client, "report", { maxAttempts: 2 });
  const tasks = new TaskSet(client, "import", { maxAttempts: 1 });
  const lineNow = await line.inspect();
  const now = {
    holder: (await client.inspect("held"))?.owner,
    payload: (await client.inspect("held"))?.data,
    held: await codeOf(client.acquire("held", long)),
    expired: isNewer(await client.tryAcquire("expired", long)),
    released: isNewer(await client.tryAcquire("released", long)),
    done: await codeOf(client.acquire("done", { ...long, slot: "2026-01-01" })),
    due: await codeOf(client.acquire("done", { ...long, slot: "2026-01-02" })),
    cooling: await codeOf(client.acquire("cooling", long)),
    permits: [await semaphore.tryAcquire(long), await semaphore.tryAcquire(long)].map(isNewer),
    write: await codeOf(pages.write(long)),
    read: isNewer(await pages.tryRead(long)),
    line: { holder: lineNow.holder?.owner, waiters: lineNow.waiting.map(({ owner }) => owner) },
    newcomer: await codeOf(line.acquire(long)),
    result: await flight.getOrCompute("result", { compute: () => "computed again" }),
    runs: [(await runs.get(slots[0]))?.state, (await runs.get(slots[1]))?.state],
    doneRun: await codeOf(runs.run(slots[0], () => "sent twice")),
    secondAttempt: await runs.run(slots[1], ({ attempt }) => attempt),
    tasks: [(await tasks.get("a"))?.state, (await tasks.get("b"))?.state],
    task: await tasks.claim().then(async (task) => [task?.id, task?.payload, await task?.succeed()]),
    noTask: await tasks.claim(),
  };
  // Everything has expired by now, the place in the line too.
  await clock.advance(2 * longMs);
  const later = { afterHeld: client.tryAcquire("held"), afterLine: line.acquire() };
  return { ...now, afterHeld: isNewer(await later.afterHeld), afterLine: isNewer(await later.afterLine) };
}

/** What every release has to make of the items of every other one. */
export const expectedUse: Readonly<Record<string, unknown>> = {
  holder: writer,
  payload: { order: 7 },
  held: "LEASE_UNAVAILABLE",
  expired: true,
  released: true,
  done: "LEASE_SLOT_DONE",
  due: "granted",
  cooling: "LEASE_UNAVAILABLE",
  permits: [true, false],
  write: "LEASE_UNAVAILABLE",
  read: true,
  line: { holder: writer, waiters: [writer] },
  newcomer: "LEASE_UNAVAILABLE",
  result: "computed",
  runs: ["succeeded", "failed"],
  doneRun: "LEASE_SLOT_DONE",
  secondAttempt: 2,
  tasks: ["succeeded", "failed"],
  task: ["c", 3, undefined],
  noTask: undefined,
  afterHeld: true,
  afterLine: true,
};
