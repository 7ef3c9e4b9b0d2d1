import { createHash } from "node:crypto";
import { LeaseClient } from "@leasehold/client";
import { type TaskInput, type TaskRecord, TaskSet, type TaskState } from "@leasehold/jobs";
import type { InvokeResult } from "@leasehold/local";
import type { AddReport } from "../../../functions/claim-tasks/handler.ts";
import { taskSetKey } from "../../../functions/claim-tasks/schema.ts";
import type { WorkReport } from "../../../functions/claim-tasks/worker.ts";
import type { GateRequest, HeldRequest } from "../gate.ts";
import { failureIn, type Instance, Instances } from "../instances.ts";
import {
  endOfLease,
  type LoggedLeaseEvent,
  overlaps,
  ranOut,
  takenOver,
  type WasCutShort,
} from "../leases.ts";
import { check, listed, type Outcome, promise, type Scenario } from "../scenario.ts";
import type { Kind } from "../screen.ts";
import type { Stage } from "../stage.ts";
import { NotStaged } from "../tempo.ts";

/**
 * What befalls a worker, each time as the ending of a task is on its way to the table.
 *
 * - `killed`: SIGKILL. Another worker does the task.
 * - `killedLast`: SIGKILL in the last attempt of the task. It is parked.
 * - `frozen`: SIGSTOP, until another worker has done the task.
 */
type Mishap = "killed" | "killedLast" | "frozen";

/** A worker that was killed or frozen. */
interface Casualty {
  readonly kind: Mishap;
  readonly worker: string;
  readonly taskId: string;
}

/** One call of the worker function, and what it reported. */
interface Shift {
  readonly worker: string;
  readonly report: WorkReport | "died" | "failed" | "timedOut";
}

/** The set. */
const set = "checksums";
/** How many calls of the worker function are made at once. */
const workersAtOnce = 4;
/** How long it takes until another worker is called where one has found nothing more to do. */
const betweenCallsMs = 250;
/** How soon a worker that has ended is followed by another, while the plan's mishaps are to come. */
const betweenShiftsMs = 500;
/** How often a task is tried: the worker's own default. */
const mostAttempts = 3;

const ids = Array.from({ length: 60 }, (_, index) => `doc-${String(index + 1).padStart(2, "0")}`);

/** Their documents are damaged: every attempt fails. */
const damaged: readonly string[] = ["doc-07", "doc-21", "doc-33", "doc-48"];
/** It lacks its checksum: no attempt can help it, and the first one parks it. */
const incomplete = "doc-54";
/** The tasks that cannot succeed. */
const bad: readonly string[] = [...damaged, incomplete];
/** The damaged one whose worker is killed in the last attempt. */
const poison = "doc-33";

/** Documents whose SHA-256 is to be compared with the announced one. */
function tasksToAdd(): TaskInput[] {
  return ids.map((id) => {
    const text = `The text of ${id}.`;
    if (id === incomplete) return { id, payload: { text } };
    const announced = damaged.includes(id) ? `${text} And more.` : text;
    return { id, payload: { text, sha256: createHash("sha256").update(announced).digest("hex") } };
  });
}

/** Gives the id of the task whose ending stands in a request, if it is the one that is watched for. */
type Sees = (request: GateRequest) => string | undefined;

/** A worker whose ending of a task stands at the gate. */
interface Victim {
  readonly worker: Instance;
  readonly taskId: string;
  readonly request: HeldRequest<string>;
}

