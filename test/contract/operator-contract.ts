import {
  LeaseClient,
  type LeaseClientOptions,
  type LeaseRecord,
  LeaseUnavailableError,
} from "@leasehold/client";
import { FairLock, fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { leaseState, renewedAt } from "@leasehold/client/record";
import { leaseItemKey } from "@leasehold/client/schema";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { beforeEach, describe, expect, it } from "vitest";
import { coreOf, query } from "../../packages/client/src/core/core.ts";
import {
  type AuditEntry,
  LeaseOperator,
  type LeaseOperatorOptions,
} from "../../packages/client/src/entries/admin.ts";
import { ReadWriteLock } from "../../packages/client/src/entries/read-write.ts";
import { Semaphore } from "../../packages/client/src/entries/semaphore.ts";
import { adminOf } from "../support/admin.ts";
import { PatientClock } from "../support/patient-clock.ts";
import type { Place } from "./lease-contract.ts";
import { newKey } from "./new-key.ts";

const leaseDurationMs = 300;
const clockSkewMs = 100;
const pastLease = leaseDurationMs + clockSkewMs + 1;
const reason = "INC-4411, host is gone";

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** What holds for people and tools that look after the leases of others, wherever the leases are kept. */
export function operatorContract(place: (clock: PatientClock) => Place): void {
  let clock: PatientClock;
  let key: string;

  const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
    new LeaseClient({ ...place(clock), clock, owner, leaseDurationMs, clockSkewMs, ...options });
  const operatorOf = (by: string, options: Partial<LeaseOperatorOptions> = {}): LeaseOperator =>
    new LeaseOperator(clientOf(by), { by, ...options });
  const recordOf = async (): Promise<LeaseRecord> => {
    const [record] = (await adminOf(clientOf("reader")).describe(key)).leases;
    if (record === undefined) throw new Error(`nobody holds ${key}`);
    return record;
  };
  const auditOf = async (): Promise<AuditEntry[]> => all(operatorOf("reader").audit({ key }));

  beforeEach(() => {
    clock = new PatientClock(Date.now());
    key = newKey("operator");
  });

  describe("a lock remembers its last holder", () => {
    const lastHolder = async () => (await adminOf(clientOf("reader")).describe(key)).lastHolder;

    it("who released it, when it was acquired, and when it ended", async () => {
      expect(await lastHolder()).toBeUndefined();
      const lease = await clientOf("a").acquire(key);
      expect(await lastHolder()).toBeUndefined();
      await clock.advance(50);
      await lease.release();
      const ended = { owner: "a", acquiredAt: lease.acquiredAt, end: "released" };
      expect(await lastHolder()).toMatchObject(ended);
      expect((await lastHolder())?.endedAt).toBeGreaterThanOrEqual(lease.acquiredAt + 50);
      await clientOf("b").acquire(key);
      expect(await lastHolder()).toMatchObject(ended);
    });

    it("who completed a slot, or was broken", async () => {
      await (await clientOf("a").acquire(key, { slot: "1" })).complete();
      expect(await lastHolder()).toMatchObject({ owner: "a", end: "completed" });
      await clientOf("b").acquire(key);
      await adminOf(clientOf("c")).forceRelease(key, { token: (await recordOf()).token });
      expect(await lastHolder()).toMatchObject({ owner: "b", end: "broken" });
    });

    it("who died, while the next one holds it", async () => {
      const dead = await clientOf("a").acquire(key);
      await clock.advance(pastLease);
      const next = await clientOf("b").acquire(key);
      expect(await lastHolder()).toMatchObject({ owner: "a", acquiredAt: dead.acquiredAt, end: "takenOver" });
      expect(await dead.release()).toBe(false);
      expect(await lastHolder()).toMatchObject({ owner: "a", end: "takenOver" });
      await next.release();
      expect(await lastHolder()).toMatchObject({ owner: "b", end: "released" });
    });

    it("who released it, and not its cooldown, when the next one follows", async () => {
      await (await clientOf("a").acquire(key, { lockAtLeastForMs: leaseDurationMs })).release();
      const ended = await lastHolder();
      expect(ended).toMatchObject({ owner: "a", end: "released" });
      await clock.advance(pastLease);
      await clientOf("b").acquire(key);
      expect(await lastHolder()).toEqual(ended);
    });
  });

  describe("a record's state", () => {
    const state = async (): Promise<string | undefined> =>
      (await operatorOf("reader").describe(key)).leases[0]?.state;

    it("is held, grace and expired as time passes, and tells when it was renewed", async () => {
      const lease = await clientOf("a").acquire(key);
      expect(await state()).toBe("held");
      await clock.advance(200);
      await lease.renew();
      const record = await recordOf();
      expect(renewedAt(record)).toBe(record.expiresAt - leaseDurationMs);
      expect(renewedAt(record)).toBeGreaterThanOrEqual(record.acquiredAt + 200);
      expect(leaseState(record, { nowMs: record.expiresAt, clockSkewMs })).toBe("held");
      expect(leaseState(record, { nowMs: record.expiresAt + 1, clockSkewMs })).toBe("grace");
      expect(leaseState(record, { nowMs: record.expiresAt + clockSkewMs, clockSkewMs })).toBe("grace");
      await clock.advance(pastLease);
      expect(await state()).toBe("expired");
    });

    it("is cooldown, and free when that is over", async () => {
      await (await clientOf("a").acquire(key, { lockAtLeastForMs: leaseDurationMs })).release();
      expect(await state()).toBe("cooldown");
      await clock.advance(pastLease);
      expect(await state()).toBe("free");
    });
  });

  describe("a description", () => {
    it("of a key that never was is empty", async () => {
      expect(await operatorOf("reader").describe(key)).toMatchObject({
        key,
        leases: [],
        lastHolder: undefined,
        doneSlot: undefined,
        waiting: [],
        parked: { count: 0, since: undefined },
        seats: [],
        items: {},
        audit: [],
      });
    });

    it("shows the leases of all primitives, permits with their number, and the slot that is done", async () => {
      await (await clientOf("a").acquire(key, { slot: "7" })).complete();
      await clientOf("a").acquire(key);
      const semaphore = new Semaphore(clientOf("b"), key, { permits: 5 });
      await semaphore.acquire({ permits: 2 });
      await new ReadWriteLock(clientOf("c"), key).read();
      const found = await operatorOf("reader").describe(key);
      expect(found.leases.map(({ sortKey, owner }) => [sortKey, owner])).toEqual([
        ["lease", "a"],
        ["read-write", "c"],
        ["semaphore", "b"],
      ]);
      expect(found).toMatchObject({ doneSlot: "7", items: { lease: 1, "read-write": 1, semaphore: 1 } });
      expect(found.seats).toEqual([
        { sortKey: "read-write", permits: undefined, taken: { permit: 0, read: 1, write: 0, intent: 0 } },
        { sortKey: "semaphore", permits: 5, taken: { permit: 2, read: 0, write: 0, intent: 0 } },
      ]);
    });

    it("shows who waits in line, in the order of their turns", async () => {
      const holder = await clientOf("a").acquire(key, { leaseDurationMs: 60_000 });
      const desk = new FairLock(clientOf("desk"), key);
      await desk.checkIn({ owner: "first", leaseDurationMs: 60_000 });
      await desk.checkIn({ owner: "second", leaseDurationMs: 60_000 });
      const { waiting } = await operatorOf("reader").describe(key);
      expect(waiting.map(({ sortKey, owner, position }) => [sortKey, owner, position])).toEqual([
        ["lease", "first", 1],
        ["lease", "second", 2],
      ]);
      expect(waiting[0]?.expiresAt).toBeGreaterThan(waiting[0]?.joinedAt ?? 0);
      await holder.release();
    });
  });

  describe("an operator", () => {
    it("asks a holder to stop, and leaves a trace of it", async () => {
      const lease = await clientOf("a").acquire(key);
      const { token } = await recordOf();
      const result = await operatorOf("alice").stop(key, { token, reason });
      expect(result).toMatchObject({ outcome: "done", lease: { owner: "a" } });
      await lease.renew().catch(() => undefined);
      expect(lease.loss).toMatchObject({ reason: "revoked" });
      const holder = { owner: "a", acquiredAt: lease.acquiredAt, fencingToken: lease.fencingToken };
      expect(await auditOf()).toEqual([
        { ...{ key, sortKey: "lease", action: "stop", by: "alice", reason, holder }, at: expect.any(Number) },
      ]);
    });

    it("breaks a lease, and its holder does not take that for its own release", async () => {
      const lease = await clientOf("a").acquire(key);
      const { token } = await recordOf();
      expect(await operatorOf("alice").break(key, { token, reason })).toMatchObject({ outcome: "done" });
      expect(await lease.release()).toBe(false);
      expect(await auditOf()).toMatchObject([
        { action: "break", by: "alice", reason, holder: { owner: "a" } },
      ]);
    });

    it("breaks a permit and a read lock, and asks their holders to stop", async () => {
      const permits = new Semaphore(clientOf("a"), key, { permits: 2 });
      await permits.acquire();
      await new ReadWriteLock(clientOf("b"), key).read();
      const operator = operatorOf("alice");
      for (const { sortKey, token } of (await operator.describe(key)).leases) {
        expect((await operator.stop(key, { sortKey, token })).outcome).toBe("done");
        expect((await operator.break(key, { sortKey, token, reason })).outcome).toBe("done");
      }
      const { leases, audit } = await operator.describe(key);
      expect(leases).toEqual([]);
      expect(audit.map(({ sortKey, action }) => `${action} ${sortKey}`).sort()).toEqual([
        "break read-write",
        "break semaphore",
        "stop read-write",
        "stop semaphore",
      ]);
    });

    it("never acts on another holder than the one that was seen, and leaves no trace then", async () => {
      const first = await clientOf("a").acquire(key);
      const { token } = await recordOf();
      await first.release();
      const operator = operatorOf("alice");
      expect(await operator.break(key, { token, reason })).toMatchObject({
        outcome: "free",
        lastHolder: { owner: "a" },
      });
      const second = await clientOf("b").acquire(key);
      const refused = { outcome: "heldByAnother", holder: { owner: "b" } };
      expect(await operator.break(key, { token, reason })).toMatchObject(refused);
      expect(await operator.stop(key, { token })).toMatchObject(refused);
      await second.renew();
      expect(await auditOf()).toEqual([]);
    });

    it("of two at once, one breaks it and the other finds it free, with one trace", async () => {
      await clientOf("a").acquire(key);
      const { token } = await recordOf();
      const outcomes = await Promise.all(
        ["alice", "bob"].map((by) => operatorOf(by).break(key, { token, reason })),
      );
      expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["done", "free"]);
      expect(await auditOf()).toHaveLength(1);
    });

    it("finds a lease free that ttl has removed", async () => {
      expect(await operatorOf("alice").break(key, { token: "gone", reason })).toEqual({
        outcome: "free",
        lastHolder: undefined,
      });
      expect(await operatorOf("alice").resume(key)).toMatchObject({ outcome: "free" });
      expect(await auditOf()).toEqual([]);
    });

    it("reads what was done to keys with a prefix, and only lately", async () => {
      for (const name of ["/x", "/y"]) await operatorOf("alice").pause(key + name, { forMs: 60_000, reason });
      await clock.advance(10_000);
      await operatorOf("bob").pause(`${key}/z`, { forMs: 60_000, reason });
      const read = async (options: object): Promise<string[]> => {
        const entries = await all(operatorOf("reader").audit(options));
        return entries.map((entry) => `${entry.by}${entry.key.slice(key.length)}`).sort();
      };
      expect(await read({ prefix: key })).toEqual(["alice/x", "alice/y", "bob/z"]);
      expect(await read({ prefix: key, sinceMs: 5_000 })).toEqual(["bob/z"]);
      expect(await read({ key: `${key}/x`, sinceMs: 5_000 })).toEqual([]);
      expect(await read({ key: `${key}/x` })).toEqual(["alice/x"]);
    });
  });

  describe("a pause", () => {
    it("keeps callers out, and tells them that nothing is stuck", async () => {
      const paused = await operatorOf("alice").pause(key, { forMs: 60_000, reason });
      expect(paused).toMatchObject({ outcome: "done", lease: { owner: "paused by alice" } });
      const refusal = await clientOf("a")
        .acquire(key)
        .catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(LeaseUnavailableError);
      expect(refusal).toMatchObject({ holder: "paused by alice", pause: { by: "alice", reason } });
      const [lease] = (await operatorOf("reader").describe(key)).leases;
      expect(lease).toMatchObject({ state: "paused", pause: { by: "alice", reason } });
      expect(lease).toEqual({ ...(paused.outcome === "done" && paused.lease), state: "paused" });
    });

    it("ends with resume, and the next caller gets the lock with a larger fencing token", async () => {
      const before = await clientOf("a").acquire(key);
      await before.release();
      const paused = await operatorOf("alice").pause(key, { forMs: 60_000, reason });
      await clock.advance(1);
      expect(await operatorOf("bob").resume(key, { reason: "vendor is back" })).toMatchObject({
        outcome: "done",
        lease: { pause: { by: "alice" } },
      });
      const after = await clientOf("b").acquire(key);
      expect((await recordOf()).pause).toBeUndefined();
      const pause = paused.outcome === "done" ? paused.lease : undefined;
      expect(pause?.fencingToken).toBeGreaterThan(before.fencingToken);
      expect(after.fencingToken).toBeGreaterThan(pause?.fencingToken ?? Number.POSITIVE_INFINITY);
      expect((await auditOf()).map(({ action, by }) => `${action} ${by}`)).toEqual([
        "pause alice",
        "resume bob",
      ]);
    });

    it("ends by itself, as a lease does: then it is free, and the next holder is not paused", async () => {
      await operatorOf("alice").pause(key, { forMs: 1_000, reason });
      await clock.advance(1_000 + clockSkewMs + 1);
      expect((await operatorOf("reader").describe(key)).leases[0]?.state).toBe("free");
      await clientOf("a").acquire(key);
      expect(await recordOf()).toMatchObject({ owner: "a" });
      expect((await recordOf()).pause).toBeUndefined();
    });

    it("takes the place of one that has ended by itself, of which no lease is left, in the lock or elsewhere", async () => {
      for (const forMs of [1_000, 2_000, 60_000]) {
        expect(await operatorOf("alice").pause(key, { forMs, reason })).toMatchObject({ outcome: "done" });
        const { leases, seats } = await operatorOf("reader").describe(key);
        expect([leases.length, seats]).toEqual([1, []]);
        if (forMs < 60_000) await clock.advance(forMs + clockSkewMs + 1);
        // A holder in between forgets the pause of the lock, and not that of the semaphore.
        if (forMs === 1_000) await (await clientOf("a").acquire(key)).release();
      }
      const semaphore = new Semaphore(clientOf("a"), key, { permits: 1 });
      expect(await semaphore.tryAcquire()).toBeUndefined();
      await operatorOf("alice").resume(key);
      expect((await operatorOf("reader").describe(key)).leases).toEqual([]);
      expect((await semaphore.acquire()).held).toBe(true);
    });

    it("takes over from a dead holder, and says so in its trace", async () => {
      await clientOf("a").acquire(key);
      await clock.advance(pastLease);
      expect(await operatorOf("alice").pause(key, { forMs: 60_000, reason })).toMatchObject({
        outcome: "done",
      });
      expect(await auditOf()).toMatchObject([{ action: "pause", holder: { owner: "a" } }]);
    });

    it("waits for the holder for as long as it may, and hurts none", async () => {
      const lease = await clientOf("a", { leaseDurationMs: 60_000 }).acquire(key);
      const operator = operatorOf("alice");
      expect(await operator.pause(key, { forMs: 60_000, reason })).toMatchObject({
        outcome: "heldByAnother",
        holder: { owner: "a" },
      });
      expect(await auditOf()).toEqual([]);
      let outcome: string | undefined;
      void operator.pause(key, { forMs: 60_000, reason, waitMs: 20_000 }).then((result) => {
        outcome = result.outcome;
      });
      await clock.advance(5);
      expect(await lease.release()).toBe(true);
      for (let step = 0; outcome === undefined && step < 1_000; step += 1) await clock.advance(20);
      expect(outcome).toBe("done");
    });

    it("is not had twice, and resume ends no holder's lease", async () => {
      await operatorOf("alice").pause(key, { forMs: 60_000, reason });
      expect(await operatorOf("bob").pause(key, { forMs: 60_000, reason })).toMatchObject({
        outcome: "heldByAnother",
        holder: { pause: { by: "alice" } },
      });
      const operator = operatorOf("bob");
      expect(await operator.resume(key, { token: "another" })).toMatchObject({ outcome: "heldByAnother" });
      await clock.advance(1);
      await operator.resume(key);
      await clientOf("a").acquire(key);
      expect(await operator.resume(key)).toMatchObject({ outcome: "heldByAnother", holder: { owner: "a" } });
      expect((await auditOf()).map(({ action }) => action)).toEqual(["pause", "resume"]);
    });
  });

  describe("a pause of everything under a key", () => {
    /** By its name, how something that a pause closes is asked for. */
    const closed: Readonly<Record<string, () => Promise<unknown>>> = {
      lock: () => clientOf("a").tryAcquire(key),
      "fair lock": () => clientOf("a").tryAcquire(key, { order: fair() }),
      permit: () => new Semaphore(clientOf("a"), key, { permits: 1_000 }).tryAcquire(),
      "fair permit": () => new Semaphore(clientOf("a"), key, { permits: 3, order: fair() }).tryAcquire(),
      "read lock": () => new ReadWriteLock(clientOf("a"), key).tryRead(),
      "write lock": () => new ReadWriteLock(clientOf("a"), key).tryWrite(),
      group: () => orUndefined(acquireAll(clientOf("a"), [key, `${key}/other`])),
      leadership: () => clientOf("a").tryAcquire(key, { reentrant: true, owner: "a" }),
    };
    const orUndefined = (work: Promise<unknown>): Promise<unknown> =>
      work.catch((error: unknown) => {
        if (!(error instanceof LeaseUnavailableError)) throw error;
        return undefined;
      });
    const pause = (by = "alice") => operatorOf(by).pause(key, { forMs: 60_000, reason });

    it.each(Object.entries(closed))(
      "keeps out whoever asks for a %s, and resume lets it in",
      async (_, ask) => {
        expect(await pause()).toMatchObject({ outcome: "done", leaves: { finishing: [], notPaused: [] } });
        expect(await ask()).toBeUndefined();
        await clock.advance(1);
        expect(await operatorOf("bob").resume(key)).toMatchObject({ outcome: "done" });
        expect(await ask()).toBeDefined();
      },
    );

    it("tells those whom it keeps out that nothing is stuck", async () => {
      await pause();
      for (const ask of [
        () => new Semaphore(clientOf("a"), key, { permits: 5 }).acquire(),
        () => new ReadWriteLock(clientOf("a"), key).read(),
        () => new ReadWriteLock(clientOf("a"), key).write(),
      ]) {
        const refusal = await ask().catch((error: unknown) => error);
        expect(refusal).toMatchObject({ holder: "paused by alice", pause: { by: "alice", reason } });
        expect(String(refusal)).toMatch(/(semaphore|read-write lock) ".*" is held by "paused by alice"/);
      }
    });

    it("lets permits, readers and writers finish that are there, and names them", async () => {
      const permits = new Semaphore(clientOf("a"), key, { permits: 5 });
      const [permit, reader] = [await permits.acquire(), await new ReadWriteLock(clientOf("b"), key).read()];
      const paused = await pause();
      const finishing = paused.outcome === "done" ? paused.leaves?.finishing : undefined;
      expect(finishing?.map(({ owner }) => owner).sort()).toEqual(["a", "b"]);
      const { leases } = await operatorOf("reader").describe(key);
      expect(leases.map(({ owner }) => owner)).toEqual(expect.arrayContaining(["a", "b"]));
      expect(await permits.tryAcquire()).toBeUndefined();
      await permit.renew();
      expect(await permit.release()).toBe(true);
      expect(await reader.release()).toBe(true);
      await permits.drain();
      expect(await permits.tryAcquire()).toBeUndefined();
      await operatorOf("bob").resume(key);
      expect(await permits.tryAcquire()).toBeDefined();
    });

    it("is seen where the key was used before, and leaves no sign of a use that never was", async () => {
      await (await new Semaphore(clientOf("a"), key, { permits: 5 }).acquire()).release();
      await (await new ReadWriteLock(clientOf("a"), `${key}/read`).read()).release();
      await pause();
      await operatorOf("alice").pause(`${key}/read`, { forMs: 60_000, reason });
      const { leases, seats, items } = await operatorOf("reader").describe(key);
      expect(leases.map(({ sortKey, state }) => [sortKey, state])).toEqual([
        ["lease", "paused"],
        ["semaphore", "paused"],
      ]);
      expect(seats).toMatchObject([{ sortKey: "semaphore", permits: 5, taken: { permit: 0 } }]);
      expect(items["read-write"]).toBeUndefined();
      expect((await operatorOf("reader").describe(`${key}/read`)).items).toMatchObject({ "read-write": 1 });
    });

    it("leaves none either where somebody has asked its permits to stop", async () => {
      await pause();
      const admin = adminOf(clientOf("reader"));
      const [{ token } = { token: "" }] = await admin.inspectAll(key);
      expect(await admin.requestRevocation(key, { sortKey: "semaphore", token })).toBe(true);
      expect(await admin.inspectAll(key)).toHaveLength(1);
    });

    it("leaves no sign after it either, however often it comes back", async () => {
      for (let round = 1; round <= 3; round += 1) {
        await pause();
        expect(await adminOf(clientOf("reader")).inspectAll(key)).toHaveLength(1);
        await clock.advance(1);
        await operatorOf("alice").resume(key);
        expect(await adminOf(clientOf("reader")).inspectAll(key)).toEqual([]);
        const { items, seats } = await operatorOf("reader").describe(key);
        expect(Object.keys(items).sort()).toEqual(["audit", "lease"]);
        expect(seats).toEqual([]);
        await clock.advance(1);
      }
    });

    it("names what it does not close: runs, tasks and computations", async () => {
      await new JobRuns(clientOf("a"), key).run(new Date(clock.now()), () => "done");
      await new TaskSet(clientOf("a"), key).add([{ id: "t" }]);
      expect(await pause()).toMatchObject({ leaves: { notPaused: ["runs", "tasks"] } });
    });

    it("ends by itself for all of them, and nobody is told of a dead holder", async () => {
      await operatorOf("alice").pause(key, { forMs: 1_000, reason });
      await clock.advance(1_000 + clockSkewMs + 1);
      const events: string[] = [];
      const client = clientOf("a", { onEvent: ({ type }) => events.push(type) });
      await client.acquire(key);
      await new Semaphore(client, key, { permits: 1 }).acquire();
      await new ReadWriteLock(client, key).write();
      expect(events).toEqual(["acquired", "acquired", "acquired"]);
      // What is left of the pause is no pause: nothing is resumed, and nothing is said of it.
      expect(await operatorOf("bob").resume(key)).toMatchObject({ outcome: "heldByAnother" });
    });

    it("can follow a pause that has ended by itself, and that is no dead holder in its trace", async () => {
      await operatorOf("alice").pause(key, { forMs: 1_000, reason });
      await clock.advance(1_000 + clockSkewMs + 1);
      expect(await pause("bob")).toMatchObject({
        outcome: "done",
        lease: { pause: { by: "bob" } },
        entry: { holder: undefined },
      });
      for (const ask of Object.values(closed)) expect(await ask()).toBeUndefined();
      await clock.advance(1);
      await operatorOf("bob").resume(key);
      expect(await new Semaphore(clientOf("a"), key, { permits: 1 }).tryAcquire()).toBeDefined();
      expect(await new ReadWriteLock(clientOf("a"), key).tryWrite()).toBeDefined();
    });

    it("of two at once, one has it and the other is told so, with one trace", async () => {
      const outcomes = await Promise.all(["alice", "bob"].map((by) => pause(by)));
      expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["done", "heldByAnother"]);
      expect(await auditOf()).toHaveLength(1);
      await clock.advance(1);
      const ended = await Promise.all(["alice", "bob"].map((by) => operatorOf(by).resume(key)));
      expect(ended.map(({ outcome }) => outcome).sort()).toEqual(["done", "free"]);
      for (const ask of [closed.permit, closed["write lock"]]) expect(await ask?.()).toBeDefined();
    });

    it("closes nothing while another holds the lock", async () => {
      await clientOf("a").acquire(key);
      expect(await pause()).toMatchObject({ outcome: "heldByAnother", holder: { owner: "a" } });
      expect(await closed.permit?.()).toBeDefined();
      expect(await closed["read lock"]?.()).toBeDefined();
    });
  });

  it("traces have the ttl that was asked for, and are no leases", async () => {
    await operatorOf("alice", { auditRetentionMs: 3_600_000 }).pause(key, { forMs: 60_000, reason });
    const client = clientOf("reader");
    expect(await adminOf(client).inspectAll(key)).toHaveLength(1);
    const listed = await all(adminOf(client).list({ prefix: key, all: true }));
    expect(listed.map(({ sortKey }) => sortKey)).toEqual(["lease"]);
    const [entry] = await auditOf();
    const condition = "#pk = :pk AND begins_with(#sk, :audit)";
    const { items } = await query(coreOf(client), {
      keyCondition: condition,
      names: { "#pk": "pk", "#sk": "sk" },
      values: { ":pk": key, ":audit": "audit#" },
      consistent: true,
    });
    expect(items).toMatchObject([{ ttl: Math.ceil(((entry?.at ?? 0) + 3_600_000) / 1000) }]);
    expect(leaseItemKey(key).sk).toBe("lease");
  });
}
