import { type LeaseClient, type LeaseEvent, LeaseLostError, LeaseServiceError } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { TaskLostError, TaskSet, type TaskSetOptions } from "../../packages/jobs/src/index.ts";
import { endedTask } from "../../packages/jobs/src/tasks/expressions.ts";
import { openTaskKey } from "../../packages/jobs/src/tasks/schema.ts";
import type { Task } from "../../packages/jobs/src/tasks/task.ts";
import { claimed as claimedOf } from "../support/claimed.ts";
import { failureOf } from "../support/failure-of.ts";
import { entriesOf, transactIn } from "../support/own-transaction.ts";
import { taskContext } from "../support/task-context.ts";
import {
  beginAnew,
  breakClaim,
  claimed,
  clientOf,
  clock,
  ended,
  events,
  inTime,
  leaseDurationMs,
  open,
  pastLeaseMs,
  setOf,
  store,
} from "./tasks.ts";

const longestTimerMs = 2 ** 31 - 1;
/** The delays of timers that do not keep a process alive. */
let background: number[];

/** Its timers are as short as those of Node. */
class ClockOfNode extends ManualClock {
  override schedule(callback: () => void, delayMs: number, options?: { readonly background?: boolean }) {
    if (options?.background) background.push(delayMs);
    return super.schedule(callback, Math.min(delayMs, longestTimerMs));
  }
}

const claimedBy = (client: LeaseClient, options: TaskSetOptions = {}): Promise<Task> =>
  claimedOf(new TaskSet(client, "set", { backoff: { delayMs: 0 }, ...options }));
/** A task whose worker's claim has expired, and that another worker has claimed. */
const taken = async (): Promise<{ readonly task: Task; readonly other: Task }> => {
  const task = await claimed("slow", { heartbeat: false });
  await clock.advance(pastLeaseMs);
  return { task, other: await claimed("other") };
};
const eventsOf = (type: LeaseEvent["type"]) => events.filter((event) => event.type === type);
/** The user's transaction is refused, as far as the user knows. */
const refused = new Error("refused");
const refuse = (): Promise<never> => Promise.reject(refused);

beginAnew(() => new ClockOfNode());
beforeEach(async () => {
  background = [];
  await setOf("adder").add([{ id: "1", maxAttempts: 2 }]);
});

describe("a task that is claimed", () => {
  test("is renewed by its worker when it asks for that", async () => {
    const task = await claimed("a", { heartbeat: false });
    const { expiresAt } = task;
    await clock.advance(10_000);
    await task.renew();
    expect(task.expiresAt).toBe(expiresAt + 10_000);
    expect(open()).toMatchObject({ expiresAt: task.expiresAt });
  });

  test("fences writes, and takes part in transactions", async () => {
    const task = await claimed("a");
    const { ExpressionAttributeNames } = task.fence({ attribute: "seen" });
    expect(Object.values(ExpressionAttributeNames)).toContain("seen");
    expect(JSON.stringify(task.conditionCheck())).toContain(openTaskKey("set", "1").sk);
  });

  test("has one timer for maxRunMs, which does not keep the process alive", async () => {
    await claimed("a", { maxRunMs: 123_456, heartbeat: false });
    expect(background).toContain(123_456);
  });

  test("may run for longer than a timer takes", async () => {
    const maxRunMs = longestTimerMs + 1_000;
    const task = await claimed("a", { maxRunMs, leaseDurationMs: 2 * maxRunMs, heartbeat: false });
    await clock.advance(maxRunMs - 1);
    expect(task.held).toBe(true);
    await clock.advance(1);
    expect(task.held).toBe(false);
  });

  test("leaves no timer for maxRunMs behind when it is ended", async () => {
    const task = await claimed("a", { maxRunMs: 123_456, heartbeat: false });
    await task.succeed();
    expect(clock.pending).toBe(0);
  });
});

test.each<[string, (task: Task) => Promise<void>]>([
  ["succeed", (task) => task.succeed()],
  ["succeedIn", (task) => task.succeedIn((entries) => transactIn(store, entriesOf(entries)))],
])(
  "a task may be claimed later when its worker gives it back for later, and never after %s",
  async (_, succeed) => {
    const task = await claimed("a");
    await task.fail("later", { retryAfterMs: 5_000 });
    expect(task.claimableAt).toBe(clock.monotonic() + 5_000);
    await clock.advance(5_000);
    const again = await claimed("a");
    await succeed(again);
    expect(again.claimableAt).toBeUndefined();
  },
);

