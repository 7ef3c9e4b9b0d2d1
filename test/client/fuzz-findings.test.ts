// What random input has found, and does not meet in each short run.

import { InvalidOptionsError, LeaseClient } from "@leasehold/client";
import { FairLock } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { beforeEach, expect, it } from "vitest";
import { leasehold } from "../support/command-line.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let store: ScriptedStore;
let client: LeaseClient;

beforeEach(() => {
  store = new ScriptedStore();
  client = new LeaseClient({ store, clock: new ManualClock() });
});

async function expectRefusal(call: () => unknown, option: string): Promise<void> {
  const error: unknown = await Promise.resolve()
    .then(call)
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(InvalidOptionsError);
  expect(error).toMatchObject({ option });
  expect(store.calls).toEqual([]);
}

it("a fair lock takes inherited options too, and refuses misspelt ones", async () => {
  const lock = new FairLock(client, "k");
  const lease = await lock.acquire(Object.create({ leaseDurationMs: 5_000 }));
  expect(lease.remainingMs()).toBe(5_000);
  await lease.release();
  store.calls.length = 0;
  await expectRefusal(() => lock.acquire(Object.create({ leaseMs: 5 })), "options.leaseMs");
});

it("an interruption ends a command that reads from a terminal nobody types on", async () => {
  for (const args of [
    ["tasks", "add", "orders"],
    ["check", "-"],
    ["renew", "-"],
    ["release", "-"],
  ]) {
    const controller = new AbortController();
    const called = leasehold(args, { store: new MemoryLeaseStore(), signal: controller.signal });
    await settled();
    controller.abort(new Error("SIGINT"));
    expect([args, (await called).code]).toEqual([args, 130]);
  }
});

it("a handle that says another seat than the table has leaves the item's counters as they are", async () => {
  const [lease, other] = [
    await new Semaphore(client, "k", { permits: 9 }).acquire({ permits: 2 }),
    await new Semaphore(client, "k", { permits: 9 }).acquire({ owner: "other", reentrant: true }),
  ];
  const handle = { ...lease.toJSON(), seat: { kind: "permit", permits: 7, reentrant: true } } as const;
  const elsewhere = new LeaseClient({ store, clock: new ManualClock() });
  const adopted = new Semaphore(elsewhere, "k", { permits: 9 }).adopt({ ...handle, owner: "other" });
  const free = async () => (await new Semaphore(client, "k", { permits: 9 }).inspect()).free;
  await adopted.renew();
  expect(await free()).toBe(6);
  await adopted.release();
  expect(await free()).toBe(8);
  await expect(
    new Semaphore(client, "k", { permits: 9 }).acquire({ owner: "other", reentrant: true }),
  ).resolves.toMatchObject({ held: true });
  await other.release();
});
