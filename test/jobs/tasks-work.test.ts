import { LeaseServiceError } from "@leasehold/client";
import { sleep } from "@leasehold/client/internal";
import { settled } from "@leasehold/client/testing";
import { describe, expect, test } from "vitest";
import { FinalFailureError, type Task, TaskSet, type TaskSetOptions } from "../../packages/jobs/src/index.ts";
import { follow } from "../support/follow.ts";
import type { Fate } from "../support/scripted-store.ts";
import { Random } from "../worlds/random.ts";
import {
  add,
  beginAnew,
  clientOf,
  clock,
  ended,
  leaseDurationMs,
  open,
  pastLeaseMs,
  store,
} from "./tasks.ts";

beginAnew();
const setOf = (owner: string, options: TaskSetOptions = {}): TaskSet =>
  new TaskSet(clientOf(owner), "set", options);
const counts = () => setOf("reader").counts();
/** An array that cannot be read. */
const revoked = (): TaskSet[] => {
  const { proxy, revoke } = Proxy.revocable<TaskSet[]>([], {});
  revoke();
  return proxy;
};

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

  test("keeps what its work has thrown as a remark, which is cut to what one may be", async () => {
    await add(3, { maxAttempts: 1 });
    const thrown = [
      new Error("🧀".repeat(2_000)),
      Object.create(null),
      Object.assign(new Error(), { message: 4 }),
    ];
    const summary = await setOf("a").process(({ id }) => Promise.reject(thrown[Number(id)]));
    expect(summary).toMatchObject({ failed: 3 });
    const remarks = ["0", "1", "2"].map((id) => String(ended(id)?.remark));
    expect(remarks[0]).toMatch(/^🧀{3}/u);
    expect(Buffer.byteLength(remarks[0] ?? "")).toBeLessThanOrEqual(1_024);
    expect(remarks.slice(1)).toEqual(["an error that could not be described", "4"]);
  });

  test("counts a task as parked whose last worker was lost, and none that another has claimed first", async () => {
    await add(2, { maxAttempts: 1 });
    await setOf("dead", { heartbeat: false }).claim();
    await clock.advance(pastLeaseMs);
    const runs = Promise.all(["a", "b"].map((owner) => setOf(owner).process(() => undefined)));
    await clock.advance(10_000);
    const [one, other] = await runs;
    expect((one?.parked ?? 0) + (other?.parked ?? 0)).toBe(1);
    expect((one?.succeeded ?? 0) + (other?.succeeded ?? 0)).toBe(1);
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
});

describe("the wait for the next attempt", () => {
  const setWith = (fraction: () => number, options: TaskSetOptions = {}): TaskSet => {
    const randomness = { token: () => crypto.randomUUID(), fraction };
    return new TaskSet(clientOf("a", { randomness }), "set", options);
  };

  test("ends within the shortest wait, whatever chance says, and the tasks do not come back together", async () => {
    await add(50);
    const random = new Random(97);
    const again: number[] = [];
    const run = setWith(() => random.fraction()).process(({ attempt }) => {
      if (attempt === 1) throw new Error("ECONNREFUSED");
      again.push(clock.monotonic());
    });
    await clock.advance(60_000);
    expect(await run).toMatchObject({ succeeded: 50, returned: 50 });
    expect(Math.min(...again)).toBeGreaterThanOrEqual(5_000);
    expect(Math.max(...again)).toBeLessThanOrEqual(10_500);
    // Spread over the five seconds: no second has half of them.
    const inSecond = (second: number): number =>
      again.filter((at) => at >= second * 1_000 && at < (second + 1) * 1_000).length;
    expect(Math.max(...[5, 6, 7, 8, 9, 10].map(inSecond))).toBeLessThan(25);
  });

  test.each([
    [0, [5_000, 10_000, 20_000]],
    [0.5, [7_500, 15_000, 30_000]],
    [0.999999, [10_000, 20_000, 40_000]],
  ])("doubles with each attempt, at chance %d", async (fraction, waits) => {
    const set = setWith(() => fraction, { maxAttempts: 4 });
    await set.add([{ id: "1" }]);
    for (const waitMs of waits) {
      const task = await set.claim();
      const failedAt = clock.now();
      expect(await task?.fail("no")).toBe("waiting");
      expect(await set.get("1")).toMatchObject({ dueAt: failedAt + waitMs });
      await clock.advance(waitMs);
    }
    expect(await (await set.claim())?.fail("no")).toBe("failed");
  });

  test("keeps the item alive as long as it lasts, and the set's keepForMs behind it", async () => {
    const keepForMs = 3_600_000;
    const set = setOf("a", { keepForMs });
    await set.add([{ id: "1", delayMs: 5 * keepForMs }]);
    await clock.advance(5 * keepForMs);
    expect(store.table.collectGarbage(clock.now())).toBe(0);
    await (await set.claim())?.fail("no", { retryAfterMs: 3 * keepForMs });
    await clock.advance(4 * keepForMs - 1_000);
    expect(store.table.collectGarbage(clock.now())).toBe(0);
    expect((await set.claim())?.attempt).toBe(2);
  });
});

