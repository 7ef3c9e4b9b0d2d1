import { describe, expect, it } from "vitest";
import type { Grant, LoggedLeaseEvent } from "../leases.ts";
import { judgeTasks, type TasksEvidence } from "../scenarios/tasks-audit.ts";
import { at, grant, type Mutable, released, testsOfAudit } from "./evidence.ts";

type Task = TasksEvidence["tasks"][number];

const sortKeyOf = (id: string): string => `task#0123abcd#${id}`;
const ended = (worker: string, id: string, confirmed = true) => released(worker, sortKeyOf(id), confirmed);

function claim(owner: string, id: string, fencingToken: number, acquiredAt: number, from?: string): Grant {
  const former = from && { owner: from, fencingToken: fencingToken - 1, expiresAt: acquiredAt - 1000 };
  return grant(owner, fencingToken, acquiredAt, { sortKey: sortKeyOf(id), from: former || undefined });
}

function task(id: string, state: Task["state"], owner: string, attempts: number, remark: string): Task {
  const times = { addedAt: 0, dueAt: undefined, startedAt: 1, expiresAt: undefined, endedAt: 2 };
  const none = { serialKey: undefined };
  return { id, state, owner, attempts, remark, maxAttempts: 2, payload: {}, ...times, ...none };
}

const report = { succeeded: 0, failed: 0, parked: 0, putBack: 0, lost: 0, isUnfinished: false };

/** Three good tasks, of which two took a second worker; one that fails, one whose last worker died. */
function rightEvidence(): TasksEvidence {
  return {
    given: 5,
    added: 5,
    bad: ["bad", "worse"],
    hopeless: ["worse"],
    mostAttempts: 2,
    casualties: [
      { kind: "killed", worker: "W1", taskId: "a" },
      { kind: "frozen", worker: "W2", taskId: "b" },
      { kind: "killedLast", worker: "W3", taskId: "worse" },
    ],
    shifts: [
      { worker: "W1", report: "died" },
      { worker: "W2", report: { ...report, lost: 1 } },
      { worker: "W3", report: "died" },
      { worker: "W4", report: { ...report, succeeded: 3, failed: 1, putBack: 1, parked: 1 } },
    ],
    grants: [
      claim("W1", "a", 1, 100),
      claim("W2", "b", 1, 100),
      claim("W4", "c", 1, 100),
      claim("W3", "worse", 1, 100),
      claim("W3", "worse", 2, 120),
      claim("W4", "bad", 1, 120),
      claim("W4", "bad", 2, 130),
      claim("W4", "a", 2, 3000, "W1"),
      claim("W4", "b", 2, 3020, "W2"),
    ],
    log: [ended("W4", "c"), ended("W4", "bad"), ended("W4", "a"), ended("W4", "b"), ended("W2", "b", false)],
    tasks: [
      task("a", "succeeded", "W4", 2, "the SHA-256 is 1"),
      task("b", "succeeded", "W4", 2, "the SHA-256 is 2"),
      task("bad", "failed", "W4", 2, "the document's SHA-256 is 3"),
      task("c", "succeeded", "W4", 1, "the SHA-256 is 4"),
      task("worse", "parked", "W3", 2, "worker lost"),
    ],
    wasRefused: true,
  };
}

const find = (evidence: Mutable<TasksEvidence>, id: string): Mutable<Task> =>
  at(
    evidence.tasks.filter((one) => one.id === id),
    0,
  );

describe("the audit of the tasks", () => {
  const fromW9 = { from: { owner: "W9", fencingToken: 0, expiresAt: 90 } };
  const { spoilt } = testsOfAudit<TasksEvidence>(judgeTasks, rightEvidence, {
    "a task that was not added": [(e) => Object.assign(e, { added: 4 }), "tasks added"],
    "a task that was left running": [
      (e) => Object.assign(find(e, "c"), { state: "running" }),
      "tasks that have succeeded",
      "tasks left waiting or running",
    ],
    "a task that has vanished": [
      (e) => e.tasks.splice(3, 1),
      "tasks that have succeeded",
      "tasks in the table in the end",
      "good tasks that ended once, and no more",
      "tasks ended under their last claim",
      "tasks whose attempts are their claims",
    ],
    "a failure without a remark": [
      (e) => Object.assign(find(e, "bad"), { remark: "" }),
      "bad tasks that have failed, with a remark",
    ],
    "a good task that was parked": [
      (e) => Object.assign(find(e, "c"), { state: "parked" }),
      "tasks that have succeeded",
      "tasks parked, since no attempt can help them",
    ],
    "a task that was done twice": [
      (e) => e.log.push(ended("W2", "b") as Mutable<LoggedLeaseEvent>),
      "good tasks that ended once, and no more",
    ],
    "a task that nobody ended": [(e) => e.log.splice(0, 1), "good tasks that ended once, and no more"],
    "an ending by somebody who had lost the task": [
      (e) => Object.assign(find(e, "b"), { owner: "W2" }),
      "tasks ended under their last claim",
    ],
    "a claim that was not counted as an attempt": [
      (e) => Object.assign(find(e, "bad"), { attempts: 1 }),
      "tasks whose attempts are their claims",
    ],
    "more attempts than are allowed": [
      (e) => {
        find(e, "bad").attempts = 3;
        e.grants.push(claim("W4", "bad", 3, 150) as Mutable<Grant>);
      },
      "most attempts of a task",
    ],
    "a good task that was claimed twice, though its worker was well": [
      (e) => {
        find(e, "c").attempts = 2;
        e.grants.push(claim("W4", "c", 2, 200) as Mutable<Grant>);
      },
      "good tasks that took a second attempt",
    ],
    "a task that was taken from somebody alive": [
      (e) => Object.assign(at(e.grants, 2), fromW9),
      "takeovers, from",
    ],
    "two workers on one task at a time": [
      (e) => Object.assign(at(e.grants, 7).from ?? {}, { expiresAt: 3001 }),
      "claims of one task that overlapped in time",
    ],
    "a worker that died by itself": [
      (e) => e.shifts.push({ worker: "W5", report: "died" }),
      "workers killed",
    ],
    "a late ending that landed": [
      (e) => Object.assign(e, { wasRefused: false }),
      "the frozen worker's ending, when it arrived",
    ],
    "a frozen worker that believes in what it did": [
      (e) => Object.assign(at(e.shifts, 1), { report: { ...report, succeeded: 1 } }),
      "tasks that the frozen worker reports as lost",
    ],
  });

  it("counts", () => {
    expect(judgeTasks(rightEvidence()).inShort).toBe(
      "9 claims of 5 tasks: 3 succeeded once each, 1 failed, 1 parked",
    );
  });

  it("says what came too late for the plan, and nothing of those whom the plan struck", () => {
    const late = spoilt((e) => {
      e.shifts.push({ worker: "W5", report: "timedOut" });
      Object.assign(at(e.grants, 2), fromW9);
    });
    expect(judgeTasks(late).late).toEqual([
      "W5 did not come to an end in its time",
      expect.stringContaining("a lease of W9 ran out while it was alive"),
    ]);
  });
});
