import { describe, expect, test } from "vitest";
import { type Task, TaskSet } from "../../packages/jobs/src/index.ts";
import { beginAnew, clientOf, clock, store } from "./tasks.ts";

beginAnew();
const setOf = (name: string, owner = "a"): TaskSet => {
  const randomness = { token: () => crypto.randomUUID(), fraction: () => 0 };
  return new TaskSet(clientOf(owner, { randomness }), name);
};
const inputs = (...ids: string[]) => ids.map((id) => ({ id }));
const named = ({ set, id }: Task): string => `${set} ${id}`;

describe("a worker with more urgent sets", () => {
  test("claims a task of a set when it finds none in those before it", async () => {
    const [first, second, usual] = [setOf("first"), setOf("second"), setOf("usual")];
    await usual.add(inputs("1", "2"));
    await second.add(inputs("1"));
    await first.add(inputs("1", "2"));
    const done: string[] = [];
    const work = (task: Task): void => {
      done.push(named(task));
    };
    expect(await usual.process(work, { moreUrgent: [first, second] })).toMatchObject({ succeeded: 5 });
    expect(done.map((name) => name.split(" ")[0])).toEqual(["first", "first", "second", "usual", "usual"]);
  });

  test("does an urgent task of its own client next, and one of another within a poll", async () => {
    const [urgent, usual] = [setOf("urgent"), setOf("usual")];
    await usual.add(inputs(..."0123456789"));
    const done: string[] = [];
    const work = async (task: Task): Promise<void> => {
      if (task.set === "usual" && done.length === 2) await urgent.add(inputs("own"));
      if (task.set === "usual" && done.length === 5) await setOf("urgent", "other").add(inputs("other"));
      done.push(task.set === "usual" ? "usual" : task.id);
      await new Promise<void>((resolve) => void clock.schedule(resolve, 500));
    };
    const all = usual.process(work, { moreUrgent: [urgent], until: "drained" });
    for (let step = 0; step < 40; step += 1) await clock.advance(500);
    await all;
    expect(done.indexOf("own")).toBe(3);
    expect(done.indexOf("other")).toBeGreaterThan(5);
    expect(done.indexOf("other")).toBeLessThanOrEqual(10);
    expect(done).toHaveLength(12);
  });

  test("does not ask an empty urgent set before each task", async () => {
    const [urgent, usual] = [setOf("urgent"), setOf("usual")];
    await usual.add(inputs(..."0123456789"));
    store.calls.length = 0;
    await usual.process(() => "done", { moreUrgent: [urgent], until: "idle" });
    expect(store.calls.filter(({ readsKey }) => readsKey === "urgent")).toHaveLength(2);
  });

  test("ends when all sets are drained, and not before", async () => {
    const [urgent, usual] = [setOf("urgent"), setOf("usual")];
    await urgent.add([{ id: "later", delayMs: 5_000 }]);
    const done: string[] = [];
    let isOver = false;
    const all = usual
      .process(
        (task) => {
          done.push(named(task));
        },
        { moreUrgent: [urgent] },
      )
      .then(() => {
        isOver = true;
      });
    await clock.advance(4_000);
    expect(isOver).toBe(false);
    await clock.advance(10_000);
    await all;
    expect(done).toEqual(["urgent later"]);
  });

  test("makes sure of each of them before it ends", async () => {
    const [urgent, usual] = [setOf("urgent"), setOf("usual")];
    await usual.add(inputs("1", "2"));
    const work = () => new Promise<void>((resolve) => void clock.schedule(resolve, 5_000));
    const all = usual.process(work, { moreUrgent: [urgent] });
    await clock.advance(10_000);
    await all;
    const looks = store.calls.filter(({ readsKey }) => readsKey === "urgent");
    expect(looks.slice(-2)).toMatchObject([{ consistent: false }, { consistent: true }]);
  });

  test("yields them in a loop, and ends each in its own set", async () => {
    const [urgent, usual] = [setOf("urgent"), setOf("usual")];
    await usual.add(inputs("1"));
    await urgent.add(inputs("1"));
    const names: string[] = [];
    for await (const task of usual.work({ moreUrgent: [urgent] })) {
      names.push(named(task));
      await task.succeed();
    }
    expect(names).toEqual(["urgent 1", "usual 1"]);
    expect(await urgent.counts()).toMatchObject({ succeeded: 1 });
    expect(await usual.counts()).toMatchObject({ succeeded: 1 });
  });
});
