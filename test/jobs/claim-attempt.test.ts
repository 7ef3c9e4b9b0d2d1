import type { Item } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/internal";
import { beforeEach, describe, expect, test } from "vitest";
import { renew } from "../../packages/client/src/statements/lock.ts";
import { openTaskKey } from "../../packages/jobs/src/tasks/schema.ts";
import { Task } from "../../packages/jobs/src/tasks/task.ts";
import {
  attempt,
  beginAnew,
  breakClaim,
  claimed,
  clientOf,
  clock,
  ended,
  events,
  leaseDurationMs,
  open,
  pastLeaseMs,
  setOf,
  store,
} from "./tasks.ts";

beginAnew();
/** Claims a task, and never renews it. */
const claimedBy = (owner: string): Promise<Task> => claimed(owner, { heartbeat: false });
const stored = (): Item => open() ?? {};

beforeEach(async () => {
  await clock.advance(5_000);
  await setOf("adder").add([{ id: "1", maxAttempts: 2 }]);
});

describe("a claim", () => {
  test("of a waiting task costs one request, and tells that it did not wait", async () => {
    const { outcome, calls } = await attempt(stored());
    expect(outcome).toBeInstanceOf(Task);
    expect(calls).toEqual(["update"]);
    expect(events.at(-1)).toMatchObject({ type: "acquired", owner: "me", waitedMs: 0 });
    expect(stored()[attributeNames.reentrant]).toBeUndefined();
  });

  test("whose answer cannot be read is not kept: it ends by itself, and another worker has the task", async () => {
    const update = store.update.bind(store);
    store.update = async (...call) => {
      store.update = update;
      const { item, ...answer } = await update(...call);
      return { ...answer, item: { ...item, attempts: "one" } };
    };
    await expect(setOf("me").claim()).rejects.toMatchObject({ name: "LeaseItemError" });
    await clock.advance(pastLeaseMs);
    expect((await setOf("other").claim())?.attempt).toBe(2);
  });

  test("tells how long it has waited for an answer", async () => {
    store.next("request lost");
    const waiting = attempt(stored());
    await clock.advance(2_000);
    expect((await waiting).outcome).toBeInstanceOf(Task);
    const { waitedMs } = events.at(-1) as { readonly waitedMs: number };
    expect(waitedMs).toBeGreaterThan(0);
    expect(waitedMs).toBeLessThanOrEqual(2_000);
  });

  test("of a task that another worker has had and returned since it was read is tried once more", async () => {
    const seen = stored();
    await (await claimedBy("other")).fail("not now");
    const { outcome, calls } = await attempt(seen);
    expect(outcome).toMatchObject({ attempt: 2, remark: "not now" });
    expect(calls).toEqual(["update", "update"]);
  });

  test("is not tried again when the returned task is due later, and tells when", async () => {
    const seen = stored();
    await (await claimedBy("other")).fail("not now", { retryAfterMs: 7_000 });
    expect(await attempt(seen)).toEqual({
      outcome: { isParked: false, isKeyBusy: false, claimableInMs: 7_000 },
      calls: ["update", "update"],
    });
  });

  test("is tried once when the task is as it was read, but is not due", async () => {
    await (await claimedBy("other")).fail("not now", { retryAfterMs: 7_000 });
    expect(await attempt({ ...stored(), dueAt: 0 })).toEqual({
      outcome: { isParked: false, isKeyBusy: false, claimableInMs: 7_000 },
      calls: ["update"],
    });
  });

  test("of a task that has ended since is refused, and nobody knows of a time for it", async () => {
    const seen = stored();
    await (await claimedBy("other")).succeed();
    expect(await attempt(seen)).toEqual({
      outcome: { isParked: false, isKeyBusy: false, claimableInMs: Number.POSITIVE_INFINITY },
      calls: ["update"],
    });
  });

  test("of a task that another worker has is refused until that claim may have expired", async () => {
    await claimedBy("other");
    const { outcome, calls } = await attempt(stored());
    expect(outcome).toEqual({ isParked: false, isKeyBusy: false, claimableInMs: expect.any(Number) });
    const { claimableInMs } = outcome as { readonly claimableInMs: number };
    expect(claimableInMs).toBeGreaterThanOrEqual(leaseDurationMs);
    expect(claimableInMs).toBeLessThanOrEqual(pastLeaseMs);
    expect(calls).toEqual(["update"]);
  });

  test("of a lost worker's task is refused when that worker renews it at the last moment, for a time that is over", async () => {
    await claimedBy("other");
    await clock.advance(pastLeaseMs);
    const seen = stored();
    const { token, fence, expiresAt } = attributeNames;
    const shown = { token: String(seen[token]), fencingToken: Number(seen[fence]) };
    const times = { expiresAt: Number(seen[expiresAt]), leaseDurationMs, retentionMs: 0 };
    const { sk: sortKey } = openTaskKey("set", "1");
    const renewal = renew({ key: "set", sortKey }, { shown, version: 9, ...times }).request();
    const update = store.update.bind(store);
    let calls = 0;
    store.update = async (...call) => {
      calls += 1;
      // The second one is the takeover.
      if (calls === 2) expect(store.table.updateNow(renewal).applied).toBe(true);
      return await update(...call);
    };
    expect(await attempt(seen)).toEqual({
      outcome: { isParked: false, isKeyBusy: false, claimableInMs: Number.POSITIVE_INFINITY },
      calls: ["update", "update"],
    });
  });
});

describe("a task without attempts left", () => {
  /** Uses up the first of two attempts, and claims the task for the last one. */
  const lastAttempt = async (): Promise<Task> => {
    await (await claimedBy("other")).fail("not now");
    return await claimedBy("other");
  };

  test("whose worker was lost is parked for two requests, and a time is not known for it", async () => {
    await lastAttempt();
    const client = clientOf("me");
    await attempt(stored(), client);
    await clock.advance(pastLeaseMs);
    expect(await attempt(stored(), client)).toEqual({
      outcome: { isParked: true, isKeyBusy: false, claimableInMs: Number.POSITIVE_INFINITY },
      calls: ["update", "transact"],
    });
    expect(ended()).toMatchObject({
      state: "parked",
      remark: "worker lost",
    });
  });

  test("is known to be parked by this claim where the answer was lost, and not where another was first", async () => {
    await lastAttempt();
    await clock.advance(pastLeaseMs);
    const transact = store.transact.bind(store);
    store.transact = async (...call) => {
      store.transact = transact;
      store.next(undefined, "answer lost");
      const other = attempt(stored(), clientOf("other"));
      await clock.advance(6_000);
      expect((await other).outcome).toMatchObject({ isParked: true });
      return await transact(...call);
    };
    expect((await attempt(stored())).outcome).toMatchObject({ isParked: false });
  });

  test("whose claim was broken since it was read is parked, and not tried again", async () => {
    const seen = stored();
    await lastAttempt();
    expect(await breakClaim()).toBe(true);
    expect(await attempt(seen)).toMatchObject({
      outcome: { isParked: true },
      calls: ["update", "transact"],
    });
  });
});
