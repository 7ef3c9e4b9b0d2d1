import { type Item, LeaseClient, type LeaseEvent, type QueryRequest, type ScanPage } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/internal";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { sortKeyOf } from "../../packages/client/src/base/item-values.ts";
import { SerialKeys, TaskFinder, UpcomingTasks } from "../../packages/jobs/src/tasks/task-finder.ts";
import { taskContext } from "../support/task-context.ts";

const { partitionKey, sortKey, token, owner, version, fence, acquiredAt, expiresAt, leaseDurationMs } =
  attributeNames;
const startedAt = 5_000;
let clock: ManualClock;
let store: ScriptedPages;
let fractions: number[];
let unreadable: string[];
let finder: TaskFinder;

/** Answers queries with the pages that a test gives, and with empty ones after them. */
class ScriptedPages extends MemoryLeaseStore {
  readonly pages: ScanPage[] = [];
  readonly requests: QueryRequest[] = [];

  override async query(request: QueryRequest): Promise<ScanPage> {
    this.requests.push(request);
    return this.pages.shift() ?? { items: [] };
  }
}

/** An open task that waits, and is due after so many milliseconds from now. */
const task = (name: string, dueInMs = 0): Item => ({
  [partitionKey]: "set",
  [sortKey]: `task#${name}`,
  ...{ attempts: 0, maxAttempts: 3, payload: "", remark: "", addedAt: 1 },
  dueAt: clock.now() + dueInMs,
});
/** A task that waits, with a serial key. */
const serial = (name: string, addedAt = 1, dueInMs = 0): Item => ({
  ...task(name, dueInMs),
  ...{ addedAt, serialKey: "key" },
});
const tasks = (count: number, dueInMs = 0): Item[] =>
  Array.from({ length: count }, (_, index) => task(`${String(index).padStart(8, "0")}#${index}`, dueInMs));
/** A task that a worker has, until its claim expires. */
const running = (name: string, forMs: number): Item => ({
  ...task(name),
  [token]: `token of ${name}`,
  [owner]: "other",
  [version]: 1,
  [fence]: 1,
  [acquiredAt]: clock.now(),
  [expiresAt]: clock.now() + forMs,
  [leaseDurationMs]: forMs,
});
/** Something else under the set's key, after its tasks. */
const foreign = (): Item => ({ [partitionKey]: "set", [sortKey]: "worker#1" });
const more = { pk: "set", sk: "task#more" };

const none: ReadonlyMap<string, number> = new Map();
const look = async (tried = none, terms = { maxAgeMs: 60_000, consistent: true }) => {
  const found = await finder.next(tried, terms);
  return "item" in found
    ? sortKeyOf(found.item).slice("task#".length)
    : { claimableInMs: found.claimableInMs, openTasks: found.snapshot.openTasks };
};
/** The next look at all open tasks, whatever is remembered. */
const lookAnew = () => look(none, { maxAgeMs: 0, consistent: true });
const limits = () => store.requests.map(({ limit }) => limit);

beforeEach(async () => {
  clock = new ManualClock();
  await clock.advance(startedAt);
  store = new ScriptedPages();
  fractions = [];
  unreadable = [];
  const onEvent = (event: LeaseEvent): void => {
    if (event.type === "unreadable") unreadable.push(event.sortKey ?? "");
  };
  const randomness = { token: () => "token", fraction: () => fractions.shift() ?? 0 };
  const client = new LeaseClient({ store, clock, owner: "finder", randomness, onEvent });
  finder = new TaskFinder(taskContext(client, "set"));
});

test("a look that another one has overtaken does not say that there is nothing to do", async () => {
  const query = store.query.bind(store);
  const answer = Promise.withResolvers<void>();
  store.query = async () => {
    store.query = query;
    await answer.promise;
    return { items: [] };
  };
  const slow = look();
  store.pages.push({ items: [task("1")] });
  expect(await look()).toBe("1");
  answer.resolve();
  expect(await slow).toEqual({ claimableInMs: Number.POSITIVE_INFINITY, openTasks: 0 });
  expect(finder.snapshot).toBeUndefined();
});

