import { describe, expect, it } from "vitest";
import type { Grant } from "../lease-history.ts";
import { auditTasks, lateClaims, summarizeTasks } from "../scenarios/tasks/audit.ts";
import type { TasksEvidence } from "../scenarios/tasks/evidence.ts";

type Mutable<T> = T extends unknown ? { -readonly [K in keyof T]: Mutable<T[K]> } : never;
type Logged = TasksEvidence["log"][number];
type Task = TasksEvidence["tasks"][number];

const key = "claim-tasks/set";
const sortKeyOf = (id: string): string => `task#0123abcd#${id}`;

function acquired(instance: string, id: string, fencingToken: number, at: number): Logged {
  const event = { type: "acquired", key, sortKey: sortKeyOf(id), owner: instance, fencingToken } as const;
  return { instance, at, event: { ...event, waitedMs: 1, expiresAt: at + 1000 } };
}

function ended(instance: string, id: string, fencingToken: number, at: number, confirmed = true): Logged {
  const event = { type: "released", key, sortKey: sortKeyOf(id), owner: instance, fencingToken } as const;
  return { instance, at, event: { ...event, heldMs: 5, confirmed } };
}

function takeover(instance: string, id: string, fencingToken: number, at: number, owner: string): Logged {
  const from = { owner, fencingToken: fencingToken - 1, expiresAt: at - 1000 };
  const event = { type: "takeover", key, sortKey: sortKeyOf(id), owner: instance, fencingToken } as const;
  return { instance, at, event: { ...event, reason: "serviceClock", from } };
}

function grant(owner: string, id: string, fencingToken: number, acquiredAt: number, from?: string): Grant {
  const former = from && { owner: from, fencingToken: fencingToken - 1, expiresAt: acquiredAt - 1000 };
  return {
    sortKey: sortKeyOf(id),
    owner,
    fencingToken,
    acquiredAt,
    expiresAt: acquiredAt + 1000,
    from: former || undefined,
  };
}

function task(id: string, state: Task["state"], owner: string, attempts: number, remark: string): Task {
  const times = { addedAt: 0, dueAt: undefined, startedAt: 1, expiresAt: undefined, endedAt: 2 };
  const none = { serialKey: undefined };
  return { id, state, owner, attempts, remark, maxAttempts: 2, payload: {}, ...times, ...none };
}

const report = { succeeded: 0, failed: 0, parked: 0, putBack: 0, lost: 0, isUnfinished: false };

/** Three good tasks, of which two took a second worker; one that fails, one whose last worker died. */
function rightEvidence(): Mutable<TasksEvidence> {
  const evidence: TasksEvidence = {
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
      grant("W1", "a", 1, 100),
      grant("W2", "b", 1, 100),
      grant("W4", "c", 1, 100),
      grant("W3", "worse", 1, 100),
      grant("W3", "worse", 2, 120),
      grant("W4", "bad", 1, 120),
      grant("W4", "bad", 2, 130),
      grant("W4", "a", 2, 3000, "W1"),
      grant("W4", "b", 2, 3020, "W2"),
    ],
    log: [
      acquired("W1", "a", 1, 100),
      acquired("W2", "b", 1, 100),
      acquired("W4", "c", 1, 100),
      ended("W4", "c", 1, 110),
      acquired("W3", "worse", 1, 100),
      ended("W3", "worse", 1, 110),
      acquired("W3", "worse", 2, 120),
      acquired("W4", "bad", 1, 120),
      ended("W4", "bad", 1, 130),
      acquired("W4", "bad", 2, 130),
      ended("W4", "bad", 2, 140),
      takeover("W4", "a", 2, 3000, "W1"),
      acquired("W4", "a", 2, 3000),
      ended("W4", "a", 2, 3010),
      takeover("W4", "b", 2, 3020, "W2"),
      acquired("W4", "b", 2, 3020),
      ended("W4", "b", 2, 3030),
      ended("W2", "b", 1, 4000, false),
    ],
    tasks: [
      task("a", "succeeded", "W4", 2, "the SHA-256 is 1"),
      task("b", "succeeded", "W4", 2, "the SHA-256 is 2"),
      task("bad", "failed", "W4", 2, "the document's SHA-256 is 3"),
      task("c", "succeeded", "W4", 1, "the SHA-256 is 4"),
      task("worse", "parked", "W3", 2, "worker lost"),
    ],
    wasRefused: true,
  };
  return structuredClone(evidence) as Mutable<TasksEvidence>;
}

function redLabels(evidence: Mutable<TasksEvidence>): string[] {
  return auditTasks(evidence as TasksEvidence).flatMap(({ ok, label }) => (ok ? [] : [label]));
}

