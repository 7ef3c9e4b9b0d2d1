import { LeaseLostError, type LeaseTransactItem, LeaseUnavailableError } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { settled } from "@leasehold/client/testing";
import { describe, expect, test } from "vitest";
import { JobRuns } from "../../packages/jobs/src/index.ts";
import { runItemKey } from "../../packages/jobs/src/runs/schema.ts";
import { adminOf } from "../support/admin.ts";
import { failureOf } from "../support/failure-of.ts";
import { follow } from "../support/follow.ts";
import { entriesOf, transactIn } from "../support/own-transaction.ts";
import type { ScriptedStore } from "../support/scripted-store.ts";
import { watchedMs } from "../support/watching.ts";
import {
  beginAnew,
  breakLease,
  clientOf,
  clock,
  die,
  hourMs,
  inTime,
  item,
  job,
  leaseDurationMs,
  never,
  runsOf,
  slot,
  store,
} from "./runs.ts";

beginAnew();

describe("calls of one object with reentrant", () => {
  const again = { owner: "me", reentrant: true, waitMs: 500 } as const;
  const fail = (): never => {
    throw new Error("no");
  };
  /** Begins an attempt in another process, which does not end. */
  const beginElsewhere = async (owner: string, of = slot): Promise<void> => {
    void runsOf("elsewhere").run(of, never, { owner, reentrant: true });
    await settled();
    store.calls.length = 0;
  };

  test("of another object of the same client are attempts of their own, and share no lease", async () => {
    const client = clientOf("a");
    const [one, two] = [new JobRuns(client, job), new JobRuns(client, job)];
    const seen: number[] = [];
    const first = one.run(
      slot,
      async ({ attempt, signal }) => {
        seen.push(attempt);
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
      again,
    );
    first.catch(() => undefined);
    await settled();
    expect(await inTime(two.run(slot, ({ attempt }) => attempt, again))).toBe(2);
    expect(await failureOf(inTime(first))).toBeInstanceOf(LeaseLostError);
    expect(seen).toEqual([1]);
  });

  test("take over an attempt of their owner without waiting, and each slot for itself", async () => {
    const other = "2025-12-31T22:00:00.000Z";
    await beginElsewhere("me");
    await beginElsewhere("me", other);
    const runs = runsOf("a");
    const attempts = [slot, other].map((of) => runs.run(of, ({ attempt }) => attempt, again));
    expect(await Promise.all(attempts)).toEqual([2, 2]);
  });

  test("at the same moment run one by one, also if the first one's request arrives last", async () => {
    const update = store.update.bind(store);
    const delay = Promise.withResolvers<void>();
    let sent = 0;
    store.update = async (...call) => {
      sent += 1;
      if (sent === 1) await delay.promise;
      return await update(...call);
    };
    const runs = runsOf("a");
    let running = 0;
    let mostAtOnce = 0;
    const work = async (): Promise<void> => {
      running += 1;
      mostAtOnce = Math.max(mostAtOnce, running);
      await never();
    };
    const refused = [1, 2, 3].map(() => failureOf(runs.run(slot, work, again)));
    await settled();
    delay.resolve();
    await clock.advance(500);
    expect(await Promise.race(refused)).toBeInstanceOf(LeaseUnavailableError);
    expect(mostAtOnce).toBe(1);
  });

  test("try once when they are not to wait, and after an error that is no refusal", async () => {
    await beginElsewhere("you");
    const refused = await failureOf(runsOf("a").run(slot, never, { ...again, waitMs: 0 }));
    expect(refused).toBeInstanceOf(LeaseUnavailableError);
    expect(store.count("update")).toBe(1);
    store.next("rejected");
    const error = await failureOf(runsOf("a").run(slot, never, again));
    expect(error).toMatchObject({ code: "LEASE_REQUEST_REJECTED" });
    expect(store.count("update")).toBe(2);
  });

  test("that wait for the first try of an earlier call end with their signal", async () => {
    store.update = never;
    const runs = runsOf("a");
    void failureOf(runs.run(slot, never, again));
    await settled();
    const stop = new AbortController();
    const waiting = follow(runs.run(slot, never, { ...again, signal: stop.signal }), clock);
    await settled();
    stop.abort(new Error("enough"));
    await settled();
    expect(waiting.error).toMatchObject({ code: "LEASE_ABORTED", cause: stop.signal.reason });
  });

  test("may take over again when no other call for the slot is in progress", async () => {
    const runs = runsOf("a", { maxAttempts: 4 });
    await failureOf(runs.run(slot, fail, again));
    await beginElsewhere("you");
    expect(await failureOf(runs.run(slot, never, { ...again, waitMs: 0 }))).toBeInstanceOf(
      LeaseUnavailableError,
    );
    await breakLease();
    await beginElsewhere("me");
    expect(await inTime(runs.run(slot, ({ attempt }) => attempt, again))).toBe(4);
  });
});

describe("an attempt that succeeds in a transaction of its own", () => {
  const send = (entries: LeaseTransactItem[]) => transactIn(store, entriesOf(entries));

  test.each([
    ["returns", undefined],
    ["throws", new Error("too late")],
  ])("has released its lease, and sends no more when its work %s", async (_, error) => {
    const at = new Date(slot);
    const schedule = { next: (after: Date) => (after < at ? at : undefined) };
    const reasons: unknown[] = [];
    const report = await runsOf("a").backfill({ schedule, since: slot }, async ({ lease, succeedIn }) => {
      await succeedIn(send);
      reasons.push(lease.signal.reason);
      if (error !== undefined) throw error;
    });
    const outcome =
      error === undefined ? { succeeded: [slot], failed: [] } : { succeeded: [], failed: [{ slot, error }] };
    expect(report).toMatchObject(outcome);
    expect(reasons).toMatchObject([{ reason: "released" }]);
    expect(store.calls.map(({ method }) => method)).toEqual(["query", "update", "transact"]);
  });

  test("has not succeeded without it, when its client is closed while it is sent", async () => {
    const client = clientOf("a");
    const running = new JobRuns(client, job).run(slot, ({ succeedIn }) =>
      succeedIn(async (entries) => {
        await client.close();
        await send(entries);
      }),
    );
    await expect(running).rejects.toThrow("cancelled");
    expect(await runsOf("b").get(slot)).toMatchObject({ state: "lost" });
  });

  test("goes on when its work handles the error of one that was refused", async () => {
    const running = runsOf("a").run(slot, async ({ succeedIn }) => {
      await succeedIn(() => Promise.reject(new Error("refused"))).catch(() => undefined);
      return "done";
    });
    expect(await running).toBe("done");
    expect(item()).toMatchObject({ state: "succeeded" });
  });

  test("waits for the second of two when its work has waited for the first alone, which was refused", async () => {
    let hasSent = false;
    const refused = new Error("refused");
    await runsOf("a").run(slot, async ({ succeedIn }) => {
      const first = succeedIn(() => Promise.reject(refused));
      void succeedIn(async (entries) => {
        await settled();
        await send(entries);
        hasSent = true;
      });
      expect(await failureOf(first)).toBe(refused);
    });
    expect(hasSent).toBe(true);
    expect(item()).toMatchObject({ state: "succeeded" });
  });

  test("fails by the error of one that its work did not wait for", async () => {
    const refused = new Error("refused");
    const running = runsOf("a").run(slot, ({ succeedIn }) => void succeedIn(() => Promise.reject(refused)));
    expect(await failureOf(running)).toBe(refused);
    expect(item()).toMatchObject({ state: "failed", remark: String(refused) });
  });

  test("has succeeded by the first of two that its work did not wait for", async () => {
    const running = runsOf("a").run(slot, ({ succeedIn }) => {
      for (let calls = 0; calls < 2; calls += 1) succeedIn(send).catch(() => undefined);
      return "done";
    });
    expect(await running).toBe("done");
  });
});

describe("an attempt whose lease is lost while it works", () => {
  test("rejects with that loss, which tells who has taken it", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let lost: unknown;
    const done = runsOf("a").run(slot, async ({ lease, signal }) => {
      await promise;
      await lease.renew().catch(() => undefined);
      lost = signal.reason;
    });
    await settled();
    await breakLease();
    void runsOf("other").run(slot, never);
    await settled();
    resolve();
    const error = await failureOf(inTime(done));
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toBe(lost);
    expect(error).toMatchObject({ reason: "taken", message: expect.stringContaining("other") });
  });

  test("has its signal abort, although the caller has given one of its own", async () => {
    const reasons: unknown[] = [];
    const { signal: own } = new AbortController();
    const work = async ({
      lease,
      signal,
    }: {
      readonly lease: { renew(): Promise<void> };
      readonly signal: AbortSignal;
    }) => {
      await breakLease();
      await lease.renew().catch(() => undefined);
      reasons.push(signal.reason);
    };
    await failureOf(runsOf("a").run(slot, work, { signal: own }));
    expect(reasons).toMatchObject([{ reason: "released" }]);
  });

  test("rejects with its revocation when its outcome is recorded, so that its caller may end the process", async () => {
    const run = runsOf("a").run(slot, async ({ lease }) => {
      const { sk: sortKey } = runItemKey(job, slot);
      await adminOf(clientOf("operator")).requestRevocation(job, { sortKey, token: lease.token });
      await lease.renew().catch(() => undefined);
      store.next("throttled");
    });
    expect(await failureOf(inTime(run))).toMatchObject({ code: "LEASE_LOST", reason: "revoked" });
    expect(item()).toMatchObject({ state: "failed" });
  });

  test("has not succeeded when its work has released the lease before, and the answer to that was lost", async () => {
    const run = runsOf("a").run(slot, async ({ lease }) => {
      store.next("answer lost", "request lost", "request lost", "request lost");
      await lease.release().catch(() => undefined);
    });
    expect(await failureOf(inTime(run))).toBeInstanceOf(LeaseLostError);
    expect(await runsOf("a").get(slot)).toMatchObject({ state: "lost" });
  });

  test("is told by its own release that an operator had ended the lease", async () => {
    let wasOurs: unknown;
    const done = runsOf("a").run(slot, async ({ lease }) => {
      await breakLease();
      wasOurs = await lease.release();
    });
    expect(await failureOf(done)).toBeInstanceOf(LeaseLostError);
    expect(wasOurs).toBe(false);
  });
});