describe("a look at the open tasks", () => {
  test("starts at a random place, and gives the tasks of its page in random order, for one request", async () => {
    fractions = [0.5, 0.2, 0.9, 0.6];
    store.pages.push({ items: [task("a"), task("b"), task("c")], next: more });
    expect([await look(), await look(), await look()]).toEqual(["b", "c", "a"]);
    expect(store.requests).toMatchObject([
      { values: { ":set": "set", ":from": "task#80000000" }, limit: 32, consistent: true },
    ]);
    expect(finder.snapshot).toBeUndefined();
  });

  test("goes on at the first task where there is none at its random place", async () => {
    store.pages.push({ items: [] }, { items: [task("a")] });
    expect(await look(none, { maxAgeMs: 0, consistent: false })).toBe("a");
    expect(store.requests.slice(1)).toMatchObject([
      { values: { ":set": "set", ":prefix": "task#" }, limit: 32, consistent: false },
    ]);
  });

  test("reads page after page until one has a task to claim, and larger ones each time", async () => {
    const waiting = { items: [task("a", 1_000)], next: more };
    store.pages.push(waiting, waiting, waiting, waiting, { items: [task("b")], next: more });
    expect(await look()).toBe("b");
    expect(limits()).toEqual([32, 128, 512, 1_000, 1_000]);
    expect(store.requests.map(({ after }) => after)).toEqual([undefined, undefined, more, more, more]);
  });

  test("keeps no more than a page of the tasks that it finds", async () => {
    store.pages.push({ items: tasks(32, 1_000), next: more }, { items: tasks(40) });
    for (let count = 0; count < 32; count += 1) await look();
    expect(store.requests).toHaveLength(2);
    await look();
    expect(store.requests.length).toBeGreaterThan(2);
  });

  test("leaves alone what else is under the set's key", async () => {
    store.pages.push({ items: [task("a", 1_000), foreign()] }, { items: [task("a", 1_000)] });
    expect(await look()).toEqual({ claimableInMs: 1_000, openTasks: 1 });
    expect(unreadable).toEqual([]);
  });

  test("leaves out and reports a task whose time or whose claim cannot be read", async () => {
    const { dueAt: _, ...timeless } = task("timeless");
    const { [expiresAt]: __, ...endless } = running("endless", 1_000);
    store.pages.push({ items: [timeless, endless, task("a")] });
    expect(await look()).toBe("a");
    expect(unreadable).toEqual(["task#timeless", "task#endless"]);
  });

  test("forgets what was remembered before it", async () => {
    finder.expect("task#gone", clock.monotonic() + 1);
    store.pages.push({ items: [] }, { items: [task("a", 1_000)] });
    expect(await look()).toMatchObject({ claimableInMs: 1_000 });
  });
});

describe("a task that was tried", () => {
  test("is not given again from the page that it was found in", async () => {
    store.pages.push({ items: [task("a"), task("b"), task("c")], next: more });
    expect(await look()).toBe("c");
    expect(await look(new Map([["task#b", 0]]))).toBe("a");
  });
});

describe("the place where a look starts", () => {
  /** How many requests the look after this one sends, when it finds nothing: one less without a random place. */
  const nextCosts = async (): Promise<number> => {
    finder.moveOn();
    const before = store.requests.length;
    await lookAnew();
    return store.requests.length - before;
  };

  test("is random again when there are as many tasks as a page can hold", async () => {
    store.pages.push({ items: tasks(32, 1_000), next: more }, { items: tasks(32, 1_000) });
    await look();
    expect(await nextCosts()).toBe(2);
  });

  test("is random when there is another page, although a task was found in the first", async () => {
    store.pages.push({ items: [] }, { items: [task("a")], next: more });
    await look();
    expect(await nextCosts()).toBe(2);
  });

  test("is random when the tasks were on two pages, however few can be read", async () => {
    const damaged = { ...task("damaged"), payload: 5 };
    store.pages.push({ items: [] }, { items: [damaged], next: more }, { items: [task("a", 1_000)] });
    expect(await look()).toEqual({ claimableInMs: 1_000, openTasks: 1 });
    expect(await nextCosts()).toBe(2);
  });
});

