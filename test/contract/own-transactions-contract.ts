import { LeaseClient, LeaseLostError, type LeaseTransactItem, SlotDoneError } from "@leasehold/client";
import { beforeEach, describe, expect, it } from "vitest";
import { JobRuns, type Task, TaskLostError, TaskSet } from "../../packages/jobs/src/index.ts";
import { PatientClock } from "../support/patient-clock.ts";
import type { Place } from "./lease-contract.ts";
import { newKey } from "./new-key.ts";

/** A user's transactions, which write an item of the user's beside the entries. */
export interface UserTable {
  /** Writes the item, if it is not there yet, and the entries: all or nothing. */
  write(id: string, entries: readonly LeaseTransactItem[]): Promise<void>;
  has(id: string): Promise<boolean>;
}

const leaseDurationMs = 300;
const clockSkewMs = 100;
const pastLease = leaseDurationMs + clockSkewMs + 1;
const cut = new Error("the connection is cut");

/** What holds for ends and additions in a user's own transaction, wherever they are kept. */
export function ownTransactionsContract(place: (clock: PatientClock) => Place, users: () => UserTable): void {
  let clock: PatientClock;
  let name: string;
  const clientOf = (owner: string): LeaseClient =>
    new LeaseClient({ ...place(clock), clock, owner, leaseDurationMs, clockSkewMs });
  const tasksOf = (owner: string): TaskSet => new TaskSet(clientOf(owner), name, { heartbeat: false });
  const claimed = async (set: TaskSet): Promise<Task> => {
    const task = await set.claim();
    if (task === undefined) throw new Error("there is no task to claim");
    return task;
  };

  beforeEach(() => {
    clock = new PatientClock(Date.now());
    name = newKey("own");
  });

  describe("a task that ends in the user's transaction", () => {
    it("has succeeded with what the transaction writes, and is never claimed again", async () => {
      const tasks = tasksOf("a");
      await tasks.add([{ id: "1", payload: { rows: 3 } }]);
      const task = await claimed(tasks);
      await task.succeedIn((entries) => users().write(name, entries), { remark: "shipped" });
      expect(await users().has(name)).toBe(true);
      expect(task.held).toBe(false);
      expect(await tasks.get("1")).toMatchObject({
        state: "succeeded",
        remark: "shipped",
        payload: { rows: 3 },
      });
      expect(await tasksOf("b").claim()).toBeUndefined();
      await task.succeed();
    });

    it("counts as settled by its work in process", async () => {
      const tasks = tasksOf("a");
      await tasks.add([{ id: "1" }]);
      const work = (task: Task) => task.succeedIn((entries) => users().write(name, entries));
      expect(await tasks.process(work)).toMatchObject({ settled: 1, succeeded: 0 });
    });

    it("stays its worker's when the transaction is refused, and nothing is written", async () => {
      await users().write(name, []);
      const tasks = tasksOf("a");
      await tasks.add([{ id: "1" }]);
      const task = await claimed(tasks);
      await expect(task.succeedIn((entries) => users().write(name, entries))).rejects.toMatchObject({
        name: "TransactionCanceledException",
      });
      expect(task.held).toBe(true);
      await task.renew();
      expect(await task.fail("refused", { retryAfterMs: 0 })).toBe("waiting");
      expect(await tasks.get("1")).toMatchObject({ state: "waiting", remark: "refused" });
    });

    it("has succeeded where the answer to the transaction was lost", async () => {
      const tasks = tasksOf("a");
      await tasks.add([{ id: "1" }]);
      const task = await claimed(tasks);
      await task.succeedIn(async (entries) => {
        await users().write(name, entries);
        throw cut;
      });
      expect(await tasks.get("1")).toMatchObject({ state: "succeeded" });
    });

    it("is open where the transaction was never written, and the error is the user's", async () => {
      const tasks = tasksOf("a");
      await tasks.add([{ id: "1" }]);
      const task = await claimed(tasks);
      await expect(task.succeedIn(() => Promise.reject(cut))).rejects.toBe(cut);
      await task.succeed();
      expect(await tasks.get("1")).toMatchObject({ state: "succeeded" });
    });

    it("writes nothing once another worker has the task", async () => {
      const tasks = tasksOf("a");
      await tasks.add([{ id: "1" }]);
      const task = await claimed(tasks);
      await clock.advance(pastLease);
      const next = await claimed(tasksOf("b"));
      await expect(task.succeedIn((entries) => users().write(name, entries))).rejects.toMatchObject({
        name: "TransactionCanceledException",
      });
      expect(await users().has(name)).toBe(false);
      await expect(task.succeed()).rejects.toBeInstanceOf(TaskLostError);
      await next.succeed();
    });
  });

  describe("tasks that are added in the user's transaction", () => {
    it("are there with what it writes, and can be claimed", async () => {
      const tasks = tasksOf("a");
      await users().write(
        name,
        tasks.addEntries([
          { id: "1", payload: "p" },
          { id: "2", delayMs: 60_000 },
        ]),
      );
      const task = await claimed(tasks);
      expect([task.id, task.payload]).toEqual(["1", "p"]);
      expect(await tasks.claim()).toBeUndefined();
    });

    it("refuse it where the set knows one of them, open or ended", async () => {
      const tasks = tasksOf("a");
      await tasks.add([{ id: "open" }]);
      const refused = users().write(name, tasks.addEntries([{ id: "new" }, { id: "open" }]));
      await expect(refused).rejects.toMatchObject({ name: "TransactionCanceledException" });
      await (await claimed(tasks)).succeed();
      const again = users().write(name, tasks.addEntries([{ id: "open" }]));
      await expect(again).rejects.toMatchObject({ name: "TransactionCanceledException" });
      expect(await tasks.get("new")).toBeUndefined();
      expect(await users().has(name)).toBe(false);
    });
  });

  describe("a run that succeeds in the user's transaction", () => {
    const runsOf = (owner: string): JobRuns => new JobRuns(clientOf(owner), name, { heartbeat: false });
    const slot = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000).toISOString();

    it("is done with what the transaction writes, and gives its result", async () => {
      const runs = runsOf("a");
      const result = await runs.run(slot, async (run) => {
        run.remark("3 rows");
        await run.succeedIn((entries) => users().write(name, entries));
        expect(run.lease.held).toBe(false);
        return "done";
      });
      expect(result).toBe("done");
      expect(await users().has(name)).toBe(true);
      expect(await runs.get(slot)).toMatchObject({ state: "succeeded", remark: "3 rows", attempt: 1 });
      await expect(runsOf("b").run(slot, () => undefined)).rejects.toBeInstanceOf(SlotDoneError);
    });

    it("stays done when the work throws after it, and the error is the call's", async () => {
      const runs = runsOf("a");
      const run = runs.run(slot, async (attempt) => {
        await attempt.succeedIn((entries) => users().write(name, entries));
        throw cut;
      });
      await expect(run).rejects.toBe(cut);
      expect(await runs.get(slot)).toMatchObject({ state: "succeeded" });
    });

    it("goes on when the transaction is refused, and fails by its error", async () => {
      await users().write(name, []);
      const runs = runsOf("a");
      const run = runs.run(slot, async (attempt) => {
        await attempt.succeedIn((entries) => users().write(name, entries)).catch(() => undefined);
        expect(attempt.lease.held).toBe(true);
        await attempt.lease.renew();
        throw cut;
      });
      await expect(run).rejects.toBe(cut);
      expect(await runs.get(slot)).toMatchObject({ state: "failed", remark: String(cut) });
      expect(await runsOf("b").run(slot, () => "again")).toBe("again");
    });

    it("is done where the answer to the transaction was lost", async () => {
      const runs = runsOf("a");
      await runs.run(slot, (attempt) =>
        attempt.succeedIn(async (entries) => {
          await users().write(name, entries);
          throw cut;
        }),
      );
      expect(await runs.get(slot)).toMatchObject({ state: "succeeded" });
    });

    it("has the error of a second transaction, which was not written, although the first one arrived meanwhile", async () => {
      const runs = runsOf("a");
      const refused = new Error("refused");
      const run = runs.run(slot, async (attempt) => {
        let first: LeaseTransactItem[] = [];
        const late = attempt.succeedIn((entries) => {
          first = entries;
          return Promise.reject(cut);
        });
        await expect(late).rejects.toBe(cut);
        await clock.advance(1);
        await attempt.succeedIn(async () => {
          await users().write(name, first);
          throw refused;
        });
      });
      await expect(run).rejects.toBe(refused);
      expect(await runs.get(slot)).toMatchObject({ state: "succeeded" });
    });

    it("writes nothing once another attempt has begun", async () => {
      const late = runsOf("a").run(slot, async (attempt) => {
        await clock.advance(pastLease);
        await runsOf("b").run(slot, () => undefined);
        await attempt.succeedIn((entries) => users().write(name, entries));
      });
      await expect(late).rejects.toMatchObject({ name: "TransactionCanceledException" });
      expect(await users().has(name)).toBe(false);
    });

    it("is refused after an end of the lease that the holder knows of", async () => {
      const late = runsOf("a").run(slot, async (attempt) => {
        await attempt.succeedIn((entries) => users().write(name, entries));
        await attempt.succeedIn(() => Promise.reject(new Error("is not called")));
      });
      await expect(late).rejects.toBeInstanceOf(LeaseLostError);
    });
  });
}