test.each<[option: string, call: (set: TaskSet) => unknown]>([
  ["maxAttempts", () => setOf("a", { maxAttempts: 1.5 })],
  ["leaseDurationMs", () => setOf("a", { leaseDurationMs: 0 })],
  [
    "leaseDurationMs",
    () => new TaskSet(clientOf("a", { clockSkewMs: 500 }), "set", { leaseDurationMs: 499 }),
  ],
  ["heartbeat", () => setOf("a", { heartbeat: leaseDurationMs })],
  ["keepForMs", () => setOf("a", { keepForMs: 1_000 })],
  ["maxRunMs", () => setOf("a", { maxRunMs: -1 })],
  ["owner", () => setOf("a", { owner: "" })],
  ["options.maxAttempt", () => setOf("a", { maxAttempt: 3 } as never)],
  ["backoff.delay", () => setOf("a", { backoff: { delay: 5 } } as never)],
  ["backoff.delayMs", () => setOf("a", { backoff: { delayMs: -1 } })],
  ["backoff.maxDelayMs", () => setOf("a", { backoff: { delayMs: 10, maxDelayMs: 9 } })],
  ["rate", () => setOf("a", { rate: 10 as never })],
  ["rate.claims", () => setOf("a", { rate: { claims: 0, perMs: 1_000 } })],
  ["rate.perMs", () => setOf("a", { rate: { claims: 1, perMs: 999 } })],
  ["rate.perMs", () => setOf("a", { rate: { claims: 1 } as never })],
  ["tasks", (set) => set.add("a task" as never)],
  ["tasks[0].id", (set) => set.add([{ id: "x".repeat(513) }])],
  ["tasks[1].id", (set) => set.add([{ id: "1" }, { id: "1" }])],
  ["tasks[0].payload", (set) => set.add([{ id: "1", payload: "x".repeat(16 * 1024) }])],
  ["data.when", (set) => set.add([{ id: "1", payload: { when: new Date() } }])],
  ["tasks[0].payloads", (set) => set.add([{ id: "1", payloads: 1 } as never])],
  ["tasks[0].maxAttempts", (set) => set.add([{ id: "1", maxAttempts: 1_001 }])],
  ["tasks[1].delayMs", (set) => set.add([{ id: "1" }, { id: "2", delayMs: -1 }])],
  ["concurrency", (set) => set.process(() => 1, { concurrency: 0 })],
  ["pauseMs", (set) => set.process(() => 1, { pauseMs: -1 })],
  ["pollMs", (set) => set.process(() => 1, { pollMs: 0 })],
  ["until", (set) => set.process(() => 1, { until: "later" as never })],
  ["signal", (set) => set.process(() => 1, { signal: {} as never })],
  ["retryAfterMs", (set) => set.process(() => 1, { retryAfterMs: Number.NaN })],
  ["options.concurency", (set) => set.process(() => 1, { concurency: 2 } as never)],
  ["moreUrgent", (set) => set.process(() => 1, { moreUrgent: [set] })],
  ["moreUrgent", (set) => set.work({ moreUrgent: Array(2).fill(setOf("b")) }).next()],
  ["moreUrgent", (set) => set.process(() => 1, { moreUrgent: new Array(1) })],
  ["moreUrgent", (set) => set.process(() => 1, { moreUrgent: revoked() })],
  ["moreUrgent", (set) => set.process(() => 1, { moreUrgent: setOf("b") as never })],
  ["id", (set) => set.get("")],
  ["id", (set) => set.cancel("x".repeat(513))],
  ["remark", (set) => set.cancel("1", "x".repeat(1_025))],
  ["by", (set) => set.cancel("1", "why", { by: "" })],
  ["id", (set) => set.requeue("")],
  ["maxAttempts", (set) => set.requeue("1", { maxAttempts: 0 })],
  ["by", (set) => set.requeue("1", { by: "" })],
  ["by", (set) => set.requeueAll({ by: "" })],
  ["state", (set) => set.requeueAll({ state: "succeeded" as never })],
  ["filter", (set) => set.requeueAll({ filter: "all" as never })],
  ["limit", (set) => set.requeueAll({ limit: 0 })],
  ["delayMs", (set) => set.requeueAll({ delayMs: 0.5 })],
  ["options.states", (set) => set.requeueAll({ states: ["failed"] } as never)],
])("a bad %s is refused by name before anything is sent (%#)", async (option, call) => {
  const calling = (async () => await call(setOf("a")))();
  await expect(calling).rejects.toMatchObject({ name: "InvalidOptionsError", option });
  expect(store.calls).toEqual([]);
});

test("a bad option of a failure, or a remark that is too long, leaves the task with its worker, and sends nothing", async () => {
  await add(1);
  const task = await setOf("a").claim();
  const before = store.calls.length;
  const refused: [option: string, call: Promise<unknown> | undefined][] = [
    ["final", task?.fail("no", { final: "yes" as never })],
    ["retryAfterMs", task?.fail("no", { final: true, retryAfterMs: 0 })],
    ["retryAfterMs", task?.fail("no", { retryAfterMs: -1 })],
    ["options.retryAfter", task?.fail("no", { retryAfter: 1 } as never)],
    ["remark", task?.succeed("x".repeat(1_025))],
  ];
  for (const [option, call] of refused) await expect(call).rejects.toMatchObject({ option });
  expect(store.calls.length).toBe(before);
  await task?.succeed();
});