describe("a snapshot", () => {
  const sees = async (...items: Item[]): Promise<void> => {
    store.pages.push({ items: [] }, { items });
    await look();
    store.requests.length = 0;
  };

  test("is used for as long as it is young, without a request", async () => {
    await sees(task("a", 60_000));
    await clock.advance(999);
    expect(await look(none, { maxAgeMs: 1_000, consistent: true })).toMatchObject({ claimableInMs: 59_001 });
    expect(store.requests).toEqual([]);
    await clock.advance(1);
    await look(none, { maxAgeMs: 1_000, consistent: true });
    expect(store.requests).not.toEqual([]);
  });

  test("is followed by one consistent request for a task that has become due, from that task on", async () => {
    await sees(task("00000001#a", 1_000), task("00000002#b", 9_000));
    await clock.advance(999);
    await look();
    expect(store.requests).toEqual([]);
    await clock.advance(1);
    store.pages.push({ items: [task("00000001#a"), task("00000002#b", 8_000)] });
    expect(await look(none, { maxAgeMs: 60_000, consistent: false })).toBe("00000001#a");
    expect(store.requests).toMatchObject([
      { values: { ":set": "set", ":from": "task#00000001" }, limit: 32, consistent: true },
    ]);
    expect(finder.snapshot).toBeDefined();
  });

  describe("after a look at a task that has become due", () => {
    /** Looks at the first of four tasks, which are due after 1, 2, 3 and 4 s. */
    const lookAtDue = async (page: () => ScanPage) => {
      await sees(...["a", "b", "c", "d"].map((name, index) => task(name, 1_000 * (index + 1))));
      await clock.advance(1_000);
      store.pages.push(page());
      const found = await look();
      expect(store.requests).toHaveLength(1);
      return found;
    };

    test("knows of the tasks beyond the page what it knew before", async () => {
      const found = await lookAtDue(() => ({ items: [running("a", 60_000)], next: more }));
      expect(found).toMatchObject({ claimableInMs: 1_000 });
    });

    test("knows that also where a task of the page cannot be read", async () => {
      const page = () => ({ items: [running("a", 60_000), { ...task("b"), dueAt: "soon" }], next: more });
      expect(await lookAtDue(page)).toMatchObject({ claimableInMs: 2_000 });
    });

    test("looks for the others that were due there, when another worker is busy there", async () => {
      expect(await lookAtDue(() => ({ items: [task("a"), task("b")], next: more }))).toBe("b");
      finder.moveOn();
      store.pages.push({ items: [task("a")], next: more });
      expect(await look()).toBe("a");
      expect(store.requests).toHaveLength(2);
    });

    test("has forgotten the tasks after the last page", async () => {
      const found = await lookAtDue(() => ({ items: [task("a", 9_000)] }));
      expect(found).toMatchObject({ claimableInMs: 9_000 });
    });

    test("has forgotten the tasks after a page that ends with something else", async () => {
      const page = () => ({ items: [task("a", 9_000), foreign()], next: more });
      expect(await lookAtDue(page)).toMatchObject({ claimableInMs: 9_000 });
      expect(unreadable).toEqual([]);
    });
  });

  test("does not look twice at a due task that the page does not reach", async () => {
    await sees(task("00000001#z", 1_000));
    await clock.advance(1_000);
    store.pages.push({ items: [task("00000001#a", 5_000)], next: more });
    expect(await look()).toMatchObject({ claimableInMs: 5_000 });
    expect(store.requests).toHaveLength(1);
  });
});

describe("of tasks with one serial key", () => {
  /** A look at all open tasks has shown two of them: a worker has one, and the other waits for it. */
  const seesOneRunning = async (): Promise<void> => {
    const runs = { ...serial("a"), ...running("a", 60_000), serialKey: "key" };
    store.pages.push({ items: [] }, { items: [runs, serial("b")] });
    await look();
    store.requests.length = 0;
  };

  test("a look at what may be all tasks is followed by one at all, which gives the oldest", async () => {
    store.pages.push(
      { items: [serial("c", 2), task("d")] },
      { items: [serial("a", 1), serial("c", 2), task("d")] },
    );
    expect([await look(), await look()].sort()).toEqual(["a", "d"]);
    expect(store.requests).toHaveLength(2);
  });

  test("a look at some tasks of many gives the oldest of these, for one request", async () => {
    store.pages.push({ items: [serial("c", 2), serial("b", 1)], next: more });
    expect(await look()).toBe("b");
    expect(store.requests).toHaveLength(1);
  });

  test("one that waits for another is open, and is looked at when its key is free", async () => {
    await seesOneRunning();
    finder.expect("task#a", undefined);
    expect(await look()).toMatchObject({ claimableInMs: Number.POSITIVE_INFINITY });
    expect(store.requests).toEqual([]);
    finder.free("key");
    store.pages.push({ items: [serial("b")], next: more });
    expect(await look()).toBe("b");
    expect(store.requests).toHaveLength(1);
  });

  test("one that could not be claimed waits for its key in the same way", async () => {
    store.pages.push({ items: [] }, { items: [serial("a", 1, 1_000)] });
    await look();
    await clock.advance(1_000);
    store.pages.push({ items: [serial("a")] });
    expect(await look()).toBe("a");
    finder.block("key", serial("a"));
    store.requests.length = 0;
    expect(await look()).toMatchObject({ claimableInMs: Number.POSITIVE_INFINITY });
    expect(store.requests).toEqual([]);
    finder.free("key");
    store.pages.push({ items: [serial("a")] });
    expect(await look()).toBe("a");
  });

  test("one that waited is forgotten when a look at all tasks does not show it any more", async () => {
    await seesOneRunning();
    store.pages.push({ items: [running("a", 60_000)] });
    await lookAnew();
    store.requests.length = 0;
    finder.free("key");
    expect(await look()).toMatchObject({ openTasks: 1 });
    expect(store.requests).toEqual([]);
  });
});

