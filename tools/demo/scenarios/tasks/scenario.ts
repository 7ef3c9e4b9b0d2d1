import { LeaseClient } from "@leasehold/client";
import { type TaskRecord, TaskSet } from "@leasehold/jobs";
import type { LocalAppEvent } from "@leasehold/local";
import { taskSetKey } from "../../../../functions/claim-tasks/schema.ts";
import type { HeldRequest } from "../../gate.ts";
import { readGrants } from "../../grants.ts";
import type { Instance } from "../../instances.ts";
import type { Kind } from "../../marks.ts";
import type { Outcome, Scenario, Stage } from "../../scenario.ts";
import { auditTasks, lateClaims, summarizeTasks } from "./audit.ts";
import type { Casualty, Mishap, TasksEvidence } from "./evidence.ts";
import {
  bad,
  betweenCallsMs,
  damaged,
  EndingWatch,
  incomplete,
  mostAttempts,
  poison,
  set,
  tasksToAdd,
  workersAtOnce,
} from "./plan.ts";
import { Workers } from "./workers.ts";

/** How soon a worker that has ended is followed by another, while the plan's mishaps are to come. */
const betweenShiftsMs = 500;

/** A worker whose ending of a task stands at the gate. */
interface Victim {
  readonly worker: Instance;
  readonly taskId: string;
  readonly request: HeldRequest<string>;
}

/** A set of tasks that many workers share. One worker does each task, whichever workers die. */
export class Tasks implements Scenario {
  readonly system = "tasks";
  readonly about = "a set of 60 tasks for 4 workers at once: each task is done by one of them, whoever dies";
  readonly #stage: Stage;
  readonly #workers: Workers;
  readonly #casualties: Casualty[] = [];
  #added = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#workers = new Workers(stage);
  }

  hear(event: LocalAppEvent): void {
    this.#workers.hear(event);
  }

  async prepare(): Promise<void> {
    this.#added = await this.#workers.add();
    this.#say(
      "added",
      undefined,
      `${this.#added} tasks, ${damaged.length} of them with damaged documents, and one without its checksum`,
    );
  }

  async play(): Promise<Outcome> {
    const killed = this.#strike("killed", new EndingWatch({ after: 6 }));
    const frozen = this.#strike("frozen", new EndingWatch({ after: 12 }));
    const killedLast = this.#strike("killedLast", new EndingWatch({ only: poison }));
    const { victims, shifts } = await this.#workUntilStruck(Promise.all([killed, frozen, killedLast]));
    const ends = victims.map(({ worker }) => this.#workers.claimEndsAt(worker.name));
    this.#workers.tellProgress("two workers are dead and one is frozen: their claims stand");
    const { tempo } = this.#stage;
    await tempo.untilTime(Math.max(...ends) + tempo.takeoverAllowanceMs);
    await this.#workUntilDone();
    const [, asleep] = victims;
    const wasRefused = await this.#wake(asleep);
    await shifts;
    this.#workers.tellProgress("none of them twice", tasksToAdd().length);

    const evidence: TasksEvidence = {
      given: tasksToAdd().length,
      added: this.#added,
      bad,
      hopeless: [poison, incomplete].sort(),
      mostAttempts,
      casualties: this.#casualties,
      shifts: this.#workers.shifts,
      grants: await readGrants(this.#stage, this.#workers.instances, taskSetKey(set), this.#workers.log),
      log: this.#workers.log,
      tasks: await this.#tasks(),
      wasRefused,
    };
    return { checks: auditTasks(evidence), inShort: summarizeTasks(evidence), late: lateClaims(evidence) };
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
        await this.#workers.work();
        await Promise.race([over, tempo.delay(betweenShiftsMs)]);
      }
    };
    const shifts = Promise.all(Array.from({ length: workersAtOnce }, keepWorking));
    const staged = tempo.within("two workers to be killed and one to be frozen", struck);
    return { victims: await Promise.race([staged, shifts.then(() => struck)]), shifts };
  }

  /** Waits until a worker is about to write how a task ended, and stops it there. */
  async #strike(kind: Mishap, watch: EndingWatch): Promise<Victim> {
    const { instances } = this.#workers;
    const request = await this.#stage.gate.hold((one) => watch.sees(one));
    const taskId = request.seen;
    const text = JSON.stringify(request.request.body);
    const worker = await this.#stage.tempo.until(`the worker of ${taskId}`, () => instances.namedIn(text));
    this.#casualties.push({ kind, worker: worker.name, taskId });
    const endsAt = this.#stage.screen.time(this.#workers.claimEndsAt(worker.name));
    if (kind === "frozen") {
      instances.freeze(worker);
      this.#say(
        "frozen",
        worker.name,
        `SIGSTOP: ${taskId} is done, its ending on the way; its claim stands until ${endsAt}`,
      );
    } else {
      await instances.kill(worker);
      request.lose();
      const which =
        kind === "killed" ? "is done, and nobody knows" : `is in its last attempt of ${mostAttempts}`;
      this.#say("killed", worker.name, `SIGKILL: ${taskId} ${which}; its claim stands until ${endsAt}`);
    }
    return { worker, taskId, request };
  }

  /** One worker after the other, as the app's schedule calls them: tasks that failed wait for their next attempt. */
  async #workAgainUntil(isOver: () => boolean): Promise<void> {
    for (;;) {
      await this.#workers.work();
      if (isOver() || !(await this.#isOneOpen())) break;
      await this.#stage.tempo.delay(betweenCallsMs);
    }
  }

  async #isOneOpen(): Promise<boolean> {
    return (await this.#tasks()).some(({ state }) => state === "waiting" || state === "running");
  }

  /** New workers do what the others have left behind. */
  async #workUntilDone(): Promise<void> {
    await Promise.all([this.#workAgainUntil(() => false), this.#workAgainUntil(() => false)]);
    for (const { id, state, remark, attempts } of await this.#tasks())
      if (state === "parked")
        this.#say(
          "parked",
          undefined,
          `${id}, after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: ${remark}`,
        );
  }

  /** The ending that the frozen worker had sent arrives now. Resolves to whether it was refused. */
  async #wake({ worker, taskId, request }: Victim): Promise<boolean> {
    this.#say(
      "woken",
      worker.name,
      `SIGCONT: its ending of ${taskId}, which another has done since, arrives now`,
    );
    const wasRefused = !(await request.letThrough());
    this.#workers.instances.thaw(worker);
    return wasRefused;
  }

  /** The set as its table shows it, with the names of workers. */
  async #tasks(): Promise<TaskRecord[]> {
    const { app, documents } = this.#stage;
    const leases = new LeaseClient({ tableName: app.tableName("Leases/Resource"), dynamodb: documents });
    const { instances } = this.#workers;
    const tasks: TaskRecord[] = [];
    for await (const task of new TaskSet(leases, taskSetKey(set)).list()) {
      tasks.push({ ...task, owner: task.owner && instances.nameOf(task.owner) });
    }
    return tasks;
  }

  #say(kind: Kind, who: string | undefined, text: string): void {
    this.#stage.screen.event(this.system, kind, who, text);
  }
}
