/** The promises of docs/guarantees.md and docs/limits.md, one by one. Other tests try harder to break them. */
import { type Lease, LeaseClient, LeaseServiceError, type LeaseStore } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { farAway, Machine } from "../support/wrong-clocks.ts";

const minute = 60_000;
const day = 24 * 60 * minute;

let clock: ManualClock;
let table: MemoryLeaseStore;

beforeEach(() => {
  clock = new ManualClock();
  table = new MemoryLeaseStore("leases");
});

const clientOf = (
  owner: string,
  over: Partial<ConstructorParameters<typeof LeaseClient>[0]> = {},
): LeaseClient => new LeaseClient({ store: table, clock, owner, leaseDurationMs: 30 * minute, ...over });

/** A holder whose lease is over, and the next one. */
async function staleAndNext(): Promise<{ readonly stale: Lease; readonly next: Lease }> {
  const stale = await clientOf("A").acquire("k");
  await clock.advance(32 * minute);
  return { stale, next: await clientOf("B").acquire("k") };
}

describe("a stale holder, once another holder has acquired the lock", () => {
  it("changes nothing by a renewal or a release", async () => {
    const { stale, next } = await staleAndNext();
    const before = table.peek({ pk: "k", sk: "lease" });
    // By its handle, for a holder that knows of its end sends nothing.
    const late = clientOf("A").adopt(stale.toJSON());
    await expect(late.renew()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    expect(await late.release()).toBe(false);
    expect(await stale.release()).toBe(false);
    expect(table.peek({ pk: "k", sk: "lease" })).toEqual(before);
    expect(next.held).toBe(true);
  });

  it("is refused by a fence once a later holder has written the item, and not before", async () => {
    const { stale, next } = await staleAndNext();
    const write = (lease: Lease): boolean => {
      const fence = lease.fence({ format: "native" });
      const [update, condition] = [fence.UpdateExpression, fence.ConditionExpression];
      const [names, values] = [fence.ExpressionAttributeNames, fence.ExpressionAttributeValues];
      const key = { pk: "report", sk: "1" };
      return table.updateNow({ key, update, condition, names, values, returnsItem: false }).applied;
    };
    expect([write(stale), write(next), write(stale)]).toEqual([true, true, false]);
  });

  it("is refused by a condition check at once", async () => {
    const { stale, next } = await staleAndNext();
    const holds = ({ conditionCheck }: Lease, lease: Lease): boolean => {
      const { ConditionCheck: check } = conditionCheck.call(lease, { format: "native" });
      const key = { pk: String(check.Key.pk), sk: String(check.Key.sk) };
      const [condition, names] = [check.ConditionExpression, check.ExpressionAttributeNames];
      const values = check.ExpressionAttributeValues as Record<string, string | number>;
      return table.transactNow([{ key, condition, names, values, action: "check" }]).applied;
    };
    expect([holds(stale, stale), holds(next, next)]).toEqual([false, true]);
  });
});

describe("fencing tokens", () => {
  it("grow over a release, a takeover, a break, and the removal of the item by ttl", async () => {
    const tokens: number[] = [];
    const take = async (owner: string): Promise<Lease> => {
      const lease = await clientOf(owner).acquire("k");
      tokens.push(lease.fencingToken);
      return lease;
    };
    await (await take("released")).release();
    await take("dead");
    await clock.advance(32 * minute);
    const broken = await take("broken");
    await adminOf(clientOf("operator")).forceRelease("k", { token: broken.token });
    await (await take("gone")).release();
    await clock.advance(8 * day);
    expect(table.collectGarbage(clock.now())).toBe(1);
    await take("last");
    expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other));
  });

  it("may fall where a wall clock is slow by more than retentionMs, and ttl has removed the item: a limit", async () => {
    const before = await clientOf("A").acquire("k");
    await before.release();
    await clock.advance(8 * day);
    table.collectGarbage(clock.now());
    const store = farAway(table, () => clock.now());
    const after = await clientOf("B", { store, clock: new Machine(clock, -9 * day) }).acquire("k");
    expect(after.fencingToken).toBeLessThan(before.fencingToken);
  });
});

