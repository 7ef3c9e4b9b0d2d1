import { LeaseLostError, LeaseServiceError } from "@leasehold/client";
import { settled } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { describe, expect, test } from "vitest";
import { JobRuns } from "../../packages/jobs/src/index.ts";
import {
  beginAnew,
  clientOf,
  clock,
  fail,
  hourMs,
  inTime,
  item,
  pastLeaseMs,
  runsOf,
  slot,
  store,
} from "./runs.ts";

const schedule = { next: (after: Date) => new Date(Math.floor(after.getTime() / hourMs + 1) * hourMs) };

beginAnew();

describe("requests", () => {
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
});

describe("answers that got lost", () => {
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
      await clock.advance(pastLeaseMs);
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
    await clock.advance(pastLeaseMs);
    expect(await runs.get(slot)).toMatchObject({ state: "lost", attempt: 1 });
    expect(await runsOf("b").run(slot, ({ attempt }) => attempt)).toBe(2);
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

  test("renewals at the same moment share a request, where no report is to be written", async () => {
    await runsOf("a", { heartbeat: false }).run(slot, async ({ lease }) => {
      const before = store.count("update");
      await Promise.all([lease.renew(), lease.renew()]);
      expect(store.count("update") - before).toBe(1);
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

describe("work that ends its attempt's lease itself", () => {
  test("has lost it where it releases it", async () => {
    const run = runsOf("a").run(slot, ({ lease }) => lease.release());
    await expect(run).rejects.toMatchObject({ code: "LEASE_LOST", reason: "released" });
    expect(await runsOf("a").get(slot)).toMatchObject({ state: "lost", attempt: 1, owner: "a" });
  });

  test.each([
    [[], 3],
    [["answer lost"], 4],
  ] as const)("has succeeded where it completes it: %s", async (weather, requests) => {
    await expect(runsOf("a").run(slot, fail)).rejects.toThrow("broken");
    store.calls.length = 0;
    const run = runsOf("b").run(slot, async ({ lease, progress, remark }) => {
      progress({ pages: 3 });
      remark("done");
      store.next(...weather);
      return await lease.complete().catch(() => "unknown");
    });
    expect(await inTime(run)).toBe(weather.length === 0 ? true : "unknown");
    const last = { attempt: 2, state: "succeeded", owner: "b", remark: "done" };
    const attempts = [{ attempt: 1, state: "failed", remark: "Error: broken" }, last];
    expect(await runsOf("a").get(slot)).toMatchObject({ ...last, progress: { pages: 3 }, attempts });
    expect(store.calls).toHaveLength(requests);
    expect(await runsOf("a").tryRun(slot, fail)).toBeUndefined();
  });
});

describe("bad input", () => {
  test.each([
    "2026-01-01T00:00:00Z",
    "2026-01-01T01:00:00.000+01:00",
    "2026-02-30T00:00:00.000Z",
    "+010000-01-01T00:00:00.000Z",
    undefined,
    Symbol("slot"),
    new Date(8.64e15),
  ])("the slot %s is refused by name, and nothing is sent", async (bad) => {
    const runs = runsOf("a");
    const given = bad as string;
    for (const call of [
      runs.run(given, () => 1),
      runs.tryRun(given, () => 1),
      runs.skip(given),
      runs.get(given),
    ])
      await expect(call).rejects.toMatchObject({ code: "LEASE_INVALID_OPTIONS", option: "slot" });
    expect(store.calls).toEqual([]);
  });

  test("a slot that is an invalid Date is shown as one", async () => {
    const runs = runsOf("a");
    await expect(runs.get(new Date(Number.NaN))).rejects.toThrow("an invalid Date");
  });

  test("bad work, options, remarks and queries are refused by name, and nothing is sent", async () => {
    const runs = runsOf("a");
    const schedule = { next: () => undefined };
    const since = slot;
    const unreadable = {
      get attempt(): number {
        throw new Error("it cannot be read");
      },
    };
    const refused: [string, () => Promise<unknown>][] = [
      ["key", async () => new JobRuns(clientOf("a"), "")],
      ["maxAttempts", async () => runsOf("a", { maxAttempts: 1.5 })],
      ["keepForMs", async () => runsOf("a", { keepForMs: 1 })],
      ["leaseDurationMs", async () => runsOf("a", { leaseDurationMs: 0 })],
      ["heartbeat", async () => runsOf("a", { leaseDurationMs: 100, heartbeat: 90 })],
      ["owner", async () => runsOf("a", { owner: "" })],
      ["describeError", async () => runsOf("a", { describeError: "name" as never })],
      ["options.maxAttempt", async () => runsOf("a", { maxAttempt: 3 } as never)],
      ["run", () => runs.takeBack(undefined as never)],
      ["run", () => runs.takeBack(5 as never)],
      ["run", () => runs.takeBack(unreadable as never)],
      ["run.attempt", () => runs.takeBack({ slot, attempt: 1.5, endedAt: 5 })],
      ["run.endedAt", () => runs.takeBack({ slot, attempt: 1, endedAt: "then" as never })],
      ["remark", () => runs.takeBack({ slot, attempt: 1, endedAt: 5 }, "")],
      ["by", () => runs.skip(slot, "holiday", { by: "" })],
      ["schedule", () => runs.schedule("every hour", () => undefined)],
      ["work", () => runs.schedule("rate(1 hour)", "work" as never)],
      ["catchUpMs", () => runs.schedule("rate(1 hour)", () => undefined, { catchUpMs: 16 * 24 * hourMs })],
      ["retryAfterMs", () => runs.schedule("rate(1 hour)", () => undefined, { retryAfterMs: 10 })],
      ["options.jitter", () => runs.schedule("rate(1 hour)", () => undefined, { jitter: 1 } as never)],
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
      ["schedule", async () => runs.missed({ schedule: { next: 5 } as never, since })],
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
    const runs = runsOf("a");
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
    const runs = runsOf("a", { maxAttempts: 9 });
    const remarkAfter = async (runs: JobRuns, error: unknown): Promise<string | undefined> => {
      await runs.run(slot, () => Promise.reject(error)).catch(() => undefined);
      return (await runs.get(slot))?.remark;
    };
    const long = await remarkAfter(runs, new Error("€".repeat(1000)));
    expect(long).toMatch(/^Error: €+…$/);
    expect(new TextEncoder().encode(long).length).toBeLessThanOrEqual(1024);
    expect(await remarkAfter(runs, "e".repeat(1_024))).toBe("e".repeat(1_024));
    expect(await remarkAfter(runs, "a text\ud800")).toBe("a text\ufffd");
    expect(await remarkAfter(runs, Object.create(null))).toBe("an error that could not be described");
    const quiet = runsOf("a", { maxAttempts: 9, describeError: () => "" });
    expect(await remarkAfter(quiet, new Error("a secret"))).toBeUndefined();
  });
});