function find(evidence: Mutable<TasksEvidence>, id: string): Mutable<Task> {
  const found = evidence.tasks.find((one) => one.id === id);
  if (found === undefined) throw new Error(`there is no task ${id}`);
  return found;
}

describe("the audit of the tasks", () => {
  it("finds nothing where all went as it should, and counts", () => {
    expect(redLabels(rightEvidence())).toEqual([]);
    expect(summarizeTasks(rightEvidence() as TasksEvidence)).toBe(
      "9 claims of 5 tasks: 3 succeeded once each, 1 failed, 1 parked",
    );
  });

  it.each<[string, (evidence: Mutable<TasksEvidence>) => void, string[]]>([
    [
      "a task that was not added",
      (e) => {
        e.added = 4;
      },
      ["tasks added"],
    ],
    [
      "a task that was left running",
      (e) => {
        find(e, "c").state = "running";
      },
      ["tasks that have succeeded", "tasks left waiting or running"],
    ],
    [
      "a task that has vanished",
      (e) => e.tasks.splice(3, 1),
      [
        "tasks that have succeeded",
        "tasks in the table in the end",
        "good tasks that ended once, and no more",
        "tasks ended under their last claim",
        "tasks whose attempts are their claims",
      ],
    ],
    [
      "a failure without a remark",
      (e) => {
        find(e, "bad").remark = "";
      },
      ["bad tasks that have failed, with a remark"],
    ],
    [
      "a good task that was parked",
      (e) => {
        find(e, "c").state = "parked";
      },
      ["tasks that have succeeded", "tasks parked, since no attempt can help them"],
    ],
    [
      "a task that was done twice",
      (e) => e.log.push(ended("W2", "b", 1, 4000) as Mutable<Logged>),
      ["good tasks that ended once, and no more"],
    ],
    ["a task that nobody ended", (e) => e.log.splice(3, 1), ["good tasks that ended once, and no more"]],
    [
      "an ending by somebody who had lost the task",
      (e) => {
        find(e, "b").owner = "W2";
      },
      ["tasks ended under their last claim"],
    ],
    [
      "a claim that was not counted as an attempt",
      (e) => {
        find(e, "bad").attempts = 1;
      },
      ["tasks whose attempts are their claims"],
    ],
    [
      "more attempts than are allowed",
      (e) => {
        find(e, "bad").attempts = 3;
        e.grants.push(grant("W4", "bad", 3, 150) as Mutable<Grant>);
      },
      ["most attempts of a task"],
    ],
    [
      "a good task that was claimed twice, though its worker was well",
      (e) => {
        find(e, "c").attempts = 2;
        e.grants.push(grant("W4", "c", 2, 200) as Mutable<Grant>);
      },
      ["good tasks that took a second attempt"],
    ],
    [
      "a task that was taken from somebody alive",
      (e) => Object.assign(e.grants[2] ?? {}, { from: { owner: "W9", fencingToken: 0, expiresAt: 90 } }),
      ["takeovers, from"],
    ],
    [
      "two workers on one task at a time",
      (e) => {
        const from = e.grants.find((one) => one.from !== undefined)?.from;
        if (from) from.expiresAt = 3001;
      },
      ["claims of one task that overlapped in time"],
    ],
    [
      "a worker that died by itself",
      (e) => e.shifts.push({ worker: "W5", report: "died" }),
      ["workers killed"],
    ],
    [
      "a late ending that landed",
      (e) => {
        e.wasRefused = false;
      },
      ["the frozen worker's ending, when it arrived"],
    ],
    [
      "a frozen worker that believes in what it did",
      (e) => {
        e.shifts[1] = { worker: "W2", report: { ...report, succeeded: 1 } };
      },
      ["tasks that the frozen worker reports as lost"],
    ],
  ])("turns red for %s", (_, spoil, red) => {
    const evidence = rightEvidence();
    spoil(evidence);
    expect(redLabels(evidence)).toEqual(red);
  });

  it("says what came too late for the plan, and nothing of those whom the plan struck", () => {
    const evidence = rightEvidence();
    expect(lateClaims(evidence as TasksEvidence)).toEqual([]);
    evidence.shifts.push({ worker: "W5", report: "timedOut" });
    Object.assign(evidence.grants[2] ?? {}, { from: { owner: "W9", fencingToken: 0, expiresAt: 90 } });
    expect(lateClaims(evidence as TasksEvidence)).toEqual([
      "W5 did not come to an end in its time",
      expect.stringContaining("a lease of W9 ran out while it was alive"),
    ]);
  });
});
