import { type Item, LeaseClient } from "@leasehold/client";
import { coreOf } from "@leasehold/client/internal";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { JobRuns, type JobRunsOptions } from "../../packages/jobs/src/index.ts";
import { RunForm } from "../../packages/jobs/src/runs/run-form.ts";
import { runAttributeNames, runItemKey } from "../../packages/jobs/src/runs/schema.ts";
import { adminOf } from "../support/admin.ts";
import { put } from "../support/foreign-items.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const job = "report";
const slot = "2025-12-31T23:00:00.000Z";
const leaseDurationMs = 3_000;
const pastLeaseMs = leaseDurationMs + 1_001;
const begin = Date.UTC(2026, 0, 1);
let clock: ManualClock;
let store: ScriptedStore;

beforeEach(() => {
  clock = new ManualClock(begin);
  store = new ScriptedStore();
});

const clientOf = (owner: string): LeaseClient => new LeaseClient({ store, clock, owner, leaseDurationMs });
const runsOf = (owner: string, options: JobRunsOptions = {}): JobRuns =>
  new JobRuns(clientOf(owner), job, { maxAttempts: 100, heartbeat: false, ...options });
const failing = (text: string) => (): never => {
  throw new Error(text);
};
const fail = (owner: string, text = "broken") => runsOf(owner).run(slot, failing(text)).catch(String);
const never = (): Promise<never> => new Promise(() => undefined);
const item = () => store.table.peek(runItemKey(job, slot));
const stored = () => item()?.[runAttributeNames.attempts];
const attempts = async () => (await runsOf("reader").get(slot))?.attempts;
/** Lets time pass until a promise has settled. */
const inTime = async <T>(promise: Promise<T>): Promise<T> => {
  promise.catch(() => undefined);
  await clock.advance(60_000);
  return await promise;
};

/** Begins an attempt whose process dies. */
async function die(owner: string): Promise<void> {
  void runsOf(owner).run(slot, never);
  await settled();
  await clock.advance(pastLeaseMs);
}

