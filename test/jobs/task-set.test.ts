import type { QueryRequest } from "@leasehold/client";
import { beforeEach, describe, expect, test } from "vitest";
import { type Task, TaskSet, type TaskSetOptions } from "../../packages/jobs/src/index.ts";
import { openTaskKey } from "../../packages/jobs/src/tasks/schema.ts";
import { claimed } from "../support/claimed.ts";
import { add, beginAnew, clientOf, clock, ids, leaseDurationMs, open, store } from "./tasks.ts";

let queries: QueryRequest[];
/** How many items a page has at most. */
let pageSize: number;

const randomness = { token: () => crypto.randomUUID(), fraction: () => 0.5 };
const setOf = (owner: string, options: TaskSetOptions = {}): TaskSet =>
  new TaskSet(clientOf(owner, { randomness }), "set", { backoff: { delayMs: 0 }, ...options });
const isOpen = (id: string) => open(id) !== undefined;
const listed = async (...state: Parameters<TaskSet["list"]>) => {
  const found: string[] = [];
  for await (const { id } of setOf("reader").list(...state)) found.push(id);
  return found.sort();
};
/** Fails tasks for good. */
const park = async (count: number) => {
  await add(count);
  await setOf("worker").process((task) => task.fail("broken", { final: true }), { concurrency: 50 });
  store.calls.length = 0;
  queries.length = 0;
};
const beforeNextUpdate = (happening: () => Promise<void>): void => {
  const update = store.update.bind(store);
  store.update = async (...call) => {
    store.update = update;
    await happening();
    return await update(...call);
  };
};

beginAnew();
beforeEach(() => {
  queries = [];
  pageSize = 1_000;
  const query = store.query.bind(store);
  store.query = async (request, options) => {
    queries.push(request);
    const { limit = pageSize } = request;
    return await query({ ...request, limit: Math.min(limit, pageSize) }, options);
  };
});

describe("a claim of any task", () => {
  test("looks for it so that every earlier write is seen", async () => {
    await add(1);
    await setOf("a").claim();
    expect(queries.map(({ consistent }) => consistent)).toEqual(queries.map(() => true));
  });

  test("does not try what else it has found when another worker is busy there", async () => {
    await add(3);
    let tried = 0;
    beforeNextUpdate(async () => {
      const other = setOf("other");
      for (const _ of ids(3)) await claimed(other);
      tried = store.count("update");
    });
    expect(await setOf("a").claim()).toBeUndefined();
    expect(store.count("update") - tried).toBe(1);
  });

  test("ends when its client is closed, and claims nothing afterwards", async () => {
    await add(2);
    const client = clientOf("a", { randomness });
    beforeNextUpdate(async () => {
      await claimed(setOf("other"));
      void client.close();
    });
    const before = store.count("update");
    await expect(new TaskSet(client, "set").claim()).rejects.toMatchObject({ code: "LEASE_CLIENT_CLOSED" });
    await clock.advance(1);
    // The other worker's claim, and the one that was refused.
    expect(store.count("update") - before).toBe(2);
  });
});

describe("processing tasks", () => {
  test("refuses a work that is no function", async () => {
    await expect(setOf("a").process("work" as never)).rejects.toMatchObject({
      code: "LEASE_INVALID_OPTIONS",
    });
    expect(store.calls).toEqual([]);
  });

  test("counts a task as settled that its work has ended, although the work throws after it", async () => {
    await add(1);
    const summary = await setOf("a").process(async (task) => {
      await task.succeed();
      throw new Error("too late");
    });
    expect(summary).toMatchObject({ succeeded: 0, settled: 1, lost: 0 });
  });

  test("ends with a mistake in the program, also where the caller's signal does not abort", async () => {
    await add(2);
    const mistake = new TypeError("a mistake");
    store.transact = () => Promise.reject(mistake);
    const { signal } = new AbortController();
    await expect(setOf("a").process(() => undefined, { until: "never", signal })).rejects.toBe(mistake);
  });

  test("remembers until when another worker has a task that it has taken at the last moment, without another look", async () => {
    const sortKeyOf = (id: string) => openTaskKey("set", id).sk;
    const [sooner = "", later = ""] = ids(2).sort((one, other) =>
      sortKeyOf(one) < sortKeyOf(other) ? -1 : 1,
    );
    await setOf("adder").add([
      { id: sooner, delayMs: 1_000 },
      { id: later, delayMs: 2_000 },
    ]);
    const stop = new AbortController();
    const done: string[] = [];
    const work = ({ id }: Task): void => {
      done.push(id);
    };
    const run = setOf("a").process(work, { until: "never", pollMs: 60_000, signal: stop.signal });
    await clock.advance(999);
    beforeNextUpdate(async () => {
      await setOf("other", { heartbeat: false }).claim();
      queries.length = 0;
    });
    await clock.advance(2_000);
    // When the other task became due, from that task on.
    expect(queries).toMatchObject([
      { values: { ":from": sortKeyOf(later).slice(0, "task#01234567".length) } },
    ]);
    expect(done).toEqual([later]);
    // And when the claim of the other worker, which is dead, may have expired.
    await clock.advance(leaseDurationMs + 2_000);
    expect(done).toEqual([later, sooner]);
    stop.abort();
    await run;
  });
});

