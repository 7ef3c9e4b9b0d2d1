import {
  LeaseClient,
  type LeaseClientOptions,
  LeaseLostError,
  LeaseServiceError,
  SlotDoneError,
} from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { beforeEach, describe, expect, test } from "vitest";
import { JobRuns, type JobRunsOptions } from "../../packages/jobs/src/index.ts";
import { runItemKey } from "../../packages/jobs/src/runs/schema.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { watchedMs } from "../support/watching.ts";

const job = "report";
const slot = "2025-12-31T23:00:00.000Z";
const hourMs = 3_600_000;
const leaseDurationMs = 3_000;
const schedule = { next: (after: Date) => new Date(Math.floor(after.getTime() / hourMs + 1) * hourMs) };
let clock: ManualClock;
let store: ScriptedStore;

beforeEach(() => {
  clock = new ManualClock(Date.UTC(2026, 0, 1));
  store = new ScriptedStore();
});

function runsOf(
  owner: string,
  options: JobRunsOptions = {},
  client: Partial<LeaseClientOptions> = {},
): JobRuns {
  return new JobRuns(new LeaseClient({ store, clock, owner, leaseDurationMs, ...client }), job, options);
}

/** Lets time pass until a promise settles. */
async function inTime<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const mark = (): void => {
    isSettled = true;
  };
  promise.then(mark, mark);
  for (let turns = 0; !isSettled && turns < 2_000; turns += 1) await clock.advance(100);
  return await promise;
}

/** Begins an attempt whose process dies in the middle of its work. */
async function die(options: JobRunsOptions = {}): Promise<void> {
  const begun = Promise.withResolvers<void>();
  void runsOf("dead", { heartbeat: false, ...options }).run(slot, () => {
    begun.resolve();
    return new Promise(() => undefined);
  });
  await begun.promise;
  await clock.advance(leaseDurationMs + 1_001);
}

const fail = (): Promise<never> => Promise.reject(new Error("broken"));
const item = () => store.table.peek(runItemKey(job, slot));

