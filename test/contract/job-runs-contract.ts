import {
  LeaseClient,
  type LeaseClientOptions,
  LeaseLostError,
  LeaseUnavailableError,
  SlotDoneError,
} from "@leasehold/client";
import { beforeEach, describe, expect, test } from "vitest";
import {
  type JobRun,
  JobRuns,
  type JobRunsOptions,
  RunsExhaustedError,
} from "../../packages/jobs/src/index.ts";
import { adminOf } from "../support/admin.ts";
import { PatientClock } from "../support/patient-clock.ts";
import type { Place } from "./lease-contract.ts";
import { newKey } from "./new-key.ts";

const leaseDurationMs = 300;
const clockSkewMs = 100;
const pastLease = leaseDurationMs + clockSkewMs + 1;
const hourMs = 3_600_000;
const hourly = { next: (after: Date) => new Date(Math.floor(after.getTime() / hourMs + 1) * hourMs) };

/** What holds for a job's runs wherever they are kept; run for memory and for the engine. */
export function jobRunsContract(place: (clock: PatientClock) => Place): void {
  let clock: PatientClock;
  let job: string;
  let now: number;

  const runsOf = (owner: string, options: JobRunsOptions = {}, client: Partial<LeaseClientOptions> = {}) =>
    new JobRuns(
      new LeaseClient({ ...place(clock), clock, owner, leaseDurationMs, clockSkewMs, ...client }),
      job,
      { heartbeat: false, ...options },
    );
  /** The slot so many hours before the hour that the test begins in. */
  const hoursAgo = (hours: number): string => new Date(now - hours * hourMs).toISOString();
  const all = async (runs: AsyncIterable<JobRun>): Promise<JobRun[]> => {
    const list: JobRun[] = [];
    for await (const run of runs) list.push(run);
    return list;
  };
  /** Begins an attempt whose process dies in the middle of its work. */
  const die = async (owner: string, slot: string, options: JobRunsOptions = {}): Promise<void> => {
    const begun = Promise.withResolvers<void>();
    void runsOf(owner, options)
      .run(slot, () => {
        begun.resolve();
        return new Promise(() => undefined);
      })
      .catch(begun.reject);
    await begun.promise;
    await clock.advance(pastLease);
  };

  beforeEach(() => {
    now = Math.floor(Date.now() / hourMs) * hourMs;
    clock = new PatientClock(Date.now());
    job = newKey("job");
  });

  describe("a run", () => {
    test("gives the work's result, and the run history says who ran it, when, and that it succeeded", async () => {
      const runs = runsOf("a");
      const slot = hoursAgo(1);
      const startedAt = clock.now();
      const result = await runs.run(slot, async ({ attempt, lease, signal, job: name, slot: at }) => {
        expect({ attempt, name, at, aborted: signal.aborted }).toEqual({
          attempt: 1,
          name: job,
          at: slot,
          aborted: false,
        });
        expect(await runs.get(slot)).toMatchObject({
          state: "running",
          attempt: 1,
          owner: "a",
          fencingToken: lease.fencingToken,
          expiresAt: lease.expiresAt,
          endedAt: undefined,
        });
        await clock.advance(50);
        return 42;
      });
      expect(result).toBe(42);
      expect(await runs.get(slot)).toEqual({
        job,
        slot,
        state: "succeeded",
        attempt: 1,
        lostAttempts: 0,
        exhausted: false,
        owner: "a",
        fencingToken: expect.any(Number),
        startedAt,
        endedAt: startedAt + 50,
        expiresAt: undefined,
        remark: undefined,
        progress: undefined,
        attempts: [
          {
            ...{ attempt: 1, state: "succeeded", owner: "a", startedAt },
            ...{ endedAt: startedAt + 50, remark: undefined },
          },
        ],
      });
    });

    test("delivered twice is refused the second time, with and without an error", async () => {
      const slot = hoursAgo(1);
      await runsOf("a").run(slot, () => 1);
      await expect(runsOf("b").run(slot, () => 2)).rejects.toThrow(SlotDoneError);
      expect(await runsOf("b").tryRun(slot, () => 2)).toBeUndefined();
      expect(await runsOf("b").get(slot)).toMatchObject({ owner: "a", attempt: 1 });
    });

    test("delivered twice at once to 16 workers succeeds once", async () => {
      const slot = hoursAgo(1);
      let ran = 0;
      const outcomes = await Promise.all(
        Array.from({ length: 16 }, (_, worker) => runsOf(`w${worker}`).tryRun(slot, () => ++ran)),
      );
      expect(ran).toBe(1);
      expect(outcomes.filter((outcome) => outcome !== undefined)).toEqual([{ result: 1 }]);
    });

    test("is refused while another attempt runs, and may wait for that to fail", async () => {
      const slot = hoursAgo(1);
      const fails = Promise.withResolvers<never>();
      const begun = Promise.withResolvers<void>();
      const first = runsOf("a").run(slot, () => {
        begun.resolve();
        return fails.promise;
      });
      await begun.promise;
      await expect(runsOf("b").run(slot, () => 2)).rejects.toThrow(LeaseUnavailableError);
      fails.reject(new Error("broken"));
      await expect(first).rejects.toThrow("broken");
      expect(await runsOf("b").run(slot, ({ attempt }) => attempt)).toBe(2);
    });

    test("that fails leaves its error's text, and is retried up to the bound and no further", async () => {
      const slot = hoursAgo(1);
      const runs = runsOf("a", { maxAttempts: 2 });
      const fail = () => Promise.reject(new TypeError("no such page"));
      await expect(runs.run(slot, fail)).rejects.toThrow("no such page");
      expect(await runs.get(slot)).toMatchObject({
        state: "failed",
        attempt: 1,
        exhausted: false,
        remark: "TypeError: no such page",
        endedAt: clock.now(),
      });
      await expect(runs.run(slot, fail)).rejects.toThrow("no such page");
      expect(await runs.get(slot)).toMatchObject({ state: "failed", attempt: 2, exhausted: true });

      const refusal = await runs.run(slot, () => 1).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(RunsExhaustedError);
      expect(refusal).toMatchObject({
        code: "LEASE_RUNS_EXHAUSTED",
        job,
        slot,
        attempts: 2,
        maxAttempts: 2,
        remark: "TypeError: no such page",
      });
      expect(await runs.get(slot)).toMatchObject({ state: "failed", attempt: 2 });
      expect(await runsOf("b", { maxAttempts: 3 }).run(slot, ({ attempt }) => attempt)).toBe(3);
    });

    test("whose worker died shows as lost, is retried as attempt 2, and the loss is counted", async () => {
      const slot = hoursAgo(1);
      await die("dead", slot);
      const runs = runsOf("b");
      expect(await runs.get(slot)).toMatchObject({ state: "lost", attempt: 1, owner: "dead" });
      expect(await runs.run(slot, ({ attempt }) => attempt)).toBe(2);
      expect(await runs.get(slot)).toMatchObject({
        state: "succeeded",
        attempt: 2,
        lostAttempts: 1,
        owner: "b",
      });
    });

    test("that succeeds in the end keeps the attempts before: whose they were, and how each has ended", async () => {
      const slot = hoursAgo(1);
      await expect(runsOf("a").run(slot, () => Promise.reject(new Error("broken")))).rejects.toThrow();
      await die("dead", slot);
      await runsOf("b").run(slot, () => 1);
      expect((await runsOf("c").get(slot))?.attempts).toMatchObject([
        { attempt: 1, state: "failed", owner: "a", remark: "Error: broken", endedAt: expect.any(Number) },
        { attempt: 2, state: "lost", owner: "dead", endedAt: expect.any(Number) },
        { attempt: 3, state: "succeeded", owner: "b" },
      ]);
    });

    test("whose workers all died is refused by name at the bound", async () => {
      const slot = hoursAgo(1);
      await die("dead", slot, { maxAttempts: 2 });
      await die("dead too", slot, { maxAttempts: 2 });
      const runs = runsOf("b", { maxAttempts: 2 });
      const refusal = await runs.run(slot, () => 1).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(RunsExhaustedError);
      expect(refusal).toMatchObject({ attempts: 2, maxAttempts: 2, remark: undefined });
      expect(await runs.get(slot)).toMatchObject({ state: "lost", attempt: 2, exhausted: true });
    });

    test("whose attempt was taken over has its late success refused, and the later one's stands", async () => {
      const slot = hoursAgo(1);
      const ends = Promise.withResolvers<string>();
      const begun = Promise.withResolvers<void>();
      const stale = runsOf("slow").run(slot, ({ progress }) => {
        progress({ from: "the slow one" });
        begun.resolve();
        return ends.promise;
      });
      await begun.promise;
      await clock.advance(pastLease);
      await expect(
        runsOf("b").run(slot, () => Promise.reject(new Error("attempt 2 failed"))),
      ).rejects.toThrow("attempt 2 failed");
      ends.resolve("too late");
      await expect(stale).rejects.toMatchObject({ code: "LEASE_LOST", reason: "taken" });
      expect(await runsOf("b").get(slot)).toMatchObject({
        state: "failed",
        attempt: 2,
        owner: "b",
        progress: undefined,
      });
    });

    test("that outlived its lease unnoticed succeeds, for nobody has begun another", async () => {
      const slot = hoursAgo(1);
      const runs = runsOf("slow");
      const done = await runs.run(slot, async ({ signal }) => {
        await clock.advance(pastLease);
        return signal.aborted;
      });
      expect(done).toBe(true);
      expect(await runs.get(slot)).toMatchObject({ state: "succeeded" });
    });

    test("does not touch another job's run of the same slot, nor a lock of the job's key", async () => {
      const slot = hoursAgo(1);
      const client = new LeaseClient({ ...place(clock), clock, leaseDurationMs, clockSkewMs });
      await using lock = await client.acquire(job);
      await new JobRuns(client, job).run(slot, () => 1);
      expect(await new JobRuns(client, `${job}/other`).run(slot, () => 2)).toBe(2);
      expect((await client.inspect(job))?.token).toBe(lock.token);
      expect(await all(new JobRuns(client, `${job}/other`).runs())).toHaveLength(1);
    });
  });

  describe("progress", () => {
    test("rides on the heartbeat, and the last report on the outcome", async () => {
      const slot = hoursAgo(1);
      const runs = runsOf("a", { heartbeat: true });
      await runs.run(slot, async ({ progress, remark, lease }) => {
        progress({ done: 1 });
        progress({ done: 2 });
        await lease.renew();
        expect((await runs.get(slot))?.progress).toEqual({ done: 2 });
        progress({ done: 3 });
        remark("3 pages");
      });
      expect(await runs.get(slot)).toMatchObject({ progress: { done: 3 }, remark: "3 pages" });
    });

    test("of an attempt is forgotten when the next one begins", async () => {
      const slot = hoursAgo(1);
      const runs = runsOf("a");
      const failed = runs.run(slot, ({ progress }) => {
        progress("half");
        throw new Error("broken");
      });
      await expect(failed).rejects.toThrow("broken");
      expect(await runs.get(slot)).toMatchObject({ progress: "half", remark: "Error: broken" });
      await runs.run(slot, async () => {
        expect(await runs.get(slot)).toMatchObject({ progress: undefined, remark: "Error: broken" });
      });
      expect(await runs.get(slot)).toMatchObject({ state: "succeeded", remark: undefined });
    });

    test("of several runs travels together with their renewals", async () => {
      const runs = runsOf("a", { heartbeat: 100 });
      const reported = [hoursAgo(1), hoursAgo(2)].map((slot, index) =>
        runs.run(slot, async ({ progress }) => {
          progress({ index });
          for (let turns = 0; turns < 200; turns += 1) {
            await clock.advance(1);
            if ((await runs.get(slot))?.progress !== undefined) return;
          }
          throw new Error("never reported");
        }),
      );
      await Promise.all(reported);
      expect((await all(runs.runs())).map((run) => run.progress)).toEqual([{ index: 1 }, { index: 0 }]);
    });
  });

  describe("skip", () => {
    test("keeps a slot from ever running, says why, and may be repeated", async () => {
      const slot = hoursAgo(1);
      const runs = runsOf("a");
      await runs.skip(slot, "holiday");
      await runs.skip(slot, "another reason");
      expect(await runs.get(slot)).toMatchObject({
        state: "skipped",
        attempt: 0,
        owner: "a",
        remark: "holiday",
        endedAt: clock.now(),
      });
      await expect(runs.run(slot, () => 1)).rejects.toThrow(SlotDoneError);
    });

    test("is refused for a slot that runs or has succeeded", async () => {
      const slot = hoursAgo(1);
      const runs = runsOf("a");
      await runs.run(slot, async () => {
        const refusal = await runsOf("b")
          .skip(slot)
          .catch((error: unknown) => error);
        expect(refusal).toBeInstanceOf(LeaseUnavailableError);
        expect((refusal as LeaseUnavailableError).retryAfterMs).toBeGreaterThanOrEqual(leaseDurationMs);
      });
      await expect(runsOf("b").skip(slot)).rejects.toThrow(SlotDoneError);
      expect(await runs.get(slot)).toMatchObject({ state: "succeeded" });
    });

    test("settles a slot whose attempts failed, and one whose worker died", async () => {
      const failed = hoursAgo(1);
      const lost = hoursAgo(2);
      const runs = runsOf("a");
      await expect(runs.run(failed, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
      await die("dead", lost);
      await runs.skip(failed);
      await runs.skip(lost, "its input is gone");
      expect(await runs.get(failed)).toMatchObject({ state: "skipped", attempt: 1, remark: undefined });
      expect(await runs.get(lost)).toMatchObject({ state: "skipped", attempt: 1, lostAttempts: 1 });
      await expect(runs.run(lost, () => 1)).rejects.toThrow(SlotDoneError);
    });
  });

  describe("a slot that is still to come", () => {
    test("is not run, however its trigger came to be dated so: refused by name, and its time is left free", async () => {
      const runs = runsOf("a");
      const slot = new Date(clock.now() + 48 * hourMs).toISOString();
      let ran = 0;
      for (const attempt of [runs.run(slot, () => ++ran), runs.tryRun(slot, () => ++ran)]) {
        await expect(attempt).rejects.toMatchObject({
          name: "SlotNotDueError",
          code: "LEASE_SLOT_NOT_DUE",
          key: job,
          slot,
          dueInMs: 48 * hourMs,
        });
      }
      expect(ran).toBe(0);
      expect(await runs.get(slot)).toBeUndefined();
      await clock.advance(48 * hourMs);
      expect(await runs.run(slot, () => ++ran)).toBe(1);
    });

    test("by no more than a minute is a clock's business, and runs", async () => {
      const ahead = (ms: number): Date => new Date(clock.now() + ms);
      expect(await runsOf("a").run(ahead(60_000), () => "ran")).toBe("ran");
      await expect(runsOf("a").run(ahead(60_001), () => "ran")).rejects.toMatchObject({
        code: "LEASE_SLOT_NOT_DUE",
      });
    });

    test("can be skipped", async () => {
      const slot = new Date(clock.now() + 48 * hourMs);
      await runsOf("a").skip(slot, "closed on holidays");
      expect(await runsOf("a").get(slot)).toMatchObject({ state: "skipped" });
    });
  });

  describe("taking a run back", () => {
    test("opens a slot that succeeded or was skipped, once, and only as it was seen", async () => {
      const [done, skipped] = [hoursAgo(1), hoursAgo(2)];
      const operator = runsOf("operator");
      await runsOf("a").run(done, ({ remark }) => remark("of the wrong file"));
      await runsOf("a").skip(skipped, "holiday");
      for (const slot of [done, skipped]) {
        const seen = await operator.get(slot);
        if (seen === undefined) throw new Error("no run");
        expect(await operator.takeBack(seen, "it was a mistake")).toBe(true);
        // As when the answer was lost, and it is sent again.
        expect(await operator.takeBack(seen, "it was a mistake")).toBe(true);
        expect(await runsOf("b").run(slot, ({ attempt }) => attempt)).toBe(seen.attempt + 1);
        // A copy that arrives late finds another success, and leaves it alone.
        expect(await operator.takeBack(seen)).toBe(false);
        expect(await operator.get(slot)).toMatchObject({ state: "succeeded", owner: "b" });
      }
    });

    test("shows it as failed with the reason, and as missed; its attempts still count", async () => {
      const slot = hoursAgo(1);
      const operator = runsOf("operator", { maxAttempts: 1 });
      await operator.run(slot, () => 1);
      const [seen] = await all(operator.runs());
      if (seen === undefined) throw new Error("no run");
      await operator.takeBack(seen, "the file was wrong");
      expect(await operator.get(slot)).toMatchObject({
        state: "failed",
        attempt: 1,
        exhausted: true,
        remark: "the file was wrong",
      });
      const missed: string[] = [];
      const range = { schedule: hourly, since: slot, until: hoursAgo(0) };
      for await (const one of operator.missed(range)) missed.push(one.slot);
      expect(missed).toEqual([slot]);
      expect(await runsOf("a", { maxAttempts: 2 }).run(slot, ({ attempt }) => attempt)).toBe(2);
    });

    test("leaves alone a run that is under way, one that failed, and one that is not there", async () => {
      const slot = hoursAgo(1);
      const operator = runsOf("operator");
      await operator.run(slot, () => 1);
      const seen = await operator.get(slot);
      if (seen === undefined) throw new Error("no run");
      expect(await operator.takeBack({ ...seen, endedAt: 5 })).toBe(false);
      await operator.takeBack(seen);
      expect(await operator.get(slot)).toMatchObject({ remark: "taken back by an operator" });
      await runsOf("a").run(slot, async () => {
        expect(await operator.takeBack(seen)).toBe(false);
        expect(await operator.takeBack({ ...seen, attempt: 2 })).toBe(false);
        expect(await operator.get(slot)).toMatchObject({ state: "running", owner: "a" });
      });
      const later = await operator.get(slot);
      expect(later && (await operator.takeBack(later))).toBe(true);
      expect(await operator.takeBack(seen)).toBe(false);
      expect(await operator.takeBack({ ...seen, slot: hoursAgo(3) })).toBe(false);
      expect(await operator.get(hoursAgo(3))).toBeUndefined();
    });
  });

  describe("queries", () => {
    test("go by time from either end, by state, and stop at their limit", async () => {
      const runs = runsOf("a", { maxAttempts: 1 });
      for (const hours of [5, 4, 3, 2, 1]) {
        const work = hours % 2 === 0 ? () => Promise.reject(new Error("even")) : () => hours;
        await runs.run(hoursAgo(hours), work).catch(() => undefined);
      }
      const slots = async (query: Parameters<JobRuns["runs"]>[0]): Promise<number[]> =>
        (await all(runs.runs(query))).map((run) => (now - Date.parse(run.slot)) / hourMs);
      expect(await slots({})).toEqual([5, 4, 3, 2, 1]);
      expect(await slots({ descending: true })).toEqual([1, 2, 3, 4, 5]);
      expect(await slots({ since: hoursAgo(4), until: hoursAgo(2) })).toEqual([4, 3]);
      expect(
        await slots({ since: new Date(now - 4 * hourMs), until: hoursAgo(2), descending: true }),
      ).toEqual([3, 4]);
      expect(await slots({ until: hoursAgo(3) })).toEqual([5, 4]);
      expect(await slots({ since: hoursAgo(2), descending: true })).toEqual([1, 2]);
      expect(await slots({ limit: 2 })).toEqual([5, 4]);
      expect(await slots({ state: "failed" })).toEqual([4, 2]);
      expect(await slots({ state: "failed", limit: 1, descending: true })).toEqual([2]);
      expect(await slots({ state: ["succeeded", "failed"] })).toHaveLength(5);
      expect(await slots({ state: ["running", "lost", "skipped"] })).toEqual([]);
    });
  });

  describe("missed slots", () => {
    test("are those never begun, failed or lost; not those done, skipped or running", async () => {
      const runs = runsOf("a");
      await die("dead", hoursAgo(6));
      await runs.run(hoursAgo(5), () => 1);
      await runs.run(hoursAgo(4), () => Promise.reject(new Error("broken"))).catch(() => undefined);
      await runs.skip(hoursAgo(3));
      // Not a time of the schedule.
      await runs.run(new Date(now - 2.5 * hourMs), () => 1);
      await runs.run(hoursAgo(2), async () => {
        const missed: unknown[] = [];
        const query = { schedule: hourly, since: hoursAgo(7), until: new Date(now) };
        for await (const { slot, run } of runs.missed(query)) missed.push([slot, run?.state]);
        expect(missed).toEqual([
          [hoursAgo(7), undefined],
          [hoursAgo(6), "lost"],
          [hoursAgo(4), "failed"],
          [hoursAgo(1), undefined],
        ]);
      });
    });

    test("are back-filled, oldest first, and once only", async () => {
      const runs = runsOf("a", { maxAttempts: 2 });
      await runs.run(hoursAgo(3), () => 1);
      const order: string[] = [];
      const range = { schedule: hourly, since: hoursAgo(4), until: new Date(now) };
      const report = await runs.backfill(range, ({ slot }) => {
        order.push(slot);
        if (slot === hoursAgo(2)) throw new Error("broken");
      });
      expect(order).toEqual([hoursAgo(4), hoursAgo(2), hoursAgo(1)]);
      expect(report).toEqual({
        succeeded: [hoursAgo(4), hoursAgo(1)],
        failed: [{ slot: hoursAgo(2), error: new Error("broken") }],
        left: [],
        complete: true,
      });
      await runs.backfill(range, () => Promise.reject(new Error("broken again")));
      const last = await runs.backfill(range, () => expect.unreachable());
      expect(last).toEqual({ succeeded: [], failed: [], left: [hoursAgo(2)], complete: true });
    });

    test("are back-filled within the limit, and no further than a failure where that is asked for", async () => {
      const runs = runsOf("a");
      const range = { schedule: hourly, since: hoursAgo(5), until: new Date(now) };
      expect(await runs.backfill({ ...range, limit: 2 }, () => 1)).toMatchObject({
        succeeded: [hoursAgo(5), hoursAgo(4)],
        complete: false,
      });
      const fail = () => Promise.reject(new Error("broken"));
      expect(await runs.backfill({ ...range, stopOnFailure: true }, fail)).toMatchObject({
        failed: [{ slot: hoursAgo(3) }],
        complete: false,
      });
    });

    test("are shared by two back-fills at once: each slot succeeds once", async () => {
      const ran: string[] = [];
      const range = { schedule: hourly, since: hoursAgo(10), until: new Date(now) };
      const reports = await Promise.all(
        ["a", "b"].map((owner) =>
          runsOf(owner).backfill(range, ({ slot }) => {
            ran.push(slot);
          }),
        ),
      );
      expect(ran.toSorted()).toEqual(Array.from({ length: 10 }, (_, index) => hoursAgo(10 - index)));
      expect(reports.flatMap((report) => report.succeeded)).toHaveLength(10);
    });
  });

  describe("a reentrant owner", () => {
    const again = { owner: "request-1", reentrant: true };

    test("begins again at once where its earlier attempt has died, which counts as lost", async () => {
      const slot = hoursAgo(1);
      const begun = Promise.withResolvers<void>();
      const followed = Promise.withResolvers<void>();
      const dead = runsOf("frozen process").run(
        slot,
        async ({ lease }) => {
          begun.resolve();
          await followed.promise;
          await expect(lease.renew()).rejects.toMatchObject({ reason: "taken" });
        },
        again,
      );
      dead.catch(() => undefined);
      await begun.promise;
      await expect(runsOf("b").run(slot, () => undefined)).rejects.toThrow(LeaseUnavailableError);
      const result = await runsOf("next process").run(slot, ({ attempt }) => attempt, again);
      expect(result).toBe(2);
      expect(await runsOf("reader").get(slot)).toMatchObject({
        state: "succeeded",
        attempt: 2,
        lostAttempts: 1,
        owner: "request-1",
      });
      followed.resolve();
      await expect(dead).rejects.toThrow(LeaseLostError);
    });

    test("does not disturb its attempt in the same object: the second delivery is refused", async () => {
      const slot = hoursAgo(1);
      const runs = runsOf("a");
      await runs.run(
        slot,
        async ({ lease }) => {
          await expect(runs.run(slot, () => undefined, again)).rejects.toThrow(LeaseUnavailableError);
          await lease.renew();
        },
        again,
      );
      expect(await runs.get(slot)).toMatchObject({ state: "succeeded", attempt: 1 });
    });

    test("that waits for another's attempt leaves one alone that has begun in the same object meanwhile", async () => {
      const slot = hoursAgo(1);
      await die("dead", slot, { leaseDurationMs: 60_000 });
      const runs = runsOf("a", { leaseDurationMs: 60_000 });
      const patience = { waitMs: 120_000, retry: { strategy: "fixed", delayMs: 1_000 } } as const;
      const ran: string[] = [];
      const ends = Promise.withResolvers<void>();
      const waiting = runs.run(slot, () => void ran.push("reentrant"), { ...patience, ...again });
      const outcome = waiting.catch((error: unknown) => error);
      const running = runs.run(
        slot,
        async ({ lease }) => {
          ran.push("plain");
          await ends.promise;
          await lease.renew();
        },
        patience,
      );
      const finished = running.catch((error: unknown) => error);
      /** Moves the clock on. */
      const pass = async (isOver: () => boolean): Promise<void> => {
        for (let step = 0; step < 200 && !isOver(); step += 1) {
          await clock.advance(1_000);
        }
      };
      await pass(() => ran.length > 0);
      ends.resolve();
      const both = Promise.all([finished, outcome]);
      let isOver = false;
      void both.then(() => {
        isOver = true;
      });
      await pass(() => isOver);
      const outcomes = await both;
      // One of the two has run the slot; the other was told that it is done.
      expect(ran).toHaveLength(1);
      expect(outcomes.filter((error) => error instanceof SlotDoneError)).toHaveLength(1);
      expect(await runs.get(slot)).toMatchObject({ state: "succeeded", attempt: 2 });
    });

    test("has no more attempts than anybody, and no slot that is done", async () => {
      const [slot, done] = [hoursAgo(2), hoursAgo(1)];
      await runsOf("a").run(done, () => undefined, again);
      await expect(runsOf("b").run(done, () => undefined, again)).rejects.toThrow(SlotDoneError);
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        const begun = Promise.withResolvers<void>();
        const hang = (): Promise<never> => {
          begun.resolve();
          return new Promise(() => undefined);
        };
        runsOf(`process ${attempt}`)
          .run(slot, hang, again)
          .catch(() => undefined);
        await begun.promise;
      }
      await expect(runsOf("one more").run(slot, () => undefined, again)).rejects.toThrow(RunsExhaustedError);
    });
  });

  describe("an operator", () => {
    const admin = (): LeaseClient =>
      new LeaseClient({ ...place(clock), clock, clockSkewMs, leaseDurationMs });

    test("asks one run of several to stop: it fails with the reason, and may be retried", async () => {
      const [slot, other] = [hoursAgo(2), hoursAgo(1)];
      const revoked = runsOf("a").run(slot, async ({ lease }) => {
        await runsOf("b").run(other, async ({ lease: untouched }) => {
          const records = await adminOf(admin()).inspectAll(job);
          const found = records.find(({ token }) => token === lease.token);
          const which = { token: lease.token, sortKey: found?.sortKey ?? "" };
          expect(await adminOf(admin()).requestRevocation(job, { ...which, reason: "wrong input" })).toBe(
            true,
          );
          await expect(lease.renew()).rejects.toMatchObject({ reason: "revoked" });
          await untouched.renew();
        });
      });
      await expect(revoked).rejects.toThrow(LeaseLostError);
      expect(await runsOf("a").get(slot)).toMatchObject({
        state: "failed",
        remark: expect.stringContaining("wrong input"),
      });
      expect(await runsOf("a").get(other)).toMatchObject({ state: "succeeded" });
      await runsOf("c").run(slot, () => undefined);
      expect(await runsOf("c").get(slot)).toMatchObject({ state: "succeeded", attempt: 2 });
    });

    test("breaks a run: it shows as lost, its outcome is refused, and the next attempt stands", async () => {
      const slot = hoursAgo(1);
      const failed = runsOf("a").run(slot, () => Promise.reject(new Error("broken")));
      await expect(failed).rejects.toThrow("broken");
      const broken = runsOf("a").run(slot, async () => {
        const [run] = await adminOf(admin()).inspectAll(job);
        await adminOf(admin()).forceRelease(job, { token: run?.token ?? "", sortKey: run?.sortKey ?? "" });
        expect(await runsOf("reader").get(slot)).toMatchObject({ state: "lost", attempt: 2 });
        await runsOf("b").run(slot, () => undefined);
      });
      await expect(broken).rejects.toThrow(LeaseLostError);
      expect(await runsOf("reader").get(slot)).toMatchObject({ state: "succeeded", attempt: 3, owner: "b" });
    });
  });
}
