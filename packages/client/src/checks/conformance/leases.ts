/**
 * The behaviour of a lock on the store. Time is the checks' own clock, so nothing waits; the store counts as one that
 * tells no time.
 */
import assert from "node:assert/strict";
import { LeaseLostError, LeaseUnavailableError } from "../../base/errors.ts";
import { attributeNames, leaseSortKey } from "../../base/schema.ts";
import type { CallOptions } from "../../base/store.ts";
import { LeaseClient } from "../../core/client.ts";
import { ManualClock } from "../../stores/memory/manual-clock.ts";
import { type CheckTable, type ConformanceCheck, defineCheck } from "./check.ts";
import { observed } from "./observed.ts";

const leaseDurationMs = 30_000;
const clockSkewMs = 1_000;
const retentionMs = 86_400_000;
const contenders = 12;

/** The parts that the checks of leases use. */
interface LockUnderTest {
  readonly table: CheckTable;
  readonly key: string;
  readonly clock: ManualClock;
  /** A separate client, as of another process. */
  readonly client: (owner: string) => LeaseClient;
}

export const leaseChecks: readonly ConformanceCheck[] = [
  lock(
    "a free lock is acquired, and another caller is refused with the holder and the lease's end",
    async ({ key, client }) => {
      const lease = await client("a").acquire(key);
      assert.equal(lease.held, true);
      const refusal = await client("b")
        .acquire(key)
        .then(
          () => undefined,
          (error: unknown) => error,
        );
      assert.ok(refusal instanceof LeaseUnavailableError, "the lock is held by another");
      assert.deepEqual([refusal.holder, refusal.expiresAt], ["a", lease.expiresAt]);
    },
  ),

  lock(
    "of many callers at the same time one has the lock, and fencing tokens only grow",
    async ({ key, client }) => {
      let last = 0;
      for (let round = 0; round < 3; round += 1) {
        const attempts = Array.from({ length: contenders }, (_, index) =>
          client(`c${index}`).tryAcquire(key),
        );
        const [lease, ...others] = (await Promise.all(attempts)).filter((each) => each !== undefined);
        assert.ok(lease !== undefined && others.length === 0, `one of ${contenders} has the lock`);
        assert.ok(lease.fencingToken > last, "the fencing token is larger than all before");
        last = lease.fencingToken;
        assert.equal(await lease.release(), true);
      }
    },
  ),

  lock(
    "a released lock is free at once, and a release is the same when it is made again",
    async ({ key, client }) => {
      const first = await client("a").acquire(key);
      assert.deepEqual([await first.release(), await first.release()], [true, true]);
      assert.equal(await client("b").inspect(key), undefined);
      const second = await client("b").acquire(key);
      assert.equal(second.fencingToken, first.fencingToken + 1);
      assert.equal(await first.release(), true, "a release that was made keeps its answer");
      assert.equal((await client("c").inspect(key))?.token, second.token);
    },
  ),

  lock(
    "a dead holder's lock is taken over once its lease has been watched, and its late calls change nothing",
    async ({ key, client, clock }) => {
      const dead = await client("a").acquire(key);
      assert.equal(await client("b").tryAcquire(key), undefined);
      await clock.advance(leaseDurationMs + clockSkewMs + 1);
      const next = await client("b").tryAcquire(key);
      assert.equal(next?.fencingToken, dead.fencingToken + 1);
      assert.equal(await dead.release(), false);
      await assert.rejects(client("a").adopt(dead.toJSON()).renew(), LeaseLostError);
      const record = await client("c").inspect(key);
      assert.deepEqual([record?.token, record?.expiresAt], [next?.token, next?.expiresAt]);
    },
  ),

  lock(
    "a renewal prolongs the lease, and defeats a takeover that would have been due without it",
    async ({ key, client, clock }) => {
      const lease = await client("a").acquire(key);
      await clock.advance(leaseDurationMs / 2);
      await lease.renew();
      assert.equal((await client("b").inspect(key))?.expiresAt, clock.now() + leaseDurationMs);
      await clock.advance(leaseDurationMs / 2 + clockSkewMs + 1);
      assert.equal(await client("b").tryAcquire(key), undefined);
      assert.equal(lease.held, true);
    },
  ),

  lock("a fencing token goes on after releases and takeovers", async ({ key, client, clock }) => {
    const tokens: number[] = [];
    for (const owner of ["a", "b", "c", "d"]) {
      const lease = await client(owner).acquire(key);
      tokens.push(lease.fencingToken);
      if (tokens.length % 2 === 0) await lease.release();
      else await clock.advance(leaseDurationMs + clockSkewMs + 1);
    }
    assert.deepEqual(
      tokens,
      tokens.map((_, index) => (tokens[0] ?? 0) + index),
    );
  }),

  lock(
    "a condition of the lease's own refuses a write once another has the lock",
    async ({ key, client, clock, table }) => {
      const stale = await client("a").acquire(key);
      const write = (lease: typeof stale, value: string): Promise<boolean> => {
        const { ConditionCheck } = lease.conditionCheck({ format: "native" });
        const checked = {
          key: { pk: key, sk: leaseSortKey },
          condition: ConditionCheck.ConditionExpression,
          names: ConditionCheck.ExpressionAttributeNames,
          values: ConditionCheck.ExpressionAttributeValues as Record<string, string | number>,
          action: "check" as const,
        };
        const names = { "#value": "value" };
        const values = { ":value": value };
        const action = { update: "SET #value = :value" };
        const condition = "attribute_not_exists(#value) OR #value <> :value";
        const guarded = { key: table.key("guarded"), condition, names, values, action };
        return table.store.transact([guarded, checked], table.call).then(({ applied }) => applied);
      };
      assert.equal(await write(stale, "of the holder"), true);
      await clock.advance(leaseDurationMs + clockSkewMs + 1);
      const next = await client("b").acquire(key);
      assert.deepEqual([await write(stale, "too late"), await write(next, "of the next")], [false, true]);
      assert.deepEqual(await table.contents("guarded"), { value: "of the next" });
    },
  ),

  lock("a payload is read by others as it was given, and goes with its lease", async ({ key, client }) => {
    const data = { step: 3, of: [1, "two", null, true], nested: { deep: "ü🔒" } };
    const lease = await client("a").acquire(key, { data });
    assert.deepEqual((await client("b").inspect(key))?.data, data);
    await lease.release();
    await client("b").acquire(key);
    assert.equal((await client("a").inspect(key))?.data, undefined, "the next holder gave none");
  }),

  lock(
    "the ttl of a lease is a number of seconds, later than its end by the retention",
    async ({ key, client, table, clock }) => {
      await client("a").acquire(key);
      const item = await table.store.get(
        { key: { pk: key, sk: leaseSortKey }, consistent: true },
        table.call,
      );
      const expected = Math.ceil((clock.now() + leaseDurationMs + retentionMs) / 1_000);
      assert.equal(item?.[attributeNames.timeToLive], expected);
    },
  ),
];

function lock(name: string, look: (lock: LockUnderTest) => Promise<void>): ConformanceCheck {
  return defineCheck("leases", name, async (table) => {
    const clock = new ManualClock(Date.now());
    // The time is the clock's, whatever the store's answers tell.
    const untimed = ({ signal, isCurrent }: CallOptions): CallOptions => ({ signal, isCurrent });
    const store = { ...observed(table.store, { options: untimed }), isLocal: true };
    const client = (owner: string): LeaseClient =>
      new LeaseClient({ store, clock, owner, leaseDurationMs, clockSkewMs, retentionMs }, () => store);
    await look({ table, key: table.pk, clock, client });
  });
}