describe("an outcome that is not confirmed", () => {
  test("is sent again after pauses that double from 200 ms, five times at most", async () => {
    const times: number[] = [];
    const update = store.update.bind(store);
    const done = runsOf("a", { heartbeat: false }).run(slot, () => {
      store.update = (...call) => {
        times.push(clock.monotonic());
        return update(...call);
      };
      store.weather = "throttled";
    });
    expect(await failureOf(inTime(done))).toMatchObject({ code: "LEASE_THROTTLED" });
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(gaps).toEqual([200, 400, 800, 1_600]);
  });
});

describe("a run", () => {
  test("rejects with its work's own error", async () => {
    const error = new Error("broken");
    expect(await failureOf(runsOf("a").run(slot, () => Promise.reject(error)))).toBe(error);
    expect(await failureOf(runsOf("a").tryRun(slot, () => Promise.reject(error)))).toBe(error);
  });

  test("whose last attempt is still at work is unavailable, not exhausted", async () => {
    void runsOf("a", { maxAttempts: 1 }).run(slot, never);
    await settled();
    const error = await failureOf(runsOf("b", { maxAttempts: 1 }).run(slot, () => "done"));
    expect(error).toBeInstanceOf(LeaseUnavailableError);
    expect(await runsOf("b", { maxAttempts: 1 }).get(slot)).toMatchObject({ exhausted: false });
  });

  test("does not begin its work once its client is being closed, at whatever moment that happens", async () => {
    for (let turns = 0; turns < 40; turns += 1) {
      let isClosing = false;
      let hasBegunLate = false;
      const client = clientOf(`a${turns}`, {
        onEvent: async ({ type }) => {
          if (type !== "acquired") return;
          for (let turn = 0; turn < turns; turn += 1) await undefined;
          isClosing = true;
          void client.close().catch(() => undefined);
        },
      });
      const at = new Date(Date.parse(slot) - turns * hourMs);
      const work = () => {
        hasBegunLate = isClosing;
      };
      await failureOf(new JobRuns(client, job).run(at, work));
      expect({ turns, hasBegunLate }).toEqual({ turns, hasBegunLate: false });
    }
  });
});

