// What random input has found, and does not meet in each short run.

import { InvalidOptionsError, LeaseClient } from "@leasehold/client";
import { FairLock } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { beforeEach, expect, it } from "vitest";
import { leasehold } from "../support/command-line.ts";
import { ask, serveConsole, sessionOf } from "../support/console.ts";
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

it("the console answers an address that is none with 400, and tells nothing of the table without a session", async () => {
  const served = await serveConsole(new MemoryLeaseStore());
  const answer = await ask(`${served.origin}//`);
  expect([answer.status, answer.body]).toEqual([400, "this is no address of a page\n"]);
});

it("the console refuses to requeue what is no list of tasks", async () => {
  const served = await serveConsole(new MemoryLeaseStore(), ["--write"]);
  const headers = { "x-leasehold-write": "1", cookie: await sessionOf(served) };
  for (const ids of ["[", "7", "null", "[7]", '{"a":1}']) {
    const body = JSON.stringify({ set: "orders", ids });
    const { status } = await ask(`${served.origin}/act/requeue`, { method: "POST", headers, body });
    expect([ids, status]).toEqual([ids, 400]);
  }
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

it("the console answers a page whose address has a wrong value with 400, and says what is allowed", async () => {
  const served = await serveConsole(new MemoryLeaseStore());
  const headers = { cookie: await sessionOf(served) };
  const { status, body } = await ask(`${served.origin}/tasks/set?set=orders&state=asleep`, { headers });
  expect([status, body]).toEqual([400, expect.stringContaining("allowed: waiting, running")]);
  expect(served.said()).not.toContain("asleep");
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
