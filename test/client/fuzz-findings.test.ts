// What the properties in test/fuzz have found, one by one.

import { InvalidOptionsError, LeaseAbortedError, LeaseClient } from "@leasehold/client";
import { FairLock } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { JobRuns, parseScheduleExpression, TaskSet } from "@leasehold/jobs";
import { leased, leaseLock } from "@leasehold/middy";
import { beforeEach, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { leasehold } from "../support/command-line.ts";
import { ask, serveConsole, sessionOf } from "../support/console.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

// biome-ignore lint/suspicious/noExplicitAny: bad input is what is tested.
type Anything = any;

let store: ScriptedStore;
let client: LeaseClient;

beforeEach(() => {
  store = new ScriptedStore();
  client = new LeaseClient({ store, clock: new ManualClock() });
});

function revoked(): Anything {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

async function expectRefusal(call: () => unknown, option: string): Promise<void> {
  const error: unknown = await Promise.resolve()
    .then(call)
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(InvalidOptionsError);
  expect(error).toMatchObject({ option });
  expect(store.calls).toEqual([]);
}

it("options of null are refused as options, by every way to acquire", async () => {
  await expectRefusal(() => client.acquire("k", null as Anything), "options");
  await expectRefusal(() => client.tryAcquire("k", null as Anything), "options");
  await expectRefusal(() => client.withLease("k", null as Anything, () => 1), "options");
  await expectRefusal(() => new FairLock(client, "k").acquire(null as Anything), "options");
});

it("a proxy that has been revoked is refused as options", async () => {
  await expectRefusal(() => new LeaseClient(revoked()), "options");
  await expectRefusal(() => client.acquire("k", revoked()), "options");
});

it("a value that does not let itself be looked at is refused by its option", async () => {
  await expectRefusal(() => adminOf(client).listPages({ after: revoked() }).next(), "after");
  await expectRefusal(() => client.acquire("k", { slot: revoked() }), "slot");
  await expectRefusal(() => new JobRuns(client, "job").get(revoked()), "slot");
  await expectRefusal(() => new JobRuns(client, "job").takeBack(revoked()), "run");
  const query = { schedule: revoked(), since: "2025-12-31T10:00:00.000Z" };
  await expectRefusal(() => new JobRuns(client, "job").missed(query).next(), "schedule");
});

it("an order of waiting that is none is refused when the primitive is made", async () => {
  for (const order of [{}, 7, () => undefined]) {
    await expectRefusal(() => new Semaphore(client, "k", { permits: 1, order: order as Anything }), "order");
    await expectRefusal(() => new ReadWriteLock(client, "k", { order: order as Anything }), "order");
  }
});

it("a strategy of waiting is one text, not a list of one", async () => {
  const retry = { strategy: ["fixed"], delayMs: 5 } as Anything;
  await expectRefusal(() => client.acquire("k", { waitMs: 1, retry }), "retry.strategy");
});

it("a fair lock takes inherited options too, and refuses misspelt ones", async () => {
  const lock = new FairLock(client, "k");
  const lease = await lock.acquire(Object.create({ leaseDurationMs: 5_000 }));
  expect(lease.remainingMs()).toBe(5_000);
  await lease.release();
  store.calls.length = 0;
  await expectRefusal(() => lock.acquire(Object.create({ leaseMs: 5 })), "options.leaseMs");
});

it("a signal whose reason has no text ends a call with a named error", async () => {
  const signal = AbortSignal.abort(Object.create(null));
  await expect(client.acquire("k", { signal })).rejects.toBeInstanceOf(LeaseAbortedError);
});

it("a schedule that is no text, and a time that is none, are refused by name", () => {
  for (const expression of [undefined, 7, [[0n]], Symbol("s"), revoked()]) {
    expect(() => parseScheduleExpression(expression as Anything)).toThrow(InvalidOptionsError);
  }
  expect(() => parseScheduleExpression("rate(1 day)", { start: "today" as Anything })).toThrow(
    InvalidOptionsError,
  );
  for (const expression of ["rate(1 day)", "cron(0 8 * * ? *)", "at(2026-11-21T10:00:00)"]) {
    const times = parseScheduleExpression(expression);
    for (const after of [undefined, new Date(Number.NaN), revoked()]) {
      expect(() => times.next(after)).toThrow(InvalidOptionsError);
    }
  }
});

it("a list that does not let itself be looked at, or has a hole, is refused", async () => {
  await expectRefusal(() => acquireAll(client, revoked()), "keys");
  await expectRefusal(() => new TaskSet(client, "set").add(revoked()), "tasks");
  const withHole = Object.assign(new Array(2), { 1: "k" });
  await expectRefusal(() => acquireAll(client, withHole), "key");
  await expectRefusal(
    () => new TaskSet(client, "set").add(Object.assign(new Array(2), { 1: { id: "1" } })),
    "tasks[0]",
  );
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

it("a handle whose cooldown would keep a lock closed for ages is refused", async () => {
  const handle = (await client.acquire("k")).toJSON();
  store.calls.length = 0;
  const cooldownUntil = Number.MAX_SAFE_INTEGER;
  await expectRefusal(() => client.adopt({ ...handle, cooldownUntil }), "handle.cooldownUntil");
});

const invocation = { awsRequestId: "r", functionName: "f", getRemainingTimeInMillis: () => 30_000 };

it.each([
  ["context.getRemainingTimeInMillis", { ...invocation, getRemainingTimeInMillis: 30_000 }],
  ["context.getRemainingTimeInMillis's answer", { ...invocation, getRemainingTimeInMillis: () => "30" }],
  ["context.awsRequestId", { ...invocation, awsRequestId: Symbol("r") }],
  ["context.functionName", { ...invocation, functionName: 7 }],
])("a locked function refuses a context by its member: %s", async (option, context) => {
  const handler = leased({ client, key: "k", metrics: false }, async () => 1);
  await expectRefusal(() => handler({}, context as Anything), option);
});

it("a context that takes no lock is refused before the lock is taken", async () => {
  const { before } = leaseLock({ client, key: "k", metrics: false });
  const request = { event: {}, context: Object.freeze({ ...invocation }), internal: {} };
  await expectRefusal(() => before(request as Anything), "context");
});