describe("of the tasks that may be claimed later", () => {
  let upcoming: UpcomingTasks;
  /** Everything but one task counts as tried: so it is told only if it is remembered. */
  const allBut = (sortKey: string) => Object.assign(new Map(), { has: (other: string) => other !== sortKey });
  const isRemembered = (sortKey: string) => upcoming.soonest(allBut(sortKey)) !== undefined;

  beforeEach(() => {
    upcoming = new UpcomingTasks();
  });

  test("the soonest is the one that may be claimed first, then the one that was noted first, and none that was tried", () => {
    upcoming.set("a", 20);
    upcoming.set("b", 10);
    upcoming.set("c", 30);
    upcoming.set("d", 10);
    const soonestBeside = (...tried: string[]) =>
      upcoming.soonest(new Map(tried.map((sortKey) => [sortKey, 1])));
    expect(soonestBeside()).toEqual({ sortKey: "b", at: 10 });
    expect(soonestBeside("b")).toEqual({ sortKey: "d", at: 10 });
    expect(soonestBeside("b", "d")).toEqual({ sortKey: "a", at: 20 });
    expect(soonestBeside("a", "b", "c", "d")).toBeUndefined();
    // The time that was noted last counts.
    upcoming.set("a", 5);
    upcoming.set("b", 40);
    expect(soonestBeside()).toEqual({ sortKey: "a", at: 5 });
    upcoming.set("a", 50);
    expect(soonestBeside("d")).toEqual({ sortKey: "c", at: 30 });
  });

  test("what lies after one sort key, up to and including another, is forgotten", () => {
    for (const [index, sortKey] of [..."abcde"].entries()) upcoming.set(sortKey, index);
    upcoming.forget("b", "d");
    expect([..."abcde"].filter(isRemembered)).toEqual(["a", "b", "e"]);
  });

  test("of 2,000 tasks, the 1,000 that may be claimed first are remembered, and the others are cut in bulk", () => {
    const timeOf = (index: number) => (index * 7_919) % 2_000;
    const sortKeyAt = new Map<number, string>();
    for (let index = 0; index < 1_999; index += 1) {
      sortKeyAt.set(timeOf(index), `${index}`);
      upcoming.set(`${index}`, timeOf(index));
    }
    const isKept = (at: number) => isRemembered(sortKeyAt.get(at) ?? "");
    expect([0, 999, 1_000, 1_998].map(isKept)).toEqual([true, true, true, true]);
    sortKeyAt.set(timeOf(1_999), "1999");
    upcoming.set("1999", timeOf(1_999));
    expect([0, 1, 500, 998, 999].map(isKept)).toEqual([true, true, true, true, true]);
    expect([1_000, 1_001, 1_500, 1_999].map(isKept)).toEqual([false, false, false, false]);
  });
});

describe("of the tasks that wait for their key", () => {
  let serialKeys: SerialKeys;

  /** `digits` orders the tasks of a table otherwise than their ids. */
  const waiting = (id: string, addedAt = 1, digits = "00000000"): Item => ({
    [partitionKey]: "set",
    [sortKey]: `task#${digits}#${id}`,
    addedAt,
  });

  beforeEach(() => {
    serialKeys = new SerialKeys();
  });

  test("the next task of a key is the oldest that waits, in whatever order they were noted, and each is next once", () => {
    const [one, two, three] = [waiting("c", 1), waiting("a", 2), waiting("b", 3)];
    for (const item of [three, one, two]) serialKeys.block("key", item);
    const order = [1, 2, 3, 4].map(() => serialKeys.next("key"));
    expect(order).toEqual([one, two, three, undefined]);
  });

  test("of tasks that were added at one time, the next is the first by its id", () => {
    const [a, b] = [waiting("a", 1, "00000002"), waiting("b", 1, "00000001")];
    serialKeys.block("key", b);
    serialKeys.block("key", a);
    expect(serialKeys.next("key")).toBe(a);
  });

  test("1,000 tasks are remembered, and another one when one of them has had its turn", () => {
    for (let count = 0; count < 1_000; count += 1) serialKeys.block(`key ${count}`, waiting(`${count}`));
    const late = waiting("late");
    // A key of which no task waits makes no room.
    expect(serialKeys.next("late")).toBeUndefined();
    serialKeys.block("late", late);
    expect(serialKeys.next("late")).toBeUndefined();
    expect(serialKeys.next("key 0")).toBeDefined();
    serialKeys.block("late", late);
    expect(serialKeys.next("late")).toBe(late);
  });
});
