import type { Item, LeaseRecord } from "@leasehold/client";
import { readRecord } from "@leasehold/client/internal";
import { settled } from "@leasehold/client/testing";
import { describe, expect, test } from "vitest";
import { JobRuns, type JobRunsOptions } from "../../packages/jobs/src/index.ts";
import { attemptsWithLost } from "../../packages/jobs/src/runs/attempt-history.ts";
import { runAttributeNames } from "../../packages/jobs/src/runs/schema.ts";
import {
  beginAnew,
  breakLease,
  clientOf,
  clock,
  die,
  item,
  job,
  leaseDurationMs,
  never,
  runsOf as runsIn,
  slot,
} from "./runs.ts";

beginAnew();

const begin = Date.UTC(2026, 0, 1);
const runsOf = (owner: string, options: JobRunsOptions = {}): JobRuns =>
  runsIn(owner, { maxAttempts: 100, heartbeat: false, ...options });
const fail = (owner: string, text = "broken") =>
  runsOf(owner)
    .run(slot, () => Promise.reject(new Error(text)))
    .catch(String);
const stored = () => item()?.[runAttributeNames.attempts];
const attempts = async () => (await runsOf("reader").get(slot))?.attempts;

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

  test("of a slot that was skipped before it began is empty", async () => {
    await runsOf("operator").skip(slot);
    expect(await attempts()).toEqual([]);
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

  test("has the attempt that is taken over with its end, and only where the item that was read shows its lease", async () => {
    await fail("a");
    await die("dead");
    const now = item() as Item;
    const lost = readRecord(now) as LeaseRecord;
    const stored = (seen: Item | undefined, takenAt: number) =>
      JSON.parse(attemptsWithLost(seen, lost, takenAt) ?? "[]").at(-1);
    expect(stored(now, clock.now())).toMatchObject({ owner: "dead", endedAt: lost.expiresAt });
    expect(stored(now, lost.expiresAt - 5)).toMatchObject({ owner: "dead", endedAt: lost.expiresAt - 5 });
    expect(stored({ ...now, token: "of another" }, clock.now())).toBeUndefined();
    expect(stored(undefined, clock.now())).toBeUndefined();
    const { [runAttributeNames.attempt]: _, ...countless } = now;
    expect(stored(countless, clock.now())).toBeUndefined();
  });

  test("leaves out an attempt that an operator broke or took back, once another has begun", async () => {
    void runsOf("broken").run(slot, never);
    await settled();
    await breakLease();
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