describe("skipping a slot", () => {
  test("whose lost attempt renews its lease at the last moment is refused", async () => {
    await die();
    const update = store.update.bind(store);
    let calls = 0;
    store.update = async (...call) => {
      calls += 1;
      const { key } = call[0];
      if (calls === 2) {
        store.table.updateNow({
          ...{
            key,
            update: "SET #version = :next",
            condition: "attribute_exists(#token)",
            returnsItem: false,
          },
          ...{ names: { "#version": "version", "#token": "token" }, values: { ":next": 99 } },
        });
      }
      return await update(...call);
    };
    expect(await failureOf(runsOf("b").skip(slot))).toBeInstanceOf(LeaseUnavailableError);
    expect(calls).toBe(2);
    expect(item()?.state).toBeUndefined();
  });
});

describe("a skip", () => {
  test("over the head of a work that goes on has that told that its lease is lost, not that it succeeded", async () => {
    const ends = Promise.withResolvers<void>();
    const slow = runsOf("slow", { heartbeat: false }).run(slot, () => ends.promise);
    await settled();
    const impatient = runsOf("impatient");
    await expect(impatient.skip(slot)).rejects.toThrow(LeaseUnavailableError);
    await clock.advance(watchedMs(leaseDurationMs) + 1_000);
    await impatient.skip(slot, "took too long");
    ends.resolve();
    await expect(slow).rejects.toThrow(LeaseLostError);
    expect(await impatient.get(slot)).toMatchObject({ state: "skipped", lostAttempts: 1 });
  });

  test("under a person's name leaves one trace, also of a slot whose attempt was lost, and where its answer is", async () => {
    await die();
    const runs = runsOf("a");
    store.next(undefined, "answer lost");
    const skip = () => runs.skip(slot, "holiday", { by: "alice" });
    await expect(skip()).rejects.toMatchObject({ mayHaveLanded: true });
    await skip();
    expect(await runs.get(slot)).toMatchObject({ state: "skipped", lostAttempts: 1 });
    const traces: unknown[] = [];
    for await (const trace of new LeaseOperator(clientOf("b"), { by: "reader" }).audit()) traces.push(trace);
    expect(traces).toMatchObject([
      { key: job, sortKey: `run#${slot}`, action: "skip", by: "alice", reason: "holiday" },
    ]);
  });

  test("is by the owner of its runs", async () => {
    await runsOf("pod-1", { owner: "nightly" }).skip(slot);
    expect(await runsOf("a").get(slot)).toMatchObject({ state: "skipped", owner: "nightly" });
  });

  test("whose transaction was sent twice, and taken back in between, says that the slot was not skipped", async () => {
    const runs = runsOf("a");
    const transact = store.transact.bind(store);
    store.transact = async (...sent) => {
      await transact(...sent);
      await runs.takeBack({ slot, attempt: 0, endedAt: clock.now() });
      return await transact(...sent);
    };
    await expect(runs.skip(slot, "holiday", { by: "alice" })).rejects.toThrow(LeaseUnavailableError);
  });
});

