// A table that is worth a picture of the console: what a few systems do with it in the hours until a moment at which time
// stands still, so that the same pictures come out on every day.

import { type Lease, LeaseClient } from "@leasehold/client";
import { type LeaseChange, LeaseOperator } from "@leasehold/client/admin";
import { fair } from "@leasehold/client/fair";
import { historyItemOf } from "@leasehold/client/internal";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { putItem } from "../../test/support/recomposed.ts";

const [secondMs, minuteMs, hourMs, dayMs] = [1_000, 60_000, 3_600_000, 86_400_000];
const today = Date.UTC(2026, 10, 22);

/** The table, its clock, and the end of all who hold something there. */
export interface PlayedTable {
  readonly store: MemoryLeaseStore;
  readonly clock: ManualClock;
  close(): Promise<void>;
}

/** Plays until 22 November 2026, a quarter past nine, UTC. */
export async function playedTable(): Promise<PlayedTable> {
  const clock = new ManualClock(today - 8 * dayMs);
  const store = new MemoryLeaseStore("leases");
  let drawn = 0;
  const token = (): string => `token-${++drawn}`;
  const client = new LeaseClient({
    ...{ store, clock, owner: "ip-10-0-3-17:812" },
    randomness: { token, fraction: () => 0.5 },
  });
  const leaving = new AbortController();
  playJobs(client, clock);
  await until(clock, today + 8 * hourMs);
  await playTasks(client, clock);
  const waits = await playLocks(client, clock, store, leaving.signal);
  return {
    store,
    clock,
    close: async () => {
      leaving.abort();
      await Promise.all(waits);
      await client.close();
    },
  };
}

async function until(clock: ManualClock, at: number): Promise<void> {
  await clock.advance(Math.max(0, at - clock.now()));
}

type End = "done" | "fails" | "skipped" | "missed";

/** A job, when it is due, how long its work takes, and how it ends. */
interface PlayedJob {
  readonly runs: JobRuns;
  readonly firstAt: number;
  readonly everyMs: number;
  readonly tookMs: number;
  readonly ends: (index: number) => End;
}

function playJobs(client: LeaseClient, clock: ManualClock): void {
  const job = (name: string, schedule: string, options: object = {}): JobRuns =>
    new JobRuns(client, name, { schedule, describeError: String, ...options });
  const jobs: readonly PlayedJob[] = [
    {
      runs: job("daily-report", "cron(0 8 ? * * *)", { timeZone: "Europe/Berlin" }),
      ...{ firstAt: today - 7 * dayMs + 7 * hourMs, everyMs: dayMs, tookMs: 431 * secondMs },
      ends: (index) => (index === 2 ? "skipped" : "done"),
    },
    {
      runs: job("sync-inventory", "rate(15 minutes)", { maxAttempts: 1, owner: "lambda:sync-inventory" }),
      ...{ firstAt: today + 3 * hourMs, everyMs: 15 * minuteMs, tookMs: 38 * secondMs },
      ends: (index) => (index === 9 || index === 17 ? "fails" : index === 13 ? "missed" : "done"),
    },
    {
      runs: job("close-unpaid-orders", "rate(1 hour)", { owner: "lambda:close-unpaid-orders" }),
      ...{ firstAt: today - 16 * hourMs, everyMs: hourMs, tookMs: 9 * secondMs },
      ends: (index) => (index === 25 ? "fails" : "done"),
    },
    {
      runs: job("rotate-keys", "cron(30 4 ? * SUN *)"),
      ...{ firstAt: today + 4.5 * hourMs, everyMs: 7 * dayMs, tookMs: 3 * secondMs },
      ends: () => "done",
    },
  ];
  for (const one of jobs) void playJob(one, clock);
}

/** Runs each slot when it is due, for as long as the clock goes on. */
async function playJob(
  { runs, firstAt, everyMs, tookMs, ends }: PlayedJob,
  clock: ManualClock,
): Promise<void> {
  const later = (ms: number): Promise<void> => new Promise((resolve) => void clock.schedule(resolve, ms));
  for (let index = 0; ; index += 1) {
    const at = firstAt + index * everyMs;
    await later(at - clock.now());
    const slot = new Date(at).toISOString();
    const end = ends(index);
    if (end === "skipped") await runs.skip(slot, "holiday", { by: "alice@laptop" });
    if (end === "skipped" || end === "missed") continue;
    const work = async (): Promise<void> => {
      await later(tookMs + ((at / minuteMs) % 7) * secondMs);
      if (end === "fails") throw new Error("the warehouse answers 503");
    };
    // Ignored: a run that fails is meant to be seen.
    await runs.run(slot, work).catch(() => undefined);
  }
}