describe("the history of a run", () => {
  test("has each attempt with its owner, its begin, its end and its remark, oldest first", async () => {
    await fail("a", "no disk");
    const secondAt = clock.now();
    await die("b");
    const lost = {
      ...{ attempt: 2, state: "lost", owner: "b", remark: undefined },
      ...{ startedAt: secondAt, endedAt: secondAt + leaseDurationMs },
    };
    // Before another caller has found it, too.
    expect((await attempts())?.at(-1)).toEqual(lost);
    const thirdAt = clock.now();
    await runsOf("c").run(slot, async ({ remark }) => {
      await clock.advance(50);
      remark("3 pages");
    });
    expect(await attempts()).toEqual([
      { attempt: 1, state: "failed", owner: "a", startedAt: begin, endedAt: begin, remark: "Error: no disk" },
      lost,
      {
        attempt: 3,
        state: "succeeded",
        owner: "c",
        startedAt: thirdAt,
        endedAt: thirdAt + 50,
        remark: "3 pages",
      },
    ]);
  });

  test("shows the attempt that runs, without the remark of the one before", async () => {
    await fail("a");
    await runsOf("b").run(slot, async () => {
      expect(await attempts()).toMatchObject([
        { attempt: 1, state: "failed", remark: "Error: broken" },
        { attempt: 2, state: "running", owner: "b", endedAt: undefined, remark: undefined },
      ]);
    });
  });

  test("costs a run that succeeds at once not one byte", async () => {
    await runsOf("a").run(slot, () => 1);
    expect(stored()).toBeUndefined();
    expect(await attempts()).toMatchObject([{ attempt: 1, state: "succeeded" }]);
  });

  test("keeps the latest ten before the latest, and little of long texts, whatever characters they have", async () => {
    const owner = "ø".repeat(300);
    for (let attempt = 1; attempt <= 13; attempt += 1) await fail(owner, "€".repeat(1_000));
    expect(Buffer.byteLength(String(stored()))).toBeLessThan(10 * 400);
    const seen = (await attempts()) ?? [];
    expect(seen.map((one) => one.attempt)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    for (const { remark = "" } of seen.slice(0, -1)) {
      expect(Buffer.byteLength(remark)).toBeLessThanOrEqual(128);
      expect(remark).toMatch(/^Error: €+…$/);
    }
    expect(seen[0]?.owner).toMatch(/^ø{62}…$/);
    await runsOf("last").run(slot, () => 1);
    expect((await attempts())?.map((one) => one.attempt)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
  });

  test("has the lost attempt of a slot that is skipped, and none of the skip", async () => {
    await fail("a");
    await die("b");
    await runsOf("operator").skip(slot, "its input is gone");
    expect(await attempts()).toMatchObject([
      { attempt: 1, state: "failed", owner: "a" },
      { attempt: 2, state: "lost", owner: "b" },
    ]);
  });

  test("has the attempt of a process that closed its client at work", async () => {
    const client = clientOf("a");
    const run = new JobRuns(client, job).run(slot, never);
    run.catch(() => undefined);
    await clock.advance(1_000);
    await client.close();
    const lost = { attempt: 1, state: "lost", owner: "a", startedAt: begin, endedAt: begin + 1_000 };
    expect(await attempts()).toMatchObject([lost]);
    await runsOf("b").run(slot, () => 1);
    expect(await attempts()).toMatchObject([lost, { attempt: 2, state: "succeeded" }]);
  });

  test("leaves out an attempt that an operator broke or took back, once another has begun", async () => {
    void runsOf("broken").run(slot, never);
    await settled();
    const { sk: sortKey } = runItemKey(job, slot);
    await adminOf(clientOf("operator")).forceRelease(job, { sortKey, token: String(item()?.token) });
    expect(await attempts()).toMatchObject([{ attempt: 1, state: "lost" }]);
    await runsOf("b").run(slot, () => 1);
    const run = await runsOf("b").get(slot);
    if (run === undefined) return expect.unreachable();
    expect(await runsOf("operator").takeBack(run, "wrong input")).toBe(true);
    expect(await attempts()).toMatchObject([{ attempt: 2, state: "failed", remark: "wrong input" }]);
    await fail("c");
    await runsOf("d").run(slot, () => 1);
    expect(await attempts()).toMatchObject([
      { attempt: 3, state: "failed", owner: "c" },
      { attempt: 4, state: "succeeded", owner: "d" },
    ]);
  });
});

describe("the history of a run at its worst moments", () => {
  test.each(["answer lost", "request lost"] as const)(
    "has one entry for a failure whose outcome is sent twice: %s",
    async (fate) => {
      store.next(undefined, fate);
      await inTime(fail("a"));
      expect(await attempts()).toMatchObject([{ attempt: 1, state: "failed", owner: "a" }]);
      await runsOf("b").run(slot, () => 1);
      expect(await attempts()).toMatchObject([
        { attempt: 1, state: "failed", owner: "a" },
        { attempt: 2, state: "succeeded" },
      ]);
    },
  );

  test.each(["answer lost", "request lost"] as const)(
    "has one entry for a lost attempt whose takeover is sent twice: %s",
    async (fate) => {
      await die("dead");
      store.next(undefined, fate);
      await inTime(runsOf("b").run(slot, () => 1, { waitMs: 10_000 }));
      expect(await attempts()).toMatchObject([
        { attempt: 1, state: "lost", owner: "dead" },
        { attempt: 2, state: "succeeded", owner: "b" },
      ]);
    },
  );

  test("keeps what others wrote after an attempt that froze and woke too late", async () => {
    const ends = Promise.withResolvers<void>();
    const frozen = runsOf("frozen").run(slot, () => ends.promise);
    await clock.advance(pastLeaseMs);
    await fail("b");
    ends.reject(new Error("too late"));
    await expect(frozen).rejects.toThrow();
    expect(await attempts()).toMatchObject([
      { attempt: 1, state: "lost", owner: "frozen" },
      { attempt: 2, state: "failed", owner: "b" },
    ]);
  });

  test("of an attempt whose lease ended unnoticed is that of its outcome, for no other has begun", async () => {
    const work = async (): Promise<never> => {
      await clock.advance(pastLeaseMs);
      throw new Error("slow");
    };
    await expect(runsOf("a").run(slot, work)).rejects.toThrow("slow");
    expect(await attempts()).toMatchObject([{ attempt: 1, state: "failed", remark: "Error: slow" }]);
  });

  test("has an attempt of the same owner that was resumed elsewhere as lost, at that time", async () => {
    const again = { owner: "me", reentrant: true };
    void runsOf("here")
      .run(slot, never, again)
      .catch(() => undefined);
    await clock.advance(1_000);
    await runsOf("there").run(slot, () => 1, again);
    expect(await attempts()).toMatchObject([
      { attempt: 1, state: "lost", owner: "me", endedAt: begin + 1_000 },
      { attempt: 2, state: "succeeded", owner: "me" },
    ]);
  });

  test("survives an attempt of an earlier version, which is left out of it", async () => {
    await fail("a");
    // An earlier version counts its attempt, and leaves attributes alone that it does not know.
    const { pk: _, sk, ...before } = item() as Item;
    put(store.table, job, String(sk), { ...before, attempt: 2, owner: "old", remark: "Error: old" });
    expect(await attempts()).toMatchObject([
      { attempt: 1, state: "failed", owner: "a" },
      { attempt: 2, state: "failed", owner: "old", remark: "Error: old" },
    ]);
    await fail("b");
    expect((await attempts())?.map((one) => [one.attempt, one.owner])).toEqual([
      [1, "a"],
      [3, "b"],
    ]);
  });

  test.each(["no JSON", "{}", '[null,7,{"attempt":"one"}]', 7])(
    "of another form hinders no run, and is begun anew: %s",
    async (spoilt) => {
      await fail("a");
      const { pk: _, sk, ...before } = item() as Item;
      put(store.table, job, String(sk), { ...before, attempts: spoilt });
      expect(await attempts()).toMatchObject([{ attempt: 1, owner: "a" }]);
      await die("b");
      await fail("c");
      expect(await attempts()).toMatchObject([
        { attempt: 2, state: "lost", owner: "b" },
        { attempt: 3, state: "failed", owner: "c" },
      ]);
      await expect(runsOf("d").run(slot, () => 4)).resolves.toBe(4);
    },
  );

  test.each<[string, (now: Item) => Item | undefined, stored: string[]]>([
    ["the lease that is taken over", (now) => now, ["a", "dead"]],
    ["another lease", (now) => ({ ...now, token: "earlier" }), []],
    ["nothing", () => undefined, []],
    ["no attempt", ({ attempt: _, ...now }) => now, []],
  ])(
    "has the attempt that is taken over only where the last look, which may lag, has shown that attempt: %s",
    async (_, seenOf, owners) => {
      await fail("a");
      await die("dead");
      const now = item() as Item;
      const form = new RunForm(job, slot, { maxAttempts: 9, keepForMs: 1 });
      const [lost] = form.leasesIn(now);
      if (lost === undefined) return expect.unreachable();
      form.judge(seenOf(now), { owner: "b", resumes: false }, coreOf(clientOf("b")).detector);
      const grant = { ...lost, token: "mine", owner: "b", retentionMs: 1, data: undefined, slot };
      const text = form.acquire(grant, [lost]).values[":attempts"] ?? "[]";
      expect(JSON.parse(String(text)).map(({ owner }: { owner: string }) => owner)).toEqual(owners);
    },
  );
});