describe("taking a run back", () => {
  test("says that a skipped slot is not open when nothing is kept of it any more", async () => {
    expect(await runsOf("b").takeBack({ slot, attempt: 0, endedAt: 5 })).toBe(false);
  });

  test("takes a run without an end", async () => {
    await runsOf("a").run(slot, () => "done");
    expect(await runsOf("b").takeBack({ slot, attempt: 1, endedAt: undefined })).toBe(false);
  });
});

describe("the history", () => {
  const requests: Parameters<ScriptedStore["query"]>[0][] = [];
  const watch = () => {
    requests.length = 0;
    const query = store.query.bind(store);
    store.query = (request, options) => {
      requests.push(request);
      return query(request, options);
    };
  };
  const slotAt = (hours: number) => new Date(Date.parse(slot) - hours * hourMs).toISOString();
  const listed = async (runs: AsyncIterable<{ readonly slot: string }>): Promise<string[]> => {
    const slots: string[] = [];
    for await (const run of runs) slots.push(run.slot);
    return slots;
  };

  test("asks for no more runs than it gives, and for 250 at a time", async () => {
    watch();
    await listed(runsOf("a").runs({ limit: 5 }));
    await listed(runsOf("a").runs({ limit: 251 }));
    await listed(runsOf("a").runs({ limit: 5, state: "failed" }));
    expect(requests.map(({ limit }) => limit)).toEqual([5, 250, 250]);
    expect(requests.some(({ consistent }) => consistent)).toBe(false);
  });

  test("finds missed slots from the first one of the range on, and sees every earlier write", async () => {
    watch();
    const next = (after: Date) => new Date((Math.floor(after.getTime() / hourMs) + 1) * hourMs);
    const since = slotAt(2);
    expect(await listed(runsOf("a").missed({ schedule: { next }, since }))).toEqual([2, 1, 0].map(slotAt));
    expect(requests).toMatchObject([{ consistent: true, limit: 250, values: { ":start": `run#${since}` } }]);
  });

  test("sends nothing for missed slots of an empty range", async () => {
    watch();
    const next = (after: Date) => new Date(after.getTime() + hourMs);
    for (const until of [slotAt(2), slotAt(3)])
      expect(await listed(runsOf("a").missed({ schedule: { next }, since: slotAt(2), until }))).toEqual([]);
    expect(requests).toEqual([]);
  });

  test("begins with the oldest slot that is certainly kept, and refuses an older one", async () => {
    const keepForMs = 48 * hourMs;
    const runs = runsOf("a", { keepForMs });
    await runs.skip(new Date(clock.now() - keepForMs));
    const error = await failureOf(runs.skip(new Date(clock.now() - keepForMs - 1)));
    expect(error).toMatchObject({ option: "slot" });
  });
});