/** A set of tasks that many workers share. One worker does each task, whichever workers die. */
export class Tasks implements Scenario {
  readonly system = "tasks";
  readonly about =
    "a set of 60 tasks for 4 workers at once: each task is done by one of them, also when others die";
  readonly #stage: Stage;
  readonly #instances: Instances;
  readonly #shifts: Shift[] = [];
  readonly #casualties: Casualty[] = [];
  readonly #ended = new Set<string>();

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#instances = new Instances(stage, {
      functionId: "Tasks/Worker",
      nameOf: (index) => `W${index + 1}`,
      key: taskSetKey(set),
      onLeaseEvent: (entry) => this.#hear(entry),
    });
  }

  /** Adds the tasks. Rejects with NotStaged if that does not end in its time. */
  async prepare(): Promise<void> {
    const add = tasksToAdd();
    const result = await this.#instances.deliver({ set, add }).result;
    const { payload, functionError } = result;
    if (functionError !== undefined) {
      const Kind = failureIn(result) === "timedOut" ? NotStaged : Error;
      throw new Kind(`no tasks were added: ${JSON.stringify(payload)}`);
    }
    this.#say(
      "added",
      undefined,
      `${(payload as AddReport).added} tasks, ${damaged.length} of them with damaged documents, and one without its checksum`,
    );
  }

  async play(): Promise<Outcome> {
    const killed = this.#strike("killed", goodEndingAfter(6));
    const frozen = this.#strike("frozen", goodEndingAfter(12));
    const killedLast = this.#strike("killedLast", endingOf(poison));
    const { victims, shifts } = await this.#workUntilStruck(Promise.all([killed, frozen, killedLast]));
    const ends = victims.map(({ worker }) => this.#claimEndsAt(worker.name));
    this.#tellProgress("two workers are dead and one is frozen: their claims stand");
    const { tempo } = this.#stage;
    await tempo.untilTime(Math.max(...ends) + tempo.takeoverAllowanceMs);
    await this.#workUntilDone();
    const [, asleep] = victims;
    const wasRefused = await this.#wake(asleep);
    await shifts;
    this.#tellProgress("none of them twice", ids.length);

    return this.#audit(wasRefused);
  }

  /** Judges by the set as its table shows it in the end, and by the claims that the table has granted. */
  async #audit(wasRefused: boolean): Promise<Outcome> {
    const [tasks, grants] = [await this.#tasks(), await this.#instances.grants()];
    const { log } = this.#instances;
    const given = ids.length;
    const good = ids.filter((id) => !bad.includes(id));
    const hopeless = [poison, incomplete].sort();
    const victims = this.#casualties.filter(({ kind }) => kind !== "killedLast");
    const wasCutShort: WasCutShort = (owner) => this.#casualties.some(({ worker }) => worker === owner);
    const inState = (state: TaskState): TaskRecord[] => tasks.filter((task) => task.state === state);
    const failed = inState("failed").filter(
      ({ id, remark }) => bad.includes(id) && remark.includes("SHA-256"),
    );
    const again = tasks.flatMap(({ id, attempts }) => (attempts > 1 && good.includes(id) ? [id] : []));
    /** The sort key of an open task ends with its id. */
    const endings = (id: string): number =>
      log.filter(
        ({ event }) => event.type === "released" && event.confirmed && event.sortKey.endsWith(`#${id}`),
      ).length;
    const lastClaims = new Map(grants.map(({ sortKey, owner }) => [sortKey.split("#").at(-1), owner]));
    return {
      checks: [
        check("tasks that have succeeded", good.length, inState("succeeded").length),
        check("bad tasks that have failed, with a remark", bad.length - hopeless.length, failed.length),
        check(
          "tasks parked, since no attempt can help them",
          listed(hopeless),
          listed(inState("parked").map(({ id }) => id)),
        ),
        promise("tasks in the table in the end", given, tasks.length),
        promise(
          "good tasks that ended once, and no more",
          good.length,
          good.filter((id) => endings(id) === 1).length,
        ),
        promise(
          "tasks ended under their last claim",
          given,
          tasks.filter(({ id, owner }) => lastClaims.get(id) === owner).length,
        ),
        promise("most attempts of a task", mostAttempts, Math.max(...tasks.map(({ attempts }) => attempts))),
        check(
          "good tasks that took a second attempt",
          listed(victims.map(({ taskId }) => taskId).sort()),
          listed(again.sort()),
        ),
        check(
          "takeovers, from",
          listed(victims.map(({ worker }) => worker).sort()),
          listed(takenOver(grants, wasCutShort).sort()),
        ),
        promise("claims of one task that overlapped in time", 0, overlaps(grants)),
        promise("the frozen worker's ending, when it arrived", "refused", wasRefused ? "refused" : "landed"),
        check("tasks that the frozen worker reports as lost", 1, this.#lostByFrozen()),
      ],
      inShort:
        `${grants.length} claims of ${tasks.length} tasks: ${inState("succeeded").length} succeeded once each, ` +
        `${inState("failed").length} failed, ${inState("parked").length} parked`,
      late: [
        ...this.#shifts.flatMap(({ worker, report }) =>
          report === "timedOut" ? [`${worker} did not come to an end in its time`] : [],
        ),
        ...ranOut(grants, log, wasCutShort),
      ],
    };
  }

  #lostByFrozen(): number {
    const frozen = this.#casualties.find(({ kind }) => kind === "frozen")?.worker;
    const reports = this.#shifts.flatMap(({ worker, report }) =>
      worker === frozen && typeof report !== "string" ? [report.lost] : [],
    );
    return reports.reduce((sum, lost) => sum + lost, 0);
  }

  /** Has as many workers at work as the plan wants, until the mishaps have befallen some of them. */
  async #workUntilStruck<T>(
    struck: Promise<T>,
  ): Promise<{ readonly victims: T; readonly shifts: Promise<unknown> }> {
    const { tempo } = this.#stage;
    let isOver = false;
    const over = struck.then(() => {
      isOver = true;
    });
    // One that finds nothing to do ends; a task whose attempt has failed is to be had again only after a while.
    const keepWorking = async (): Promise<void> => {
      while (!isOver) {
        await this.#work();
        await Promise.race([over, tempo.delay(betweenShiftsMs)]);
      }
    };
    const shifts = Promise.all(Array.from({ length: workersAtOnce }, keepWorking));
    const staged = tempo.within("two workers to be killed and one to be frozen", struck);
    return { victims: await Promise.race([staged, shifts.then(() => struck)]), shifts };
  }

  /** Waits until a worker is about to write how a task ended, and stops it there. */
  async #strike(kind: Mishap, sees: Sees): Promise<Victim> {
    const request = await this.#stage.gate.hold(sees);
    const taskId = request.seen;
    const text = JSON.stringify(request.request.body);
    const worker = await this.#stage.tempo.until(`the worker of ${taskId}`, () =>
      this.#instances.namedIn(text),
    );
    this.#casualties.push({ kind, worker: worker.name, taskId });
    const endsAt = this.#stage.screen.time(this.#claimEndsAt(worker.name));
    if (kind === "frozen") {
      this.#stage.app.freeze(worker.environmentId);
      this.#say(
        "frozen",
        worker.name,
        `SIGSTOP: ${taskId} is done, its ending on the way; its claim stands until ${endsAt}`,
      );
    } else {
      await this.#stage.app.kill(worker.environmentId);
      request.lose();
      const which =
        kind === "killed" ? "is done, and nobody knows" : `is in its last attempt of ${mostAttempts}`;
      this.#say("killed", worker.name, `SIGKILL: ${taskId} ${which}; its claim stands until ${endsAt}`);
    }
    return { worker, taskId, request };
  }

  /** New workers do what the others have left behind. */
  async #workUntilDone(): Promise<void> {
    await Promise.all([this.#workWhileOneIsOpen(), this.#workWhileOneIsOpen()]);
    for (const { id, state, remark, attempts } of await this.#tasks())
      if (state === "parked")
        this.#say(
          "parked",
          undefined,
          `${id}, after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: ${remark}`,
        );
  }

  /** One worker after the other, as the app's schedule calls them: tasks that failed wait for their next attempt. */
  async #workWhileOneIsOpen(): Promise<void> {
    for (;;) {
      await this.#work();
      if (!(await this.#tasks()).some(({ state }) => state === "waiting" || state === "running")) return;
      await this.#stage.tempo.delay(betweenCallsMs);
    }
  }

  /** The ending that the frozen worker had sent arrives now. Resolves to whether it was refused. */
  async #wake({ worker, taskId, request }: Victim): Promise<boolean> {
    this.#say(
      "woken",
      worker.name,
      `SIGCONT: its ending of ${taskId}, which another has done since, arrives now`,
    );
    const wasRefused = !(await request.letThrough());
    this.#stage.app.thaw(worker.environmentId);
    return wasRefused;
  }

  /** The set as its table shows it, with the names of workers. */
  async #tasks(): Promise<TaskRecord[]> {
    const { app, documents } = this.#stage;
    const leases = new LeaseClient({ tableName: app.tableName("Leases/Resource"), dynamodb: documents });
    const tasks: TaskRecord[] = [];
    for await (const task of new TaskSet(leases, taskSetKey(set)).list()) {
      tasks.push({ ...task, owner: task.owner && this.#instances.nameOf(task.owner) });
    }
    return tasks;
  }

  #hear({ instance, at, event }: LoggedLeaseEvent): void {
    if (event.type === "acquired") this.#ended.delete(event.sortKey);
    if (event.type === "released" && event.confirmed) this.#ended.add(event.sortKey);
    this.#tellProgress(`${workersAtOnce} workers share them`);
    if (event.type !== "takeover") return;
    const since = ((at - event.from.expiresAt) / 1000).toFixed(2);
    const id = event.sortKey.split("#").at(-1);
    this.#say("takeover", instance, `${id} from ${event.from.owner}, whose claim had ended ${since} s ago`);
  }

  /** Shows how many tasks are done, and a word on it. */
  #tellProgress(text: string, done: number = this.#ended.size): void {
    const total = ids.length;
    this.#stage.screen.progress(this.system, done, total, `${done} of ${total} are done; ${text}`);
  }

  /** Has a worker do what can be done. Resolves at its end, however it ends. */
  async #work(): Promise<void> {
    const { requestId, result } = this.#instances.deliver({ set });
    const outcome = await result;
    const shift = {
      worker: this.#instances.of(requestId)?.name ?? "?",
      report: failureIn(outcome) ?? (outcome.payload as WorkReport),
    };
    this.#shifts.push(shift);
    this.#tell(shift, outcome);
  }

  /** When the last claim of a worker ends, in epoch milliseconds. */
  #claimEndsAt(worker: string): number {
    return endOfLease(this.#instances.log.filter(({ instance }) => instance === worker));
  }

  #tell({ worker, report }: Shift, { payload }: InvokeResult): void {
    if (report === "died") return;
    if (typeof report === "string") {
      this.#say("failed", worker, JSON.stringify(payload));
      return;
    }
    const { succeeded, failed, parked, putBack, lost } = report;
    const counts = { succeeded, "put back after an error": putBack, "failed for good": failed, parked, lost };
    const text = Object.entries(counts).flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`]));
    this.#say("ran", worker, text.length === 0 ? "found nothing to do" : text.join(", "));
  }

  #say(kind: Kind, who: string | undefined, text: string): void {
    this.#stage.screen.event(this.system, kind, who, text);
  }
}

/** Gives the id of the task whose ending a request writes. */
function endingIn({ operation, body }: GateRequest): string | undefined {
  const text = JSON.stringify(body);
  if (operation !== "TransactWriteItems" || !text.includes(JSON.stringify(taskSetKey(set)))) return undefined;
  return ids.find((id) => text.includes(`#${id}"`));
}

/** Sees the ending of one task. */
function endingOf(id: string): Sees {
  return (request) => (endingIn(request) === id ? id : undefined);
}

/** Sees the ending of the first good task after so many others. */
function goodEndingAfter(count: number): Sees {
  const seen = new Set<string>();
  return (request) => {
    const id = endingIn(request);
    if (id === undefined || bad.includes(id)) return undefined;
    seen.add(id);
    return seen.size > count ? id : undefined;
  };
}