async function playTasks(client: LeaseClient, clock: ManualClock): Promise<void> {
  const ends: Readonly<
    Record<string, readonly [succeed: number, fail: number, claim: number, wait: number]>
  > = {
    "orders/2026-11-22": [143, 3, 4, 31],
    "invoices/november": [420, 0, 2, 12],
    thumbnails: [64, 9, 0, 0],
  };
  for (const [name, [succeed, fail, claim, wait]] of Object.entries(ends)) {
    const tasks = new TaskSet(client, name, {
      maxAttempts: 1,
      leaseDurationMs: 30 * minuteMs,
      heartbeat: false,
    });
    const ids = Array.from({ length: succeed + fail + claim + wait }, (_, index) => ({
      id: `doc-${String(index + 1).padStart(4, "0")}`,
      payload: { bucket: "scans", object: `2026/11/22/doc-${index + 1}.pdf`, pages: (index % 9) + 1 },
    }));
    for (let from = 0; from < ids.length; from += 25) await tasks.add(ids.slice(from, from + 25));
    for (let index = 0; index < succeed + fail + claim; index += 1) {
      const task = await tasks.claim();
      if (index < fail) await task?.fail("Error: connect ECONNREFUSED 10.0.7.12:9100");
      else if (index < fail + succeed) await task?.succeed();
    }
    await clock.advance(secondMs);
  }
}

async function playLocks(
  client: LeaseClient,
  clock: ManualClock,
  store: MemoryLeaseStore,
  signal: AbortSignal,
): Promise<readonly Promise<unknown>[]> {
  const note = (what: LeaseChange["what"], lease: Lease): void => {
    const { key, owner, acquiredAt, fencingToken } = lease;
    const change = {
      key,
      sortKey: "lease",
      owner,
      acquiredAt,
      fencingToken,
      what,
      at: clock.now(),
      reason: undefined,
    };
    putItem(store, historyItemOf(change, 30 * dayMs));
  };
  const renewed = { leaseDurationMs: minuteMs, heartbeat: true };
  const operator = new LeaseOperator(client, { by: "alice@laptop" });
  const hold = async (
    key: string,
    owner: string,
    forMs: number,
    end: "released" | "broken",
  ): Promise<void> => {
    const lease = await client.acquire(key, { owner, ...renewed });
    note("acquired", lease);
    await clock.advance(forMs);
    if (end === "broken")
      await operator.break(key, { token: lease.token, reason: "INC-4398, its host is gone" });
    else await lease.release();
    note(end, lease);
  };
  await until(clock, today + 8.25 * hourMs);
  await client.acquire("import/orders", {
    owner: "sfn:import-2f1c (keeper)",
    ...renewed,
    data: { file: "orders-4711.csv", step: "rows 41000 to 42000 of 96213", attempt: 1 },
  });
  await client.acquire("backup/eu-central-1", { owner: "ip-10-0-9-4:3310", leaseDurationMs: 40 * minuteMs });
  await hold("label-printer", "ip-10-0-9-4:3310", 8 * minuteMs, "released");
  await hold("label-printer", "lambda:labels 2026/11/22[$L]7c1e", 14 * minuteMs, "released");
  await operator.pause("price-feed", { forMs: 120 * minuteMs, reason: "INC-4411, vendor down" });
  await hold("label-printer", "ip-10-0-4-2:99", 19 * minuteMs, "broken");
  await client.acquire("deploy/production", { owner: "gitlab-runner-7 (job 88123)", ...renewed });
  await hold("label-printer", "ip-10-0-9-4:3310", 6 * minuteMs, "released");
  await clock.advance(2 * minuteMs);
  note(
    "acquired",
    await client.acquire("label-printer", { ...renewed, data: { job: "orders-4711", step: "page 3 of 9" } }),
  );
  const wait = { order: fair({ maxWaiters: 20 }), waitMs: hourMs, signal };
  const waits = ["ip-10-0-4-2:99", "lambda:labels 2026/11/22[$L]9b02", "bob@workstation"].map(
    async (owner, index) => {
      await new Promise<void>((resolve) => clock.schedule(resolve, (index * 4 + 1) * minuteMs));
      // Ignored: they end when the pictures are made.
      await client.acquire("label-printer", { ...wait, owner }).catch(() => undefined);
    },
  );
  const payments = new Semaphore(client, "payment-api", { permits: 5 });
  for (const owner of ["checkout-1", "checkout-2", "refunds"]) await payments.acquire({ owner, ...renewed });
  const catalog = new ReadWriteLock(client, "catalog/prices");
  for (const owner of ["web-1", "web-2"]) await catalog.read({ owner, ...renewed });
  await clock.advance(10 * minuteMs);
  const tenants = ["acme", "globex", "initech", "umbrella-north-america-production", "hooli"];
  for (const [index, tenant] of tenants.entries()) {
    await client.acquire(`tenant/${tenant}/reindex`, { owner: `worker-${index + 3}`, ...renewed });
    await clock.advance(17 * secondMs);
  }
  const deploying = await client.inspect("deploy/production");
  await operator.stop("deploy/production", { token: deploying?.token ?? "", reason: "freeze for the sale" });
  await clock.advance(secondMs);
  return waits;
}
