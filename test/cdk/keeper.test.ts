import type { LeaseClient } from "@leasehold/client";
import { cancel, revokeToken, type Write } from "@leasehold/client/internal";
import { beforeEach, describe, expect, it } from "vitest";
import { beatMs, failed, KeptWork, key, leaseDurationMs, lookMs, stopped } from "../support/kept-work.ts";

let kept: KeptWork;

beforeEach(() => {
  kept = new KeptWork();
});

const noop = (): void => undefined;

describe("a keeper", () => {
  it("keeps the lease at 2.4 state transitions and 1 write a beat, and a look at every fifth", async () => {
    const { keeper } = await kept.guarded();
    await kept.clock.advance(lookMs);
    const before = kept.entered(keeper).length;
    kept.steps.calls.length = 0;
    expect(await kept.beats(50)).toBeGreaterThan(0);
    expect(kept.entered(keeper).length - before).toBe(120);
    expect(kept.steps.calls.filter((call) => call === "dynamodb:updateItem")).toHaveLength(50);
    expect(kept.steps.calls.filter((call) => call === "sfn:describeExecution")).toHaveLength(10);
    expect(kept.steps.calls).toHaveLength(60);
  });

  it("keeps and stops work whose input and whose lease's payload are as large as they can be", async () => {
    const input = { text: "x".repeat(256 * 1024 - 20) };
    const work = kept.startWork(input);
    const data = "y".repeat(392 * 1024 - 2);
    const lease = await kept.client.acquire(key, { owner: `workflow:${work}`, data });
    const keeper = kept.startKeeper({ lease: lease.toJSON(), guarded: work });
    await kept.beats(20);
    expect(kept.token()).toBe(lease.token);
    kept.steps.loseAnswers("dynamodb:updateItem", 1);
    await kept.client.adopt(lease.toJSON()).renew();
    await kept.beats(3);
    expect(kept.entered(keeper)).toContain("JudgeLease");
    expect(kept.status(keeper)).toBe("RUNNING");
    await kept.revoke();
    await kept.beats(1);
    expect(kept.describe(work)).toMatchObject(stopped());
    expect(kept.token()).toBeUndefined();
  });

  it("releases the lock when the guarded execution is gone from Step Functions' memory", async () => {
    const gone = "arn:aws:states:us-east-1:123456789012:execution:work:never-was";
    const lease = await kept.client.acquire(key, { owner: `workflow:${gone}` });
    const keeper = kept.startKeeper({ lease: lease.toJSON(), guarded: gone });
    await kept.clock.advance(lookMs);
    expect(kept.token()).toBeUndefined();
    expect(kept.status(keeper)).toBe("SUCCEEDED");
  });

  it("keeps the lock of work that one look does not find, as one of work that was started a moment ago", async () => {
    const miss = (): void =>
      kept.steps.fail("sfn:describeExecution", 1, "Sfn.ExecutionDoesNotExistException");
    miss();
    const { lease, work, keeper } = await kept.guarded();
    for (let looks = 0; looks < 4; looks += 1) {
      expect(await kept.beats(10)).toBeGreaterThan(0);
      miss();
    }
    expect([kept.status(work), kept.status(keeper)]).toEqual(["RUNNING", "RUNNING"]);
    expect(kept.token()).toBe(lease.token);
  });

  it.each<[string, (other: LeaseClient) => Promise<Write> | Write]>([
    [
      "a caller that has given up",
      () => cancel({ key }, { token: "given up", now: kept.clock.now(), retentionMs: 1 }),
    ],
    [
      "a caller that has given up beside the next holder",
      async (other) => {
        await other.acquire(key);
        return revokeToken({ key }, "given up");
      },
    ],
  ])(
    "leaves work alone that has released its lease, where the mark of %s has replaced its own",
    async (_, mark) => {
      const { lease, work, keeper } = await kept.guarded();
      await lease.release();
      kept.steps.store.updateNow((await mark(kept.clientOf("other"))).request());
      const after = kept.steps.lease(key);
      await kept.clock.advance(beatMs);
      expect([kept.status(keeper), kept.status(work)]).toEqual(["SUCCEEDED", "RUNNING"]);
      expect(kept.steps.lease(key)).toEqual(after);
    },
  );

  it.each<[string, (other: LeaseClient) => Promise<unknown>]>([
    ["has the lock again", (other) => other.withLease(key, noop).then(() => other.acquire(key))],
    ["has had the lock", (other) => other.withLease(key, noop)],
    ["keeps it closed", (other) => other.withLease(key, { lockAtLeastForMs: leaseDurationMs }, noop)],
  ])(
    "leaves work alone that has released its lease and is about to end, where another holder %s",
    async (_, hold) => {
      const { lease, work, keeper } = await kept.guarded();
      await kept.clock.advance(beatMs - 200);
      await lease.release();
      await hold(kept.clientOf("other"));
      const after = kept.steps.lease(key);
      await kept.clock.advance(500);
      // Its end, or the first description that shows it, comes after the keeper has seen the lock.
      kept.steps.machines.stop(work, { error: "by itself" });
      await kept.clock.advance(beatMs);
      expect(kept.describe(work)).toMatchObject({ error: "by itself" });
      expect(kept.status(keeper)).toBe("SUCCEEDED");
      expect(kept.steps.lease(key)).toEqual(after);
    },
  );

  it.each<[string, () => Promise<unknown>]>([
    [
      "another holder has it",
      async () => {
        await kept.breakLease();
        return (await kept.client.acquire(key)).token;
      },
    ],
    [
      "it was broken, or expired and was removed",
      async () => void kept.steps.store.collectGarbage(Number.MAX_SAFE_INTEGER),
    ],
  ])(
    "stops the guarded execution when the lease is lost, and fails by name and cause: %s",
    async (loss, lose) => {
      const { work, keeper } = await kept.guarded();
      const token = await lose();
      await kept.clock.advance(beatMs);
      expect(kept.describe(work)).toMatchObject(stopped(`the lease is lost: ${loss}`));
      expect(kept.describe(keeper)).toMatchObject(
        failed("LeaseLostError", `the lease of ${key} is lost: ${loss}`),
      );
      expect(kept.token()).toBe(token);
    },
  );

  it("stops the guarded execution and releases when its holder is asked to stop", async () => {
    const { work, keeper } = await kept.guarded();
    await kept.revoke();
    await kept.clock.advance(beatMs);
    expect(kept.describe(work)).toMatchObject(stopped("the holder of the lease was asked to stop"));
    expect(kept.token()).toBeUndefined();
    await kept.clock.advance(beatMs);
    expect(kept.status(keeper)).toBe("SUCCEEDED");
  });

  it("goes on when a renewal landed and its answer was lost", async () => {
    const { lease, keeper } = await kept.guarded();
    kept.steps.loseAnswers("dynamodb:updateItem", 1);
    expect(await kept.beats(20)).toBeGreaterThan(0);
    expect(kept.token()).toBe(lease.token);
    expect(kept.status(keeper)).toBe("RUNNING");
    // Each renewal is newer than all before, so none is refused for the one that landed.
    expect(kept.entered(keeper)).not.toContain("Inspect");
  });

  it("goes on beside a client that renews the same lease, and still looks at its work", async () => {
    const { lease, keeper } = await kept.guarded();
    for (let round = 0; round < 30; round += 1) {
      await kept.clock.advance(beatMs);
      const adopted = kept.client.adopt(lease.toJSON());
      await adopted.renew();
      expect(adopted.held).toBe(true);
    }
    expect(kept.status(keeper)).toBe("RUNNING");
    expect(kept.token()).toBe(lease.token);
    expect(kept.entered(keeper).filter((state) => state === "AskGuarded").length).toBeGreaterThan(3);
  });

  it.each<[string, (steps: KeptWork["steps"]) => Promise<void>]>([
    [
      "the service fails for longer",
      async (steps) => {
        steps.fail("dynamodb:updateItem", 1_000);
        steps.fail("dynamodb:getItem", 1_000);
      },
    ],
    ["renewals hang", async (steps) => steps.hang("dynamodb:updateItem", 1_000)],
    [
      "the answer to the last renewal came late, and the next ones hang",
      async (steps) => {
        steps.answerLate("dynamodb:updateItem", 1, 2_000);
        await kept.clock.advance(beatMs + 2_000);
        steps.hang("dynamodb:updateItem", 1_000);
      },
    ],
  ])("stops the guarded execution before the lease is over when %s", async (_, happen) => {
    const { work, keeper } = await kept.guarded();
    await happen(kept.steps);
    const end = kept.expiresAt();
    while (kept.status(work) === "RUNNING" && kept.clock.now() < end) await kept.clock.advance(100);
    expect(kept.clock.now()).toBeLessThan(end);
    await kept.clock.advance(0);
    expect(kept.describe(work)).toMatchObject(stopped());
    expect(kept.describe(keeper)).toMatchObject(failed("LeaseLostError"));
  });

  it("keeps a lease without an execution until the time that it is told, in 3 transitions a beat", async () => {
    const lease = await kept.client.acquire(key);
    const until = kept.clock.now() + 10 * leaseDurationMs;
    const keeper = kept.startKeeper({ lease: lease.toJSON(), until });
    await kept.clock.advance(beatMs);
    const before = kept.entered(keeper).length;
    await kept.clock.advance(10 * beatMs);
    expect(kept.entered(keeper).length - before).toBe(30);
    expect(kept.token()).toBe(lease.token);
    await kept.clock.advance(10 * leaseDurationMs);
    expect(kept.token()).toBeUndefined();
    expect(kept.status(keeper)).toBe("SUCCEEDED");
  });

  it("without an execution ends when its holder is asked to stop, and says so", async () => {
    const lease = await kept.client.acquire(key);
    const keeper = kept.startKeeper({ lease: lease.toJSON(), until: kept.clock.now() + 60_000 });
    await kept.clock.advance(beatMs);
    await kept.revoke();
    await kept.clock.advance(beatMs);
    expect(kept.describe(keeper)).toMatchObject(failed("LeaseLostError", /asked to stop/));
    expect(kept.token()).toBe(lease.token);
  });

  it.each([
    ["nothing", {}],
    ["no lease", { guarded: "arn:aws:states:us-east-1:123456789012:execution:work:x" }],
    ["a lease that is a text", { lease: "mine", until: 1 }],
    ["a lease without a token", { lease: { key, version: 1, leaseDurationMs: 1, expiresAt: 1 }, until: 1 }],
    ["an empty key", { lease: { ...handle(), key: "" }, until: 1 }],
    ["a duration that is a text", { lease: { ...handle(), leaseDurationMs: "long" }, until: 1 }],
    ["a fencing token that is a text", { lease: { ...handle(), fencingToken: "1" }, until: 1 }],
    ["a duration of ages", { lease: { ...handle(), leaseDurationMs: 1e308 }, until: 1 }],
    ["a version that no renewal can follow", { lease: { ...handle(), version: 2 ** 53 }, until: 1 }],
    ["neither guarded nor until", { lease: handle() }],
    ["a guarded execution that is none", { lease: handle(), guarded: "work" }],
    ["an express execution", { lease: handle(), guarded: "arn:aws:states:r:1:express:work:a:b" }],
    ["a lease of another table", { lease: { ...handle(), tableName: "others" }, until: 1 }],
  ])("refuses an input with %s by name, and changes nothing", async (_, input) => {
    const refusing = kept.startKeeper(input);
    await kept.clock.advance(beatMs);
    expect(kept.describe(refusing)).toMatchObject(failed("InvalidOptionsError"));
    expect(kept.steps.calls).toEqual([]);
  });

  it("takes a handle that names its table by ARN", async () => {
    const lease = await kept.client.acquire(key);
    const tableName = "arn:aws:dynamodb:us-east-1:123456789012:table/leases";
    const keeper = kept.startKeeper({
      lease: { ...lease.toJSON(), tableName },
      until: kept.clock.now() + 60_000,
    });
    await kept.clock.advance(beatMs);
    expect(kept.status(keeper)).toBe("RUNNING");
  });
});

function handle(): Record<string, unknown> {
  return {
    tableName: "leases",
    key,
    owner: "o",
    token: "t",
    version: 1,
    fencingToken: 1,
    acquiredAt: 1,
    expiresAt: 2,
    leaseDurationMs: 9_000,
  };
}