describe("a holder that was frozen beyond its lease", () => {
  it.each<[string, (lease: Lease) => unknown, unknown]>([
    ["held", (lease) => lease.held, false],
    ["signal", (lease) => lease.signal.aborted, true],
    ["remainingMs()", (lease) => lease.remainingMs(), 0],
    ["renew()", (lease) => lease.renew().catch(({ code }) => code), "LEASE_LOST"],
  ])(
    "knows it when it asks %s first, before any timer has fired, and keeps nobody out any longer",
    async (_, ask, answer) => {
      const lease = await clientOf("A").acquire("k");
      clock.freeze(31 * minute);
      expect(await ask(lease)).toBe(answer);
      expect(await clientOf("B").tryAcquire("k")).toBeDefined();
    },
  );
});

it.each<[string, (lease: Lease) => Promise<unknown>]>([
  ["an operator breaks", ({ token }) => adminOf(clientOf("operator")).forceRelease("k", { token })],
  [
    "its reentrant owner takes over elsewhere",
    () => clientOf("B").acquire("k", { owner: "o", reentrant: true }),
  ],
])("a holder whose lease %s believes in it until its next renewal: a limit", async (_, end) => {
  const lease = await clientOf("A").acquire("k", { owner: "o", reentrant: true });
  await end(lease);
  expect(lease.held).toBe(true);
  await lease.renew().catch(() => undefined);
  expect(lease.held).toBe(false);
});

it("a holder with a heartbeat renews every third of its lease, and nobody gets in until it has finished", async () => {
  const holder = await clientOf("A").acquire("k", { heartbeat: true });
  for (let minutes = 0; minutes < 120; minutes += 10) {
    const before = holder.expiresAt;
    await clock.advance(10 * minute);
    expect(holder.expiresAt).toBeGreaterThan(before);
    expect(await clientOf("B").tryAcquire("k")).toBeUndefined();
  }
  await holder.release();
  expect(await clientOf("B").tryAcquire("k")).toBeDefined();
});

it("a run without a slot may happen again: a trigger that comes twice runs twice", async () => {
  const ran: string[] = [];
  for (const delivery of ["first", "second"])
    await clientOf(delivery).withLease("job", {}, async () => ran.push(delivery));
  expect(ran).toEqual(["first", "second"]);
});

it("a waiter's owner in a fair line is cut to 64 bytes", async () => {
  await clientOf("holder").acquire("k", { order: fair() });
  const waiting = clientOf("w".repeat(200)).acquire("k", { order: fair(), waitMs: minute });
  waiting.catch(() => undefined);
  await clock.advance(1_000);
  const item = table.peek({ pk: "k", sk: "lease" }) ?? {};
  const ticket = Object.entries(item).find(([name]) => name.startsWith("w:"))?.[1];
  expect(/w{2,}/.exec(String(ticket))?.[0]).toHaveLength(64);
});

describe("a table without transactions", () => {
  const without = (): LeaseStore => {
    const refused = () =>
      Promise.reject(new LeaseServiceError("LEASE_REQUEST_REJECTED", "no transactions here"));
    return new Proxy(table, {
      get: (target, name) => {
        if (name === "transact") return refused;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  let client: LeaseClient;

  beforeEach(() => {
    client = clientOf("A", { store: without() });
  });

  it.each<[string, () => Promise<unknown>]>([
    ["a lock", async () => (await client.acquire("k")).release()],
    ["fence()", async () => (await client.acquire("k")).fence()],
    [
      "client.forceRelease",
      async () => adminOf(client).forceRelease("k", { token: (await client.acquire("k")).token }),
    ],
    ["a leader", async () => (await new Leader(client, "k").campaign()).held],
    ["a semaphore", async () => (await new Semaphore(client, "k", { permits: 2 }).acquire()).release()],
    ["a reader", async () => (await new ReadWriteLock(client, "k").read()).release()],
    ["a writer", async () => (await new ReadWriteLock(client, "k").write()).release()],
    ["a fair lock", async () => (await client.acquire("k", { order: fair() })).release()],
    [
      "single flight",
      () => new SingleFlight(client, { freshForMs: minute }).getOrCompute("k", { compute: async () => 1 }),
    ],
    ["job runs", () => new JobRuns(client, "job").run("2026-01-01T00:00:00.000Z", async () => 1)],
  ])("serves %s", async (_, use) => {
    await use();
  });

  it.each<[string, () => Promise<unknown>]>([
    ["acquireAll", () => acquireAll(client, ["k", "l"])],
    ["TaskSet", () => new TaskSet(client, "set").add([{ id: "t" }, { id: "u" }])],
    [
      "LeaseOperator",
      () => new LeaseOperator(client, { by: "me" }).pause("k", { forMs: minute, reason: "repair" }),
    ],
  ])("does not serve %s", async (_, use) => {
    await expect(use()).rejects.toThrow();
  });
});
