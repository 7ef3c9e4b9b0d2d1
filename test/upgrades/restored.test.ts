import { type Item, LeaseClient, LeaseLostError } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, expect, it } from "vitest";
import { blocksOf } from "../docs/blocks.ts";
import { itemsOf, put } from "../support/foreign-items.ts";
import { present } from "../worlds/release.ts";
import { expectedUse, itemsWrittenBy, useOf } from "./table-of-all.ts";

const backedUpAt = Date.UTC(2026, 0, 1);
const hourMs = 3_600_000;
const key = "import";
const slot = "2026-01-01";

let clock: ManualClock;
let table: MemoryLeaseStore;
let backup: readonly Item[];
let client: LeaseClient;

beforeEach(async () => {
  clock = new ManualClock(backedUpAt);
  table = new MemoryLeaseStore();
  client = new LeaseClient({ store: table, clock });
  await (await client.acquire(key)).release();
  backup = await itemsOf(table);
});

function restored(items: readonly Item[]): MemoryLeaseStore {
  const store = new MemoryLeaseStore();
  for (const { pk, sk, ...attributes } of items) put(store, String(pk), String(sk), attributes);
  return store;
}

/** What the program of the runbook does to the items that it finds. */
function raised(items: readonly Item[], nowMs: number): readonly Item[] {
  return items.map((item) => (Number(item.fence) < nowMs ? { ...item, fence: nowMs } : item));
}

it("a restored table grants fencing tokens that were granted since its backup, and runs slots again", async () => {
  const since = await client.acquire(key, { slot });
  await since.complete();
  const again = await new LeaseClient({ store: restored(backup), clock }).acquire(key, { slot });
  expect(again.fencingToken).toBe(since.fencingToken);
});

it("with its fencing tokens raised to the time, it grants larger ones than ever before", async () => {
  let latest = 0;
  for (let acquired = 0; acquired < 50; acquired += 1) {
    const lease = await client.acquire(key);
    latest = lease.fencingToken;
    await lease.release();
  }
  await clock.advance(hourMs);
  const store = restored(raised(backup, clock.now()));
  const next = await new LeaseClient({ store, clock }).acquire(key);
  expect(next.fencingToken).toBeGreaterThan(latest);
});

it("an empty table grants larger fencing tokens than the lost one", async () => {
  const last = await client.acquire(key);
  await clock.advance(hourMs);
  const next = await new LeaseClient({ store: new MemoryLeaseStore(), clock }).acquire(key);
  expect(next.fencingToken).toBeGreaterThan(last.fencingToken);
});

it("a holder whose lease is of after the backup loses it at its first renewal in the restored table", async () => {
  const lease = await client.acquire(key);
  const adopted = new LeaseClient({ store: restored(raised(backup, clock.now())), clock }).adopt(
    lease.toJSON(),
  );
  await expect(adopted.renew()).rejects.toThrow(LeaseLostError);
});

it("every kind of item can be used as before when its fencing token is raised", async () => {
  const items = await itemsWrittenBy(present);
  expect(await useOf(present, raised(items, backedUpAt + 30_000))).toEqual(expectedUse);
});

it("the runbook's program raises the fencing tokens, and leaves larger ones", () => {
  const [program] = blocksOf("docs/RUNBOOK.md").filter(({ code }) => code.includes("paginateScan"));
  expect(program?.code).toContain('FilterExpression: "fence < :now"');
  expect(program?.code).toContain('UpdateExpression: "SET fence = :now"');
});