describe("requests", () => {
  test.each<[what: string, begin: () => unknown, call: () => Promise<unknown>, methods: string[]]>([
    [
      "a run, whatever it reports and remarks",
      () => undefined,
      () =>
        runsOf("a").run(slot, ({ progress, remark }) => {
          progress({ done: 1 });
          remark("all well");
        }),
      ["update", "update"],
    ],
    ["a run that fails", () => undefined, () => runsOf("a").run(slot, fail), ["update", "update"]],
    [
      "a retry",
      () => runsOf("a").run(slot, fail),
      () => runsOf("a").run(slot, () => 1),
      ["update", "update"],
    ],
    [
      "the retry of a lost attempt",
      die,
      () => runsOf("b").run(slot, () => 1),
      ["update", "update", "update"],
    ],
    [
      "a duplicate",
      () => runsOf("a").run(slot, () => 1),
      () => runsOf("b").tryRun(slot, () => 2),
      ["update"],
    ],
    [
      "a slot whose attempts are spent",
      () => runsOf("a").run(slot, fail),
      () => runsOf("b", { maxAttempts: 1 }).run(slot, fail),
      ["update"],
    ],
    ["a skip", () => undefined, () => runsOf("a").skip(slot), ["update"]],
    ["a skip where the last attempt was lost", die, () => runsOf("b").skip(slot), ["update", "update"]],
  ])("of %s", async (_, begin, call, methods) => {
    // Ignored: some of these calls reject, and all of them are counted.
    await Promise.resolve(begin()).catch(() => undefined);
    store.calls.length = 0;
    await call().catch(() => undefined);
    expect(store.calls.map(({ method }) => method)).toEqual(methods);
  });

  test("heartbeats of runs that share requests travel in one, with their reports", async () => {
    const runs = runsOf("a", {}, { renewals: together() });
    const ends = Promise.withResolvers<void>();
    const slots = [1, 2, 3].map((hours) => new Date(clock.now() - hours * hourMs));
    const running = slots.map((at, index) =>
      runs.run(at, ({ progress }) => {
        progress(index);
        return ends.promise;
      }),
    );
    await clock.advance(0);
    store.calls.length = 0;
    await clock.advance(1_000);
    expect(store.calls.map((call) => [call.method, call.requests.length])).toEqual([["updateMany", 3]]);
    for (const [index, at] of slots.entries()) expect((await runs.get(at))?.progress).toBe(index);
    store.calls.length = 0;
    // What has been brought is not sent again.
    await clock.advance(1_000);
    expect(store.calls.flatMap((call) => call.requests.map(({ values }) => values[":progress"]))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    ends.resolve();
    await Promise.all(running);
  });

  test("get costs 1 consistent read; 600 runs are listed by 3, consistently only for what was missed", async () => {
    const runs = runsOf("a");
    await runs.get(slot);
    expect(store.calls).toMatchObject([{ method: "get", consistent: true }]);
    for (let hours = 600; hours > 0; hours -= 1) await runs.skip(new Date(clock.now() - hours * hourMs));
    store.calls.length = 0;

    const seen: string[] = [];
    for await (const run of runs.runs()) seen.push(run.slot);
    expect(seen).toEqual(seen.toSorted());
    expect(new Set(seen).size).toBe(600);
    expect(store.calls).toMatchObject(Array(3).fill({ method: "query", consistent: false }));

    const backwards: string[] = [];
    for await (const run of runs.runs({ descending: true, state: "skipped" })) backwards.push(run.slot);
    expect(backwards).toEqual(seen.toReversed());
    store.calls.length = 0;

    const since = new Date(clock.now() - 600 * hourMs);
    for await (const missed of runs.missed({ schedule, since })) expect.unreachable(missed.slot);
    expect(store.calls).toMatchObject(Array(3).fill({ method: "query", consistent: true }));
  });

  test("a back-fill sends nothing for slots whose attempts are spent, and they do not count against its limit", async () => {
    const runs = runsOf("a", { maxAttempts: 1 });
    const earlier = new Date(clock.now() - 2 * hourMs);
    await expect(runs.run(earlier, fail)).rejects.toThrow("broken");
    store.calls.length = 0;
    const report = await runs.backfill({ schedule, since: earlier, limit: 1 }, () => 1);
    expect(report).toEqual({
      succeeded: [slot],
      failed: [],
      left: [earlier.toISOString()],
      complete: true,
    });
    expect(store.calls.map((call) => call.method)).toEqual(["query", "update", "update"]);
  });

  test("what else is kept under the job's key is not a run, from whichever end it is met", async () => {
    const runs = runsOf("a");
    await runs.run(slot, () => 1);
    for (const sk of ["lease", "run!", "run$", "task#1"]) {
      store.table.updateNow({
        key: { pk: job, sk },
        update: "SET #attempt = :attempt",
        condition: "attribute_not_exists(#attempt)",
        names: { "#attempt": "attempt" },
        values: { ":attempt": 1 },
        returnsItem: false,
      });
    }
    const queries = [
      {},
      { since: slot },
      { descending: true },
      { until: new Date(clock.now()), descending: true },
    ];
    for (const query of queries) {
      const seen: string[] = [];
      for await (const run of runs.runs(query)) seen.push(run.slot);
      expect(seen).toEqual([slot]);
    }
  });
});

describe("answers that got lost", () => {
  test("of a claim: the attempt that landed is not counted twice by the one that recognises it", async () => {
    store.next("answer lost");
    const attempt = await inTime(runsOf("a").run(slot, (run) => run.attempt, { waitMs: 2_000 }));
    expect(attempt).toBe(1);
    expect(await runsOf("a").get(slot)).toMatchObject({ state: "succeeded", attempt: 1 });
  });

  test("of a claim that is given up: the slot is open again, and the attempt has been counted", async () => {
    store.next("answer lost");
    await expect(runsOf("a").run(slot, () => expect.unreachable())).rejects.toThrow(LeaseServiceError);
    await clock.advance(0);
    expect(await runsOf("a").get(slot)).toMatchObject({ state: "lost", attempt: 1, owner: "a" });
    expect(await runsOf("b").run(slot, (run) => run.attempt)).toBe(2);
  });

  test("of a claim that never arrived and is given up: nothing shows in the run history", async () => {
    store.next("request lost");
    await expect(runsOf("a").run(slot, () => 1)).rejects.toThrow(LeaseServiceError);
    await clock.advance(0);
    expect(item()).toBeDefined();
    expect(await runsOf("a").get(slot)).toBeUndefined();
    expect(await runsOf("b").run(slot, (run) => run.attempt)).toBe(1);
  });

  test("of a refused claim that is given up: the record of the run that succeeded stays as it was", async () => {
    await runsOf("a").run(slot, ({ progress }) => progress("all"));
    const before = await runsOf("a").get(slot);
    store.next("answer lost");
    await expect(runsOf("b").run(slot, () => 2)).rejects.toThrow(LeaseServiceError);
    await clock.advance(0);
    expect(await runsOf("a").get(slot)).toEqual(before);
    await expect(runsOf("b").run(slot, () => 2)).rejects.toThrow(SlotDoneError);
  });

  test("of a success: it is sent again, recognised, and stands", async () => {
    store.next(undefined, "answer lost");
    expect(await inTime(runsOf("a").run(slot, () => "done"))).toBe("done");
    expect(store.count("update")).toBe(3);
    expect(await runsOf("a").get(slot)).toMatchObject({ state: "succeeded", attempt: 1 });
  });

  test("of a failure: it is sent again, and another attempt that has begun meanwhile is left alone", async () => {
    store.next(undefined, "answer lost");
    const failed = runsOf("a").run(slot, fail);
    failed.catch(() => undefined);
    await clock.advance(0);
    const ends = Promise.withResolvers<void>();
    const second = runsOf("b").run(slot, () => ends.promise);
    await expect(inTime(failed)).rejects.toThrow("broken");
    expect(await runsOf("b").get(slot)).toMatchObject({ state: "running", attempt: 2, owner: "b" });
    ends.resolve();
    await second;
  });

  test("of a failure: it is sent again once, where another attempt has begun and ended meanwhile", async () => {
    store.next(undefined, "answer lost");
    const failed = runsOf("a").run(slot, fail);
    failed.catch(() => undefined);
    await clock.advance(0);
    const sentAt = clock.monotonic();
    await expect(runsOf("b").run(slot, fail)).rejects.toThrow("broken");
    await expect(inTime(failed)).rejects.toThrow("broken");
    expect(clock.monotonic() - sentAt).toBe(200);
    expect(await runsOf("b").get(slot)).toMatchObject({ state: "failed", attempt: 2, owner: "b" });
  });

  test("of a success: it is sent again, and is no success where another attempt has succeeded meanwhile", async () => {
    const late = runsOf("a", { heartbeat: false }).run(slot, async () => {
      await clock.advance(leaseDurationMs + 1_001);
      const update = store.update.bind(store);
      store.update = async (request, options) => {
        store.update = update;
        await inTime(runsOf("b").run(slot, () => "b"));
        return { ...(await update(request, options)), retried: true };
      };
      return "a";
    });
    await expect(late).rejects.toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    expect(await runsOf("a").get(slot)).toMatchObject({ state: "succeeded", attempt: 2, owner: "b" });
  });

  test("of an outcome: it is known again by its attempt, where another caller's claim has been taken back since", async () => {
    const update = store.update.bind(store);
    const unheard = (): never => {
      throw new LeaseServiceError("LEASE_NO_ANSWER", "cut off");
    };
    let token: unknown;
    const run = runsOf("a", { heartbeat: false }).run(slot, () => {
      token = item()?.token;
      store.update = async (request, options) => {
        await update(request, options);
        store.update = async () => {
          store.update = update;
          return unheard();
        };
        await expect(inTime(runsOf("b").tryRun(slot, () => "b"))).rejects.toThrow(LeaseServiceError);
        await clock.advance(100);
        return unheard();
      };
      return "a";
    });
    expect(await inTime(run)).toBe("a");
    expect(token).toEqual(expect.any(String));
    expect(item()).toMatchObject({ state: "succeeded", releasedToken: expect.any(String) });
    expect(item()?.releasedToken).not.toBe(token);
  });

  test("of a success that is never confirmed: the caller is told, and the slot can be retried", async () => {
    const runs = runsOf("a");
    const run = runs.run(slot, () => {
      store.weather = "request lost";
    });
    await expect(inTime(run)).rejects.toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: true });
    expect(store.count("update")).toBe(6);
    store.weather = undefined;
    await clock.advance(leaseDurationMs + 1_001);
    expect(await runs.get(slot)).toMatchObject({ state: "lost", attempt: 1 });
    expect(await runsOf("b").run(slot, ({ attempt }) => attempt)).toBe(2);
  });

  test("of a failure that is never confirmed: the work's own error comes first", async () => {
    const run = runsOf("a").run(slot, () => {
      store.weather = "throttled";
      throw new TypeError("no such page");
    });
    await expect(inTime(run)).rejects.toThrow("no such page");
  });

  test("of a renewal with a report: the next one brings it again", async () => {
    const runs = runsOf("a");
    await runs.run(slot, async ({ progress }) => {
      progress("half");
      store.next("request lost");
      await clock.advance(1_000);
      expect((await runs.get(slot))?.progress).toBeUndefined();
      await clock.advance(1_000);
      expect((await runs.get(slot))?.progress).toBe("half");
    });
  });

  test("a report that comes while a renewal is under way waits for the next one", async () => {
    const runs = runsOf("a");
    await runs.run(slot, async ({ lease, progress }) => {
      const renewal = lease.renew();
      progress("half");
      await renewal;
      expect((await runs.get(slot))?.progress).toBeUndefined();
    });
  });

  test("a report is in the table after a renewal that follows it, although a heartbeat was under way", async () => {
    const runs = runsOf("a");
    const update = store.update.bind(store);
    await runs.run(slot, async ({ lease, progress }) => {
      const answer = Promise.withResolvers<void>();
      store.update = async (...call) => {
        store.update = update;
        await answer.promise;
        return await update(...call);
      };
      const heartbeat = lease.renew();
      await settled();
      progress("half");
      const renewal = lease.renew();
      answer.resolve();
      await Promise.all([heartbeat, renewal]);
      expect((await runs.get(slot))?.progress).toBe("half");
    });
  });

  test("a renewal that is refused for another process's newer one is repeated with the report", async () => {
    const client = new LeaseClient({ store, clock, leaseDurationMs });
    const runs = new JobRuns(client, job, { heartbeat: false });
    await runs.run(slot, async ({ lease, progress }) => {
      const elsewhere = client.adopt(lease.toJSON());
      await elsewhere.renew();
      await elsewhere.renew();
      progress("half");
      await lease.renew();
      expect((await runs.get(slot))?.progress).toBe("half");
    });
  });

  test("of a skip: calling it again finds it done", async () => {
    store.next("answer lost");
    await expect(runsOf("a").skip(slot, "holiday")).rejects.toThrow(LeaseServiceError);
    await runsOf("a").skip(slot, "holiday");
    expect(await runsOf("a").get(slot)).toMatchObject({ state: "skipped", remark: "holiday" });
  });

  test("a copy of a claim that arrives after its run has succeeded begins nothing", async () => {
    await runsOf("a").run(slot, () => 1);
    const [claim, outcome] = store.calls.map((call) => call.requests[0]);
    if (claim === undefined || outcome === undefined) throw new Error("no requests");
    const before = item();
    expect(store.table.updateNow(claim).applied).toBe(false);
    expect(store.table.updateNow(outcome).applied).toBe(false);
    expect(item()).toEqual(before);
  });

  test("a copy of an outcome that arrives while the next attempt runs changes nothing", async () => {
    await expect(runsOf("a").run(slot, fail)).rejects.toThrow("broken");
    const outcome = store.calls.at(-1)?.requests[0];
    if (outcome === undefined) throw new Error("no request");
    await runsOf("b").run(slot, () => {
      expect(store.table.updateNow(outcome).applied).toBe(false);
    });
    expect(await runsOf("b").get(slot)).toMatchObject({ state: "succeeded", attempt: 2 });
  });
});