describe("a worker that ends its task", () => {
  test("is told of one release, with the time that it had the task, and of no loss", async () => {
    const task = await claimed("a");
    await clock.advance(7_000);
    await task.succeed();
    expect(eventsOf("released")).toMatchObject([{ owner: "a", heldMs: 7_000, confirmed: true }]);
    expect(eventsOf("lost")).toEqual([]);
  });

  test("and that gives it up, is told that its claim has expired", async () => {
    const task = await claimed("a");
    task.abandon();
    expect(eventsOf("lost")).toMatchObject([{ owner: "a", reason: "expired" }]);
    expect(task.signal.reason).toMatchObject({ reason: "expired" });
  });
});

describe("a worker that ends a task which is not its own any more", () => {
  test("is told who has taken it and that nothing was released, and sends nothing the next time", async () => {
    const { task, other } = await taken();
    events.length = 0;
    const error = await failureOf(task.succeed());
    expect(error).toBeInstanceOf(TaskLostError);
    expect(String(error)).toMatch(/\(taken\): another worker has claimed it since; nothing was changed$/);
    expect(eventsOf("released")).toMatchObject([{ owner: "slow", confirmed: false }]);
    expect(store.count("get")).toBe(0);
    const before = store.calls.length;
    expect(await failureOf(task.succeed())).toBe(error);
    expect(store.calls.length).toBe(before);
    await other.succeed();
  });

  test("whose claim still protects it by its own clock, has it protect nothing more", async () => {
    const task = await claimed("a");
    await breakClaim();
    const other = await claimed("other");
    expect(task.held).toBe(true);
    expect(await failureOf(task.succeed())).toMatchObject({ reason: "taken" });
    expect(task.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(task.signal.reason).toMatchObject({ reason: "taken" });
    await clock.advance(leaseDurationMs / 2);
    expect(eventsOf("renewed")).toMatchObject([{ owner: "other" }]);
    await other.succeed();
  });

  test("is told what became of it: ended by another", async () => {
    const { task, other } = await taken();
    await other.succeed();
    expect(await failureOf(task.succeedIn(refuse))).toBe(refused);
    store.calls.length = 0;
    const message = String(await failureOf(task.succeed()));
    expect(message).toMatch(
      /\(ended\): it has ended already: it has succeeded, by another; nothing was changed$/,
    );
    expect(store.calls).toHaveLength(1);
  });

  test("is told what became of it: not among the open ones", async () => {
    const { task, other } = await taken();
    await other.succeed();
    const message = String(await failureOf(task.release()));
    expect(message).toMatch(/in the table any more as an open one: it may have ended; nothing was changed$/);
  });
});

describe("a worker that ends its task twice", () => {
  test("is told when an earlier call, of which it had no answer, has ended it otherwise", async () => {
    const task = await claimed("a");
    store.next("answer lost", "request lost", "request lost");
    expect(await failureOf(inTime(task.fail("no", { final: true })))).toBeInstanceOf(LeaseServiceError);
    expect(await failureOf(task.succeedIn(refuse))).toBe(refused);
    const message = String(await failureOf(inTime(task.succeed())));
    expect(message).toMatch(/it has ended already: it has parked, by this worker; nothing was changed$/);
    expect(ended()).toMatchObject({ state: "parked" });
  });

  test("has succeeded, also where a refusal of the second request tells of the open item alone", async () => {
    const task = await claimed("a");
    const transact = store.transact.bind(store);
    store.transact = async (...given) => {
      const { refusals, ...result } = await transact(...given);
      // The other reason is a conflict, with a transaction that reads the ended item.
      return { ...result, refusals: refusals.slice(0, 1) };
    };
    store.next("answer lost");
    await inTime(task.succeed());
    expect(ended()).toMatchObject({ state: "succeeded" });
    expect(store.calls.at(-1)).toMatchObject({ method: "get", consistent: true });
  });
});

test("of calls with different endings one ends the task, when the first of three had no answer as well", async () => {
  const task = await claimed("a");
  store.next("request lost", "request lost", "request lost");
  const endings = [task.succeed(), task.fail("broken", { retryAfterMs: 0 }), task.release()];
  const outcomes = Promise.allSettled(endings);
  await clock.advance(10_000);
  const [unconfirmed, failed, released] = await outcomes;
  expect(unconfirmed).toMatchObject({ reason: { name: "LeaseServiceError" } });
  expect(failed).toMatchObject({ value: "waiting" });
  expect(released).toMatchObject({ reason: { name: "TaskLostError", reason: "ended" } });
  expect(eventsOf("released")).toHaveLength(1);
  expect(store.count("update")).toBe(2);
});

describe("a worker that ends its task in a transaction of its own", () => {
  test.each<[string, (task: Task) => Promise<void>]>([
    ["succeed", (task) => task.succeed()],
    ["succeedIn", (task) => task.succeedIn((entries) => transactIn(store, entriesOf(entries)))],
  ])("is told when its earlier %s has ended it: that transaction is never sent", async (_, earlier) => {
    const task = await claimed("a");
    const sent: string[] = [];
    const send = async (): Promise<void> => void sent.push("late");
    const endings = [earlier(task), task.succeedIn(send), task.succeedIn(send)];
    const [first, ...others] = await Promise.allSettled(endings);
    expect(first).toMatchObject({ status: "fulfilled" });
    const isEnded = { reason: { name: "TaskLostError", reason: "ended" } };
    expect(others).toMatchObject([isEnded, isEnded]);
    expect(await failureOf(task.succeedIn(send))).toMatchObject({ reason: "ended" });
    expect(sent).toEqual([]);
  });

  test("has its error when it was not written, although an earlier success arrived meanwhile", async () => {
    const task = await claimed("a");
    store.next("request lost", "request lost", "request lost");
    expect(await failureOf(inTime(task.succeed()))).toBeInstanceOf(LeaseServiceError);
    const late = store.calls.at(-1)?.entries ?? [];
    const refuseAfter = () => transactIn(store, late).then(refuse);
    expect(await failureOf(task.succeedIn(refuseAfter))).toBe(refused);
    expect(ended()).toMatchObject({ state: "succeeded" });
  });

  test("sends it when an earlier one is refused meanwhile, and may give the same one again", async () => {
    const task = await claimed("a");
    const send = (entries: Parameters<typeof entriesOf>[0]) => transactIn(store, entriesOf(entries));
    const [first, second] = await Promise.allSettled([task.succeedIn(refuse), task.succeedIn(send)]);
    expect(first).toMatchObject({ reason: refused });
    expect(second).toMatchObject({ status: "fulfilled" });
    expect(ended()).toMatchObject({ state: "succeeded" });
    await task.succeedIn(send);
    await task.succeed();
  });
});

describe("a client that is closed", () => {
  test("gives its task back, and does not count the attempt", async () => {
    const client = clientOf("a");
    await claimedBy(client);
    await client.close();
    expect(open()).toMatchObject({ attempts: 0 });
    expect(open()?.token).toBeUndefined();
  });

  test("leaves alone a task that another worker has", async () => {
    const client = clientOf("a");
    await claimedBy(client);
    await breakClaim();
    await claimed("other");
    await client.close();
    expect(open()).toMatchObject({ owner: "other", attempts: 2 });
  });

  test("says so when the service does not confirm that the task is given back", async () => {
    const client = clientOf("a");
    await claimedBy(client);
    store.weather = "request lost";
    const error = await failureOf(inTime(client.close()));
    expect(error).toMatchObject({ left: [{ key: "set", error: expect.any(LeaseServiceError) }] });
  });
});

describe("a claim that is released like any lease", () => {
  test("gives its task back, and tells whether that was still its worker's", async () => {
    const client = clientOf("a");
    await claimedBy(client);
    const [first] = client.held();
    expect(await first?.release()).toBe(true);
    await claimedBy(client, { heartbeat: false });
    const [second] = client.held();
    await breakClaim();
    expect(await second?.release()).toBe(false);
  });
});

test("an ended task has no payload when the open one has none", () => {
  const item = { ...open() };
  delete (item as Record<string, unknown>).payload;
  const { payload } = endedTask(taskContext(clientOf("a"), "set"), item, undefined, "parked", "", "token");
  expect(payload).toBe("");
});
