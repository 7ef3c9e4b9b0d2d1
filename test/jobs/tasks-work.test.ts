import { LeaseClient, LeaseServiceError } from "@leasehold/client";
import { sleep } from "@leasehold/client/internal";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { FinalFailureError, type Task, TaskSet, type TaskSetOptions } from "../../packages/jobs/src/index.ts";
import { endedTaskKey, openTaskKey } from "../../packages/jobs/src/tasks/schema.ts";
import { follow } from "../support/follow.ts";
import { type Fate, ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 30_000;
let clock: ManualClock;
let store: ScriptedStore;

const setOf = (owner: string, options: TaskSetOptions = {}): TaskSet =>
  new TaskSet(new LeaseClient({ store, clock, owner, leaseDurationMs }), "set", options);
const add = (count: number, options: TaskSetOptions = {}) =>
  setOf("adder", options).add(Array.from({ length: count }, (_, index) => ({ id: `${index}` })));
const counts = () => setOf("reader").counts();
const open = (id: string) => store.table.peek(openTaskKey("set", id));
const ended = (id: string) => store.table.peek(endedTaskKey("set", id));

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

describe("a loop over a set", () => {
  test("fails a task that its body left open, at most as often as it has attempts", async () => {
    await add(1, { maxAttempts: 2 });
    const attempts: number[] = [];
    for await (const task of setOf("a", { backoff: { delayMs: 0 } }).work()) attempts.push(task.attempt);
    expect(attempts).toEqual([1, 2]);
    expect(ended("0")).toMatchObject({ state: "failed", remark: "left open by its worker" });
  });

  test("that is left or that throws gives its task back", async () => {
    await add(1);
    const set = setOf("a", { backoff: { delayMs: 0 } });
    for await (const _ of set.work()) break;
    expect(open("0")).toMatchObject({ attempts: 1, remark: "left open by its worker" });
    const loop = async (): Promise<void> => {
      for await (const task of set.work()) throw new Error(`cannot do ${task.id}`);
    };
    await expect(loop()).rejects.toThrow("cannot do 0");
    expect(open("0")).toMatchObject({ attempts: 2 });
    expect(open("0")?.token).toBeUndefined();
    expect(clock.pending).toBe(0);
  });

  test("waits for an ending that its body did not wait for", async () => {
    await add(5);
    for await (const task of setOf("a").work()) void task.succeed();
    expect(await counts()).toMatchObject({ succeeded: 5 });
  });

  test("with a concurrency gives no more tasks at a time, and waits for them in the end", async () => {
    await add(10);
    let running = 0;
    let most = 0;
    const handle = async (task: Task): Promise<void> => {
      running += 1;
      most = Math.max(most, running);
      await settled();
      await task.succeed();
      running -= 1;
    };
    for await (const task of setOf("a").work({ concurrency: 3 })) void handle(task);
    expect(await counts()).toMatchObject({ succeeded: 10 });
    expect(most).toBe(3);
  });

  test("with a concurrency waits for its tasks also where it ends with an error, which comes then", async () => {
    await add(2);
    const refused = new LeaseServiceError("LEASE_REQUEST_REJECTED", "no policy allows it");
    const query = store.query.bind(store);
    let begun = 0;
    const handle = async (task: Task): Promise<void> => {
      begun += 1;
      if (begun === 2) store.query = () => Promise.reject(refused);
      await sleep(clock, 5_000);
      await task.succeed();
    };
    const run = (async () => {
      for await (const task of setOf("a").work({ concurrency: 3 })) void handle(task);
    })();
    const error = run.catch((thrown: unknown) => thrown);
    await clock.advance(10_000);
    expect(await error).toBe(refused);
    store.query = query;
    expect(await counts()).toMatchObject({ succeeded: 2 });
  });

  test("pauses between claims", async () => {
    await add(3);
    const at: number[] = [];
    const run = (async () => {
      for await (const task of setOf("a").work({ pauseMs: 500 })) {
        at.push(clock.monotonic());
        await task.succeed();
      }
    })();
    await clock.advance(2_000);
    await run;
    expect(at).toEqual([0, 500, 1_000]);
  });

  test("ends at its signal, in a pause as well, and leaves the task to its body", async () => {
    await add(3);
    const stop = new AbortController();
    let last: Task | undefined;
    const run = (async () => {
      for await (const task of setOf("a").work({ pauseMs: 60_000, signal: stop.signal })) {
        last = task;
        await task.succeed();
      }
    })();
    await clock.advance(1);
    stop.abort();
    await run;
    expect(last).toBeDefined();
    expect(await counts()).toMatchObject({ succeeded: 1, waiting: 2 });
    expect(clock.pending).toBe(0);
  });

  test.each<[string, number, (stop: AbortController, client: LeaseClient) => unknown, object]>([
    ["its signal aborts", 4, (stop) => stop.abort(), { value: { succeeded: 0 } }],
    ["its client is closed", 3, (_, client) => client.close(), { error: { code: "LEASE_CLIENT_CLOSED" } }],
  ])(
    "ends at once when %s, also where its look hangs, after %i that have failed",
    async (_, failed, end, how) => {
      let looks = 0;
      store.query = async (_request, { signal }) => {
        looks += 1;
        if (looks > failed) await new Promise((resolve) => signal.addEventListener("abort", resolve));
        throw new LeaseServiceError("LEASE_NO_ANSWER", "cut off");
      };
      const client = new LeaseClient({ store, clock, owner: "a" });
      const stop = new AbortController();
      const work = new TaskSet(client, "set").process(() => undefined, { signal: stop.signal, pollMs: 100 });
      const processing = follow(work, clock);
      await clock.advance(450);
      await end(stop, client);
      await settled();
      expect(looks).toBe(failed + 1);
      expect(processing).toMatchObject({ at: 450, ...how });
    },
  );

  test("ends at its signal also where its look at a task that has come due hangs", async () => {
    await setOf("adder").add([{ id: "0", delayMs: 5_000 }]);
    const stop = new AbortController();
    const work = setOf("a").process(() => undefined, { signal: stop.signal, pollMs: 60_000 });
    const processing = follow(work, clock);
    await clock.advance(1_000);
    store.query = async (_, { signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      throw new LeaseServiceError("LEASE_NO_ANSWER", "cut off");
    };
    await clock.advance(5_000);
    stop.abort();
    await settled();
    expect(processing).toMatchObject({ at: 6_000, value: { succeeded: 0 } });
  });

  test("gives back, uncounted, a task whose claim was under way when its signal aborted", async () => {
    await add(1);
    const stopping = (): AbortSignal => {
      const stop = new AbortController();
      const update = store.update.bind(store);
      store.update = async (...call) => {
        stop.abort();
        return await update(...call);
      };
      return stop.signal;
    };
    for await (const _ of setOf("a").work({ signal: stopping() })) expect.unreachable();
    expect(open("0")).toMatchObject({ attempts: 0 });
    await setOf("a").process(() => expect.unreachable(), { signal: stopping() });
    expect(open("0")).toMatchObject({ attempts: 0 });
    expect(await counts()).toMatchObject({ waiting: 1 });
    expect(clock.pending).toBe(0);
  });

  test("rejects with a mistake in the program that comes up while such a task is given back", async () => {
    await add(1);
    const stop = new AbortController();
    const mistake = new TypeError("no such thing");
    const update = store.update.bind(store);
    store.update = async (...call) => {
      store.update = () => Promise.reject(mistake);
      stop.abort();
      return await update(...call);
    };
    const processing = setOf("a").process(() => expect.unreachable(), { signal: stop.signal });
    await expect(processing).rejects.toBe(mistake);
  });

  test("leaves such a task to the end of its claim when the service does not take it back", async () => {
    await add(1);
    const stop = new AbortController();
    const update = store.update.bind(store);
    store.update = async (...call) => {
      const answer = await update(...call);
      stop.abort();
      store.next(...Array<Fate>(10).fill("request lost"));
      return answer;
    };
    const run = (async () => {
      for await (const _ of setOf("a").work({ signal: stop.signal })) expect.unreachable();
    })();
    await clock.advance(2 * leaseDurationMs);
    await run;
    expect(open("0")?.expiresAt).toBeLessThan(clock.now());
    expect(clock.pending).toBe(0);
  });

  test("waits for the task of a dead worker, and does it", async () => {
    await add(1);
    await setOf("dead", { heartbeat: false }).claim();
    let attempt = 0;
    const run = (async () => {
      for await (const task of setOf("a").work()) {
        attempt = task.attempt;
        await task.succeed();
      }
    })();
    await clock.advance(leaseDurationMs - 1);
    expect(attempt).toBe(0);
    await clock.advance(3_000);
    await run;
    expect(attempt).toBe(2);
  });

  test("until idle ends while another has the last task", async () => {
    await add(1);
    await setOf("other").claim();
    for await (const _ of setOf("a").work({ until: "idle" })) expect.unreachable();
  });

  test("until never waits for tasks that are added later", async () => {
    const stop = new AbortController();
    const done: string[] = [];
    const run = setOf("a").process((task) => void done.push(task.id), {
      until: "never",
      signal: stop.signal,
    });
    await clock.advance(5_000);
    await add(2);
    // After some time without work it looks every 10 s.
    await clock.advance(12_500);
    stop.abort();
    expect(await run).toMatchObject({ succeeded: 2 });
    expect(done.sort()).toEqual(["0", "1"]);
  });
});

describe("processing a set", () => {
  test("ends each task by what becomes of its work", async () => {
    await add(4, { maxAttempts: 1 });
    const summary = await setOf("a").process(async (task) => {
      if (task.id === "0") return "sent";
      if (task.id === "1") throw new Error("no stock");
      if (task.id === "2") await task.fail("by hand");
      return { rows: 3 };
    });
    expect(summary).toEqual({ succeeded: 2, failed: 1, parked: 0, returned: 0, settled: 1, lost: 0 });
    expect(ended("0")).toMatchObject({ state: "succeeded", remark: "sent" });
    expect(ended("1")).toMatchObject({ state: "failed", remark: "no stock" });
    expect(ended("2")).toMatchObject({ state: "failed", remark: "by hand" });
    // Only a text is kept.
    expect(ended("3")).toMatchObject({ state: "succeeded", remark: "" });
  });

  test("parks a task at once whose work says that no attempt can succeed", async () => {
    await add(2);
    const attempts: string[] = [];
    const summary = await setOf("a").process(({ id }) => {
      attempts.push(id);
      if (id === "0") throw new FinalFailureError("no address");
    });
    expect(summary).toMatchObject({ succeeded: 1, parked: 1, failed: 0, returned: 0 });
    expect(attempts.sort()).toEqual(["0", "1"]);
    expect(ended("0")).toMatchObject({ state: "parked", remark: "no address", attempts: 1, maxAttempts: 3 });
  });

  test.each<[string, Fate[]]>([
    ["one", []],
    ["one, though answers of its parking are lost", ["request lost", "answer lost"]],
  ])("counts a task whose last worker was lost as parked by %s", async (_, fates) => {
    await add(2, { maxAttempts: 1 });
    const dead = await setOf("dead", { heartbeat: false }).claim();
    await clock.advance(leaseDurationMs + 1_001);
    const transact = store.transact.bind(store);
    store.transact = (entries, call) => {
      if (entries.some(({ values }) => values[":state"] === "parked")) store.next(fates.shift());
      return transact(entries, call);
    };
    const runs = Promise.all(["a", "b"].map((owner) => setOf(owner).process(() => undefined)));
    await clock.advance(10_000);
    const sum = (count: "parked" | "succeeded", summaries: Awaited<typeof runs>): number =>
      summaries.reduce((total, summary) => total + summary[count], 0);
    expect([sum("parked", await runs), sum("succeeded", await runs)]).toEqual([1, 1]);
    expect(ended(dead?.id ?? "")).toMatchObject({ state: "parked", remark: "worker lost" });
  });

  test("releases what its caller's signal cuts off, without counting the attempt", async () => {
    await add(1);
    const stop = new AbortController();
    const { signal } = stop;
    const run = setOf("a").process(
      () => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      { signal },
    );
    await clock.advance(1);
    stop.abort();
    expect(await run).toMatchObject({ returned: 1, failed: 0 });
    expect(open("0")).toMatchObject({ attempts: 0 });
  });

  test("counts as lost what another has taken, and leaves it to the other", async () => {
    await add(1);
    let finish: () => void = () => undefined;
    const slow = setOf("slow", { heartbeat: false });
    const run = slow.process(() => new Promise<void>((resolve) => (finish = resolve)), { until: "idle" });
    await clock.advance(leaseDurationMs + 1_001);
    const other = await setOf("other").claim();
    finish();
    expect(await run).toMatchObject({ lost: 1, succeeded: 0 });
    await other?.succeed("by the other");
    expect(ended("0")).toMatchObject({ owner: "other", remark: "by the other" });
  });

  test("does not keep a task whose ending the service did not confirm", async () => {
    await add(1);
    let isDown = true;
    const run = setOf("a").process(() => {
      if (isDown) store.next("request lost", "request lost", "request lost");
      isDown = false;
    });
    await clock.advance(2 * leaseDurationMs + 2_000);
    // Nobody renews it: its claim runs out, and it is done again.
    expect(await run).toMatchObject({ lost: 1, succeeded: 1 });
    expect(ended("0")).toMatchObject({ attempts: 2 });
  });

  test("goes on after a failure of the service that passes, and ends at one that does not", async () => {
    await add(2);
    store.next("throttled", "throttled", "throttled");
    const run = setOf("a").process(() => undefined);
    await clock.advance(20_000);
    expect(await run).toMatchObject({ succeeded: 2 });

    await setOf("a").add([{ id: "another" }]);
    store.next("rejected");
    await expect(setOf("a").process(() => undefined)).rejects.toMatchObject({
      code: "LEASE_REQUEST_REJECTED",
    });
  });

  test("that fails rejects when the work that it has begun is over, and its task is ended", async () => {
    await add(2);
    const { promise: work, resolve: finish } = Promise.withResolvers<void>();
    store.next(undefined, "rejected");
    let isOver = false;
    const run = setOf("a")
      .process(() => work, { concurrency: 2 })
      .finally(() => {
        isOver = true;
      });
    run.catch(() => undefined);
    await clock.advance(1_000);
    expect(isOver).toBe(false);
    finish();
    await expect(run).rejects.toMatchObject({ code: "LEASE_REQUEST_REJECTED" });
    expect(await counts()).toMatchObject({ succeeded: 1, waiting: 1 });
  });

  test("cuts a long error to what a remark may be", async () => {
    await add(1, { maxAttempts: 1 });
    await setOf("a").process(() => {
      throw new Error("🧀".repeat(2_000));
    });
    const remark = String(ended("0")?.remark);
    expect(Buffer.byteLength(remark)).toBeLessThanOrEqual(1_024);
    expect(remark.startsWith("🧀🧀🧀")).toBe(true);
  });

  test.each([
    ["has no text", Object.create(null), "an error that could not be described"],
    ["has a message that is no text", Object.assign(new Error(), { message: 4 }), "4"],
  ])("goes on after its work has thrown what %s", async (_, thrown, remark) => {
    await add(2, { maxAttempts: 1 });
    const summary = await setOf("a").process(() => {
      throw thrown;
    });
    expect(summary).toMatchObject({ failed: 2 });
    expect(ended("1")).toMatchObject({ state: "failed", remark });
  });
});

test("1,000 tasks over 8 workers are done exactly once each, at little more than 2 requests a task", async () => {
  const store = new ScriptedStore();
  const setOf = (owner: string): TaskSet => new TaskSet(new LeaseClient({ store, owner }), "many");
  await setOf("adder").add(Array.from({ length: 1000 }, (_, index) => ({ id: `task-${index}` })));
  expect(store.calls).toHaveLength(20);
  const done: string[] = [];
  const work = async ({ id }: { readonly id: string }): Promise<void> => {
    // Another worker gets its turn, as with work that waits for something.
    await new Promise((resolve) => setImmediate(resolve));
    done.push(id);
  };
  const owners = Array.from({ length: 8 }, (_, index) => `worker-${index}`);
  const summaries = await Promise.all(owners.map((owner) => setOf(owner).process(work, { pollMs: 20 })));
  const requests = store.calls.length;
  expect(done).toHaveLength(1000);
  expect(new Set(done).size).toBe(1000);
  expect(summaries.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(1000);
  // Every worker had its share.
  expect(summaries.every(({ succeeded }) => succeeded > 50)).toBe(true);
  const counts = { waiting: 0, running: 0, succeeded: 1000, failed: 0, parked: 0, cancelled: 0 };
  expect(await setOf("reader").counts()).toEqual(counts);
  expect(store.count("transact")).toBe(1020);
  // The rest are looks, and claims that another worker was quicker with: about 0.25 a task.
  expect((requests - 20) / 1000).toBeLessThan(2.5);
});

describe("bad input is refused by name before anything is sent", () => {
  const refused = (option: string) => expect.objectContaining({ name: "InvalidOptionsError", option });

  test.each([
    ["maxAttempts", { maxAttempts: 0 }],
    ["maxAttempts", { maxAttempts: 1.5 }],
    ["leaseDurationMs", { leaseDurationMs: 0 }],
    ["heartbeat", { heartbeat: leaseDurationMs }],
    ["keepForMs", { keepForMs: 1_000 }],
    ["maxRunMs", { maxRunMs: -1 }],
    ["owner", { owner: "" }],
    ["options.maxAttempt", { maxAttempt: 3 }],
  ])("%s of a set: %o", (option, options) => {
    expect(() => setOf("a", options as TaskSetOptions)).toThrow(refused(option));
  });

  test("leaseDurationMs of a set that is shorter than the client's clockSkewMs", () => {
    const client = new LeaseClient({ store, clock, leaseDurationMs, clockSkewMs: 5_000 });
    expect(() => new TaskSet(client, "set", { leaseDurationMs: 4_999 })).toThrow(refused("leaseDurationMs"));
    expect(new TaskSet(client, "set", { leaseDurationMs: 5_000 }).name).toBe("set");
  });

  test.each([
    ["tasks", "a task"],
    ["tasks[0].id", [{ id: "" }]],
    ["tasks[0].id", [{ id: "x".repeat(513) }]],
    ["tasks[1].id", [{ id: "1" }, { id: "1" }]],
    ["tasks[0].payload", [{ id: "1", payload: "x".repeat(16 * 1024) }]],
    ["data.when", [{ id: "1", payload: { when: new Date() } }]],
    ["tasks[0].payloads", [{ id: "1", payloads: 1 }]],
    ["tasks[0].maxAttempts", [{ id: "1", maxAttempts: 0 }]],
    ["tasks[0].maxAttempts", [{ id: "1", maxAttempts: 1_001 }]],
    ["tasks[1].delayMs", [{ id: "1" }, { id: "2", delayMs: -1 }]],
    ["tasks[0].delayMs", [{ id: "1", delayMs: "soon" }]],
  ])("%s to be added", async (option, tasks) => {
    await expect(setOf("a").add(tasks as never)).rejects.toEqual(refused(option));
    expect(store.calls).toEqual([]);
  });

  test.each([
    ["concurrency", { concurrency: 0 }],
    ["pauseMs", { pauseMs: -1 }],
    ["pollMs", { pollMs: 0 }],
    ["until", { until: "later" }],
    ["signal", { signal: {} }],
    ["retryAfterMs", { retryAfterMs: Number.NaN }],
    ["options.concurency", { concurency: 2 }],
  ])("%s of a worker: %o", async (option, options) => {
    await expect(setOf("a").process(() => undefined, options as never)).rejects.toEqual(refused(option));
    expect(store.calls).toEqual([]);
  });

  test.each([
    ["final", { final: "yes" }],
    ["retryAfterMs", { final: true, retryAfterMs: 0 }],
    ["retryAfterMs", { retryAfterMs: -1 }],
    ["options.retryAfter", { retryAfter: 1 }],
  ])("%s of a failure: %o", async (option, options) => {
    await add(1);
    const task = await setOf("a").claim();
    const before = store.calls.length;
    await expect(task?.fail("no", options as never)).rejects.toEqual(refused(option));
    expect(store.calls.length).toBe(before);
    expect(task?.held).toBe(true);
  });

  test.each<[string, (set: TaskSet) => Promise<unknown>]>([
    ["id", (set) => set.get("")],
    ["id", (set) => set.cancel("x".repeat(513))],
    ["remark", (set) => set.cancel("1", "x".repeat(1_025))],
    ["id", (set) => set.requeue("")],
    ["maxAttempts", (set) => set.requeue("1", { maxAttempts: 0 })],
    ["options.attempts", (set) => set.requeue("1", { attempts: 1 } as never)],
    ["state", (set) => set.requeueAll({ state: "succeeded" as never })],
    ["filter", (set) => set.requeueAll({ filter: "all" as never })],
    ["limit", (set) => set.requeueAll({ limit: 0 })],
    ["delayMs", (set) => set.requeueAll({ delayMs: 0.5 })],
    ["options.states", (set) => set.requeueAll({ states: ["failed"] } as never)],
  ])("%s of an operator's call", async (option, call) => {
    await expect(call(setOf("a"))).rejects.toEqual(refused(option));
    expect(store.calls).toEqual([]);
  });

  test("a remark that is too long leaves the task with its worker", async () => {
    await add(1);
    const task = await setOf("a").claim();
    await expect(task?.succeed("x".repeat(1_025))).rejects.toEqual(refused("remark"));
    expect(task?.held).toBe(true);
    await task?.succeed();
  });
});