describe("time", () => {
  test("ttl keeps a run, an attempt under way and a skipped slot for keepForMs, and a skipped slot of the future for longer", async () => {
    const keepForMs = 24 * hourMs;
    // Clocks differ, and requests arrive late.
    const keptForMs = keepForMs + hourMs - 1_000;
    const runs = runsOf("a", { keepForMs });
    const later = new Date(clock.now() + 48 * hourMs);
    await runs.run(slot, async () => {
      expect(store.table.collectGarbage(clock.now() + keepForMs)).toBe(0);
    });
    await runs.skip("2025-12-31T22:00:00.000Z");
    await runs.skip(later);
    expect(store.table.collectGarbage(clock.now() + keptForMs)).toBe(0);
    expect(store.table.collectGarbage(clock.now() + keepForMs + 2 * hourMs)).toBe(2);
    expect(store.table.collectGarbage(later.getTime() + keptForMs)).toBe(0);
    expect(store.table.collectGarbage(later.getTime() + keepForMs + 2 * hourMs)).toBe(1);
  });

  test("a slot whose record ttl may have removed is refused: it cannot run to success a second time", async () => {
    const runs = runsOf("a", { keepForMs: 24 * hourMs });
    await runs.run(slot, () => 1);
    await clock.advance(26 * hourMs);
    expect(store.table.collectGarbage(clock.now())).toBe(1);
    const refusal = { option: "slot", allowed: expect.stringContaining("keepForMs") };
    await expect(runs.run(slot, () => 2)).rejects.toMatchObject(refusal);
    await expect(runs.skip(slot)).rejects.toMatchObject(refusal);
    const schedule = { next: () => undefined };
    expect(() => runs.missed({ schedule, since: slot })).toThrow("since");
  });

  test("ttl that removes a running attempt's item: the outcome is refused, and nothing is resurrected", async () => {
    const run = runsOf("a").run(slot, () => {
      store.table.collectGarbage(Number.POSITIVE_INFINITY);
    });
    await expect(run).rejects.toThrow(LeaseLostError);
    expect(item()).toBeUndefined();
  });

  test("slots of the future are not missed yet", async () => {
    const missed: string[] = [];
    const since = new Date(clock.now() - hourMs);
    const until = new Date(clock.now() + 5 * hourMs);
    for await (const one of runsOf("a").missed({ schedule, since, until })) missed.push(one.slot);
    expect(missed).toEqual([slot]);
  });

  test("where the service does not tell its time, a dead attempt is retried all the same", async () => {
    store.isLocal = false;
    await die();
    const runs = runsOf("b");
    expect(await runs.tryRun(slot, () => 1)).toBeUndefined();
    await clock.advance(watchedMs(leaseDurationMs));
    expect(await runs.tryRun(slot, ({ attempt }) => attempt)).toEqual({ result: 2 });
  });

  test("a back-fill ends with its signal, and says that it is not complete", async () => {
    const stop = new AbortController();
    const since = new Date(clock.now() - 3 * hourMs);
    const report = await runsOf("a").backfill({ schedule, since, signal: stop.signal }, ({ signal }) => {
      stop.abort(new Error("enough"));
      signal.throwIfAborted();
    });
    expect(report).toMatchObject({
      succeeded: [],
      failed: [{ error: new Error("enough") }],
      complete: false,
    });
  });
});

