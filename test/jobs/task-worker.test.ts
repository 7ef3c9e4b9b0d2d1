import { LeaseClient, LeaseServiceError } from "@leasehold/client";
import { coreOf } from "@leasehold/client/internal";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import type { WorkOptions } from "../../packages/jobs/src/index.ts";
import { checkWorkOptions } from "../../packages/jobs/src/tasks/options.ts";
import { PollInterval, type TaskSource } from "../../packages/jobs/src/tasks/polled-set.ts";
import type { Task } from "../../packages/jobs/src/tasks/task.ts";
import type { FindTerms, NothingFound, TaskSnapshot } from "../../packages/jobs/src/tasks/task-finder.ts";
import { Worker } from "../../packages/jobs/src/tasks/worker.ts";

const pollMs = 1_000;
let clock: ManualClock;
/** What the worker's looks find, one after the other. */
let finds: (() => Task | NothingFound)[];
let looks: (FindTerms & { readonly at: number })[];
let snapshot: TaskSnapshot | undefined;

const task = { id: "1" } as Task;
const nothing =
  (more: Partial<TaskSnapshot> = {}, claimableInMs = Number.POSITIVE_INFINITY) =>
  (): NothingFound => {
    snapshot = { beganAt: clock.monotonic(), openTasks: 1, isConsistent: true, ...more };
    return { snapshot, claimableInMs };
  };
const some = (): Task => {
  snapshot = undefined;
  return task;
};
const outage = (): never => {
  throw new LeaseServiceError("LEASE_THROTTLED", "too busy");
};
const workerOf = (options: WorkOptions): Worker => {
  // Then no interval has a jitter, and workers wake 25 ms after the time that they wait for.
  const randomness = { token: () => "token", fraction: () => 0.5 };
  const client = new LeaseClient({ store: new MemoryLeaseStore(), clock, owner: "a", randomness });
  const source: TaskSource = {
    get snapshot() {
      return snapshot;
    },
    async find(terms) {
      looks.push({ ...terms, at: clock.monotonic() });
      return (finds.shift() ?? nothing())();
    },
  };
  return new Worker(coreOf(client), checkWorkOptions({ pollMs, ...options }), [source]);
};
/** Runs a worker for a time, and gives what its `next` has given. */
const workFor = async (ms: number, worker: Worker): Promise<Task | "ended" | "waits" | Error> => {
  let outcome: Task | "ended" | "waits" | Error = "waits";
  void worker.next().then(
    (found) => {
      outcome = found ?? "ended";
    },
    (error: Error) => {
      outcome = error;
    },
  );
  await clock.advance(ms);
  return outcome;
};
const times = () => looks.map(({ at }) => at);

beforeEach(() => {
  clock = new ManualClock();
  finds = [];
  looks = [];
  snapshot = undefined;
});

describe("a worker's looks", () => {
  test("see every earlier write until one was in vain, and may lag while it is idle", async () => {
    finds = [some, nothing(), nothing(), some, nothing()];
    const worker = workerOf({ until: "never" });
    await worker.next();
    expect(looks).toMatchObject([{ maxAgeMs: 0, consistent: true }]);
    expect(await workFor(3_000, worker)).toBe(task);
    expect(looks.slice(1)).toMatchObject([
      { at: 0, maxAgeMs: 0, consistent: true },
      { at: 1_000, maxAgeMs: 1_000, consistent: false },
      { at: 3_000, maxAgeMs: 2_000, consistent: false },
    ]);
    await workFor(0, worker);
    expect(looks.at(-1)).toMatchObject({ consistent: true });
  });

  test("may still lag after a task that was found without a look at all of them", async () => {
    finds = [nothing(), () => task, nothing()];
    const worker = workerOf({ until: "never" });
    expect(await workFor(1_000, worker)).toBe(task);
    await workFor(0, worker);
    expect(looks.at(-1)).toMatchObject({ maxAgeMs: 1_000, consistent: false });
  });

  test("come again when the interval is over, or a little after a task becomes due", async () => {
    finds = [nothing(), nothing({}, 300), nothing({}, 5_000)];
    await workFor(2_500, workerOf({ until: "never" }));
    expect(times()).toEqual([0, 1_000, 1_325]);
  });
});

test("a worker until the set is drained looks again at once when its own task has ended during a look", async () => {
  const worker = workerOf({ concurrency: 2 });
  const { promise, resolve } = Promise.withResolvers<void>();
  const isLast = (): NothingFound => {
    resolve();
    return nothing()();
  };
  finds = [some, isLast, nothing({ openTasks: 0 })];
  await worker.next();
  worker.busyUntil(promise);
  expect(await workFor(0, worker)).toBe("ended");
  expect(times()).toEqual([0, 0, 0]);
});

test("a worker until nothing can be claimed does not take an outage for that", async () => {
  finds = [outage, some];
  expect(await workFor(999, workerOf({ until: "idle" }))).toBe("waits");
  expect(times()).toEqual([0]);
});

describe("a failure of the service", () => {
  test("is followed by another look after pollMs", async () => {
    finds = [outage, some];
    expect(await workFor(1_000, workerOf({}))).toBe(task);
    expect(times()).toEqual([0, 1_000]);
  });

  test("ends the worker the fifth time in a row", async () => {
    finds = Array.from({ length: 9 }, () => outage);
    expect(await workFor(60_000, workerOf({}))).toBeInstanceOf(LeaseServiceError);
    expect(looks).toHaveLength(5);
  });
});

describe("four failures of the service", () => {
  const four = Array.from({ length: 4 }, () => outage);

  test("are forgotten after a look that the service has answered", async () => {
    finds = [...four, nothing(), ...four, some];
    expect(await workFor(60_000, workerOf({}))).toBe(task);
  });

  test("and a look that the worker's signal has cut off do not end it with an error", async () => {
    const stop = new AbortController();
    const isCutOff = (): never => {
      stop.abort();
      return outage();
    };
    finds = [...four, isCutOff];
    expect(await workFor(60_000, workerOf({ signal: stop.signal }))).toBe("ended");
  });
});

describe("the interval between two looks", () => {
  let fraction: number;
  let interval: PollInterval;
  const seenWith = (openTasks = 0): TaskSnapshot => ({ beganAt: 0, openTasks, isConsistent: true });
  /** The intervals after some looks in vain. */
  const intervals = (...openTasks: number[]) =>
    openTasks.map((count) => {
      interval.foundNothing(seenWith(count));
      return interval.ms;
    });

  beforeEach(() => {
    // Then the jitter is 1.
    fraction = 0.5;
    interval = new PollInterval(1_000, { token: () => "token", fraction: () => fraction });
  });

  test("doubles with each look in vain, from pollMs to ten times as much", () => {
    expect(intervals(0, 0, 0, 0, 0, 0)).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
  });

  test("is one pollMs for each page of open tasks, for up to 60 pages", () => {
    expect(intervals(33)).toEqual([2_000]);
    expect(intervals(60 * 32, 61 * 32)).toEqual([60_000, 60_000]);
  });

  test("stays as it is when the same snapshot is used again", () => {
    const seen = seenWith();
    interval.foundNothing(seen);
    interval.foundNothing(seen);
    expect(interval.ms).toBe(1_000);
    expect(intervals(0)).toEqual([2_000]);
  });

  test("has a quarter of jitter, either way", () => {
    fraction = 0;
    expect(intervals(0)).toEqual([750]);
    fraction = 0.9;
    expect(intervals(0)).toEqual([2_400]);
  });
});