test("a worker that was idle before it did a task that came due is idle after it as well", async () => {
  await setOf("adder").add([
    { id: "soon", delayMs: 1_000 },
    { id: "late", delayMs: 3_600_000 },
  ]);
  const stop = new AbortController();
  const done: string[] = [];
  const work = ({ id }: Task): void => {
    done.push(id);
  };
  const run = setOf("a").process(work, { until: "never", pollMs: 60_000, signal: stop.signal });
  await clock.advance(59_999);
  expect(done).toEqual(["soon"]);
  queries.length = 0;
  await clock.advance(1);
  expect(queries).toMatchObject([{ values: { ":prefix": "task#" }, consistent: false }]);
  stop.abort();
  await run;
});

describe("a loop over tasks", () => {
  test("does not end a task whose claim has ended before", async () => {
    await add(1);
    const before = store.count("update");
    for await (const _ of setOf("a", { maxRunMs: 1_000 }).work({ concurrency: 2 })) {
      await clock.advance(1_001);
      break;
    }
    expect(store.count("update") - before).toBe(1);
    expect(open("0")).toMatchObject({ owner: "a", remark: "" });
  });

  test("gives up a task that it cannot end, and goes on", async () => {
    await add(2);
    const worked: string[] = [];
    const loop = (async () => {
      for await (const task of setOf("a").work({ until: "idle" })) {
        worked.push(task.id);
        if (worked.length === 1) store.next("request lost", "request lost", "request lost");
        else await task.succeed();
      }
    })();
    await clock.advance(10_000);
    await loop;
    expect(worked).toHaveLength(2);
    const [first = ""] = worked;
    const { expiresAt } = open(first) ?? {};
    await clock.advance(leaseDurationMs);
    expect(open(first)).toMatchObject({ expiresAt });
  });

  test("ends with a mistake in the program that comes up while a task is ended", async () => {
    await add(1);
    const mistake = new TypeError("a mistake");
    const loop = (async () => {
      for await (const _ of setOf("a").work()) store.update = () => Promise.reject(mistake);
    })();
    await expect(loop).rejects.toBe(mistake);
  });
});

describe("listing tasks", () => {
  test("of one state reads only the open or only the ended ones, and may lag", async () => {
    await park(2);
    await add(3);
    queries.length = 0;
    expect(await listed({ state: "parked" })).toEqual(["0", "1"]);
    expect(await listed({ state: "waiting" })).toEqual(["2"]);
    expect(queries).toMatchObject([
      { values: { ":prefix": "done#" }, consistent: false },
      { values: { ":prefix": "task#" }, consistent: false },
    ]);
  });

  test("goes through all pages", async () => {
    await add(5);
    pageSize = 2;
    expect(await listed()).toEqual(ids(5));
  });
});

describe("requeuing tasks", () => {
  test("stops at its limit, in a later batch as well", async () => {
    await park(55);
    expect(await setOf("operator").requeueAll({ limit: 52 })).toBe(52);
    expect(ids(55).filter(isOpen)).toHaveLength(52);
  });

  test("sends nothing more when none of them is as it was read", async () => {
    await park(1);
    const query = store.query.bind(store);
    store.query = async (...call) => {
      const page = await query(...call);
      await setOf("other").requeue("0");
      return page;
    };
    expect(await setOf("operator").requeueAll()).toBe(1);
    expect(store.calls.filter(({ entries }) => entries?.length === 0)).toEqual([]);
  });
});