describe("a lease that its work ends", () => {
  test("by releasing it: the attempt is lost, and the caller is told", async () => {
    const run = runsOf("a").run(slot, async ({ lease }) => {
      await lease.release();
    });
    await expect(run).rejects.toMatchObject({ code: "LEASE_LOST", reason: "released" });
    expect(await runsOf("a").get(slot)).toMatchObject({ state: "lost", attempt: 1, owner: "a" });
  });
});

describe("bad input", () => {
  const client = () => new LeaseClient({ store, clock });

  test.each([
    ["job", "", {}],
    ["maxAttempts", job, { maxAttempts: 0 }],
    ["maxAttempts", job, { maxAttempts: 1.5 }],
    ["keepForMs", job, { keepForMs: 1 }],
    ["leaseDurationMs", job, { leaseDurationMs: 0 }],
    ["heartbeat", job, { leaseDurationMs: 100, heartbeat: 90 }],
    ["owner", job, { owner: "" }],
    ["describeError", job, { describeError: "name" }],
    ["options.maxAttempt", job, { maxAttempt: 3 }],
  ])("job runs with a bad %s is refused by name (%#)", (option, name, options) => {
    const make = () => new JobRuns(client(), name, options as JobRunsOptions);
    expect(make).toThrow(expect.objectContaining({ option: option === "job" ? "key" : option }));
  });

  test.each([
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "2026-01-01T01:00:00.000+01:00",
    "2026-02-30T00:00:00.000Z",
    "+010000-01-01T00:00:00.000Z",
    "2026-01-01t00:00:00.000z",
    "",
    0,
    undefined,
    Symbol("slot"),
    new Date(Number.NaN),
    new Date(8.64e15),
  ])("the slot %s is refused by name, and nothing is sent", async (bad) => {
    const runs = new JobRuns(client(), job);
    const refusal = { code: "LEASE_INVALID_OPTIONS", option: "slot" };
    await expect(runs.run(bad as string, () => 1)).rejects.toMatchObject(refusal);
    await expect(runs.tryRun(bad as string, () => 1)).rejects.toMatchObject(refusal);
    await expect(runs.skip(bad as string)).rejects.toMatchObject(refusal);
    await expect(runs.get(bad as string)).rejects.toMatchObject(refusal);
    expect(store.calls).toEqual([]);
  });

  test("a slot that is an invalid Date is shown as one", async () => {
    const runs = new JobRuns(client(), job);
    await expect(runs.get(new Date(Number.NaN))).rejects.toThrow("an invalid Date");
  });

  test("bad work, options, remarks and queries are refused by name, and nothing is sent", async () => {
    const runs = new JobRuns(client(), job);
    const schedule = { next: () => undefined };
    const since = slot;
    const refused: [string, () => Promise<unknown>][] = [
      ["work", () => runs.run(slot, undefined as never)],
      ["waitMs", () => runs.run(slot, () => 1, { waitMs: -1 })],
      ["signal", () => runs.run(slot, () => 1, { signal: {} as never })],
      ["options.heartbeat", () => runs.run(slot, () => 1, { heartbeat: true } as never)],
      ["remark", () => runs.skip(slot, "x".repeat(1025))],
      ["since", () => runs.runs({ since: "yesterday" }).next()],
      ["state", () => runs.runs({ state: "done" as never }).next()],
      ["state", () => runs.runs({ state: [] }).next()],
      ["limit", () => runs.runs({ limit: 0 }).next()],
      ["query.order", () => runs.runs({ order: "desc" } as never).next()],
      ["schedule", async () => runs.missed({ schedule: "hourly" as never, since })],
      ["since", async () => runs.missed({ schedule, since: "2020-01-01T00:00:00.000Z" })],
      ["query.limit", async () => runs.missed({ schedule, since, limit: 1 } as never)],
      ["limit", () => runs.backfill({ schedule, since, limit: 0 }, () => 1)],
      ["stopOnFailure", () => runs.backfill({ schedule, since, stopOnFailure: 1 as never }, () => 1)],
      ["work", () => runs.backfill({ schedule, since }, null as never)],
      ["options.from", () => runs.backfill({ schedule, since, from: since } as never, () => 1)],
    ];
    for (const [option, call] of refused) await expect(call(), option).rejects.toMatchObject({ option });
    expect(store.calls).toEqual([]);
  });

  test("a report or remark that cannot be kept is refused by name in the work, which may go on", async () => {
    const runs = new JobRuns(client(), job);
    await runs.run(slot, ({ progress, remark }) => {
      for (const bad of [undefined, Number.NaN, new Map(), "x".repeat(4095)]) {
        expect(() => progress(bad)).toThrow(expect.objectContaining({ option: "progress" }));
      }
      expect(() => progress({ a: [1n] })).toThrow(expect.objectContaining({ option: "progress.a.0" }));
      expect(() => remark("x".repeat(1025))).toThrow(expect.objectContaining({ option: "remark" }));
    });
    expect(await runs.get(slot)).toMatchObject({
      state: "succeeded",
      progress: undefined,
      remark: undefined,
    });
  });

  test("an error's text is cut between characters, and one that cannot be described is an error all the same", async () => {
    const runs = new JobRuns(client(), job, { maxAttempts: 9 });
    const remarkAfter = async (runs: JobRuns, error: unknown): Promise<string | undefined> => {
      await runs.run(slot, () => Promise.reject(error)).catch(() => undefined);
      return (await runs.get(slot))?.remark;
    };
    const long = await remarkAfter(runs, new Error("€".repeat(1000)));
    expect(long).toMatch(/^Error: €+…$/);
    expect(new TextEncoder().encode(long).length).toBeLessThanOrEqual(1024);
    expect(await remarkAfter(runs, "a text\ud800")).toBe("a text\ufffd");
    expect(await remarkAfter(runs, Object.create(null))).toBe("an error that could not be described");
    const quiet = new JobRuns(client(), job, { maxAttempts: 9, describeError: () => "" });
    expect(await remarkAfter(quiet, new Error("a secret"))).toBeUndefined();
  });
});
