import { type Item, LeaseError, type LeaseStore } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import { breakLease } from "../../../packages/client/src/admin/statements.ts";
import type { Task, TaskRate, TaskSet } from "../../../packages/jobs/src/index.ts";
import {
  endedTaskKey,
  endedTaskPrefix,
  openTaskKey,
  openTaskPrefix,
  ratePeriodPrefix,
  taskAttributeNames,
  taskIdOf,
} from "../../../packages/jobs/src/tasks/schema.ts";
import { entriesOf, ownWrite, transactIn } from "../../support/own-transaction.ts";
import { Cluster, type Running, WorkError } from "../cluster.ts";
import type { Scene } from "../simulation.ts";
import type { Change } from "../table.ts";
import type { World } from "../world.ts";

export const processes = 4;
const set = "import";
export const ids = ["t0", "t1", "t2", "t3", "t4"] as const;
export const maxAttempts = 3;
const keepForMs = 3_600_000;
const backoff = { delayMs: 500, maxDelayMs: 2_000 };

export type Ending = "succeed" | "succeedIn" | "fail" | "release";
export type TaskStep =
  | {
      readonly kind: "add";
      readonly process: number;
      readonly ids: readonly string[];
      readonly delayMs: number;
      readonly maxAttempts: number;
      /** @default - none */
      readonly serialKey?: string;
    }
  | { readonly kind: "claim" | "work" | "requeueAll"; readonly process: number }
  | {
      readonly kind: "end";
      /** Of all claims, or of those that one process believes to have. */
      readonly which: number;
      readonly of?: number;
      readonly how: Ending;
      readonly retryAfterMs: number;
    }
  /** Ends one of the claims of a process in three ways at once. */
  | { readonly kind: "endThrice"; readonly of: number }
  | { readonly kind: "requeue"; readonly process: number; readonly which: number }
  | { readonly kind: "cancel" | "get"; readonly process: number; readonly id: string }
  | { readonly kind: "break"; readonly which: number }
  | { readonly kind: "night" };

interface Worker {
  readonly tasks: TaskSet;
  readonly store: LeaseStore;
  readonly claimed: Set<Task>;
}

export class Import implements Scene<TaskStep> {
  readonly world: Cluster<Worker>;
  /** Tasks for which some worker was told of its success, until ttl has forgotten them. */
  readonly #succeeded = new Set<string>();
  /** The highest fencing token of each task, until ttl has forgotten it. */
  readonly #fences = new Map<string, number>();
  /** Tokens of claims by the tasks' fencing tokens, and those of claims that workers were told of. */
  readonly #landed = new Map<string, string>();
  readonly #told = new Set<string>();
  /** Cancels that their callers have heard the end of, by their remarks. */
  readonly #answered = new Set<string>();
  #cancels = 0;
  #ownWrites = 0;
  readonly #rate: TaskRate | undefined;
  /** Claims that have been counted by the set's rate, and claims that have landed. */
  #counted = 0;
  #claims = 0;

  constructor(world: World, workers = processes, rate?: TaskRate) {
    this.#rate = rate;
    this.world = new Cluster<Worker>(world, {
      processes: workers,
      begin: (client, { release }, _index, store) => ({
        tasks: new release.TaskSet(client, set, { maxAttempts, keepForMs, backoff, ...(rate && { rate }) }),
        store,
        claimed: new Set(),
      }),
      onChange: (changes) => this.#changed(changes),
      expected: ["LEASE_TASK_LOST"],
    });
  }

  async take(one: TaskStep): Promise<void> {
    if ("process" in one) this.#call(one);
    else if (one.kind === "end") this.#end(one);
    else if (one.kind === "endThrice") this.#endThrice(one.of);
    else if (one.kind === "break") this.#break(one.which);
    else await this.#night();
  }

  /** In calm weather one worker is enough to bring every task to its end, those of dead workers included. */
  async end(): Promise<void> {
    const { world } = this;
    await world.clearUp();
    world.killAll();
    const running = world.at(0);
    const { tasks } = running.parts;
    let isOver = false;
    world.watch(
      running,
      tasks.process((task) => this.#work(running, task)),
      () => {
        isOver = true;
      },
      () => false,
    );
    await world.clock.advance(80_000);
    if (!isOver) world.fault("the set is not drained in calm weather");
    const counts = await Promise.all([tasks.counts(), world.clock.advance(30_000)]);
    const { waiting, running: claimed, ...ended } = counts[0];
    if (waiting + claimed > 0) world.fault(`${waiting} wait and ${claimed} run in calm weather`);
    for (const [state, count] of Object.entries(ended)) if (count > 0) world.count(`in the end: ${state}`);
  }

  async #work(running: Running<Worker>, task: Task): Promise<void> {
    this.#claimed(running, task);
    await running.process.pause(100);
    running.parts.claimed.delete(task);
    if (this.world.random.chance(0.3)) throw new WorkError();
  }

  #call(one: Extract<TaskStep, { process: number }>): void {
    const { world } = this;
    const running = world.at(one.process);
    const { tasks } = running.parts;
    const watch = <Value>(call: Promise<Value>, onValue: (value: Value) => void): void =>
      world.watch(running, call, onValue);
    switch (one.kind) {
      case "add": {
        const { delayMs, maxAttempts } = one;
        const serially = one.serialKey === undefined ? {} : { serialKey: one.serialKey };
        const inputs = one.ids.map((id) => ({ id, payload: { id }, delayMs, maxAttempts, ...serially }));
        watch(tasks.add(inputs), ({ added }) => world.count(added > 0 ? "added" : "known"));
        break;
      }
      case "claim":
        watch(tasks.claim(), (task) => task && this.#claimed(running, task));
        break;
      case "work":
        watch(
          tasks.process((task) => this.#work(running, task)),
          () => world.count("worked"),
        );
        break;
      case "requeue": {
        const given = this.#givenUp();
        const id = given[one.which % Math.max(1, given.length)] ?? "t0";
        watch(tasks.requeue(id), (done) => world.count(`requeued: ${done}`));
        break;
      }
      case "requeueAll":
        watch(tasks.requeueAll({ limit: 3 }), (done) => world.count(`requeued many: ${done > 0}`));
        break;
      case "cancel":
        this.#cancel(running, one.id);
        break;
      case "get": {
        const wasKnown = this.#fences.has(one.id);
        watch(tasks.get(one.id), (task) => {
          if (task === undefined && wasKnown) world.fault(`${one.id} is there, and was not found`);
          world.count(`got: ${task?.state}`);
        });
      }
    }
  }

  /** Its remark says which call has brought it about. */
  #cancel(running: Running<Worker>, id: string): void {
    const { world } = this;
    this.#cancels += 1;
    const remark = `cancel ${this.#cancels}`;
    const call = running.parts.tasks.cancel(id, remark);
    const answered = (isCancelled: boolean): void => {
      world.count(`cancelled: ${isCancelled}`);
      this.#answered.add(remark);
    };
    world.watch(running, call, answered);
  }

  /** Tasks that have ended without success. */
  #givenUp(): string[] {
    return ids.filter((id) => {
      const state = this.world.table.peek(endedTaskKey(set, id))?.[taskAttributeNames.state];
      return state === "failed" || state === "parked" || state === "cancelled";
    });
  }

  #claimed({ process, parts }: Running<Worker>, task: Task): void {
    const { world } = this;
    world.count("claimed");
    if (task.attempt > 1) world.count("claimed again");
    if (task.attempt > maxAttempts) world.fault(`${task.id} was claimed ${task.attempt} times`);
    if (this.#succeeded.has(task.id)) world.fault(`${task.id} was claimed after its success`);
    if ((task.payload as { id: string }).id !== task.id)
      world.fault(`${task.id} came with another's payload`);
    parts.claimed.add(task);
    const { fencingToken } = task;
    const item = world.table.peek(openTaskKey(set, task.id));
    if (item?.[attributeNames.token] !== undefined && item[attributeNames.fence] === fencingToken) {
      const { attempts, remark } = taskAttributeNames;
      const isRight = item[attempts] === task.attempt && item[remark] === task.remark;
      if (!isRight) world.fault(`${task.id} is shown with the attempts or the remark of an earlier time`);
    }
    this.#told.add(this.#landed.get(`${task.id} ${fencingToken}`) ?? "");
    // A worker that has begun to end a task acts on it no more, though its claim stands until the answer comes.
    const holding = {
      fencingToken,
      get held() {
        return parts.claimed.has(task) && task.held;
      },
    };
    world.beliefs.add(process, holding, openTaskKey(set, task.id));
  }

  /** One of the tasks that workers believe to have, and the worker. */
  #believed(
    which: number,
    of?: number,
  ): { readonly running: Running<Worker>; readonly task: Task } | undefined {
    const { processes } = this.world;
    const workers = of === undefined ? processes : processes.slice(of, of + 1);
    const all = workers.flatMap((running) => [...running.parts.claimed].map((task) => ({ running, task })));
    return all[which % Math.max(1, all.length)];
  }

  /** An operator breaks a claim; that its worker may believe in it for a while longer is no fault. */
  #break(which: number): void {
    const { world } = this;
    const one = this.#believed(which);
    if (one === undefined) return;
    const { running, task } = one;
    const { sk: sortKey } = openTaskKey(set, task.id);
    const item = world.table.peek(openTaskKey(set, task.id));
    const token = item?.[attributeNames.token];
    if (token === undefined || item?.[attributeNames.fence] !== task.fencingToken) return;
    running.parts.claimed.delete(task);
    world.table.update(breakLease({ key: set, sortKey }, String(token), 0).request());
    world.count("broken");
  }

  #end({ which, of, how, retryAfterMs }: Extract<TaskStep, { kind: "end" }>): void {
    const { world } = this;
    const one = this.#believed(which, of);
    if (one === undefined) return;
    const { running, task } = one;
    running.parts.claimed.delete(task);
    const again = async (error: unknown): Promise<void> => {
      if (!(error instanceof LeaseError) || error.code !== "LEASE_NO_ANSWER") throw error;
      await this.#succeedIn(running, task);
    };
    const calls: Readonly<Record<Ending, () => Promise<unknown>>> = {
      succeed: () => task.succeed(),
      succeedIn: () => this.#succeedIn(running, task).catch(again),
      fail: () => task.fail("", { retryAfterMs }),
      release: () => task.release(),
    };
    const call = calls[how]();
    const ended = (): void => {
      world.count(`confirmed: ${how}`);
      if (how === "succeed" || how === "succeedIn") this.#succeeds(task);
    };
    world.watch(running, call, ended);
  }

  /** With a write of the user's own: it is there if the call resolves. */
  async #succeedIn({ parts }: Running<Worker>, task: Task): Promise<void> {
    const { world } = this;
    this.#ownWrites += 1;
    const key = { pk: "users", sk: `own ${this.#ownWrites}` };
    await task.succeedIn((items) => transactIn(parts.store, [...entriesOf(items), ownWrite(key)]));
    if (world.table.peek(key) === undefined) world.fault(`${task.id} succeeded without its own write`);
  }

  #endThrice(of: number): void {
    const { world } = this;
    const one = this.#believed(0, of);
    if (one === undefined) return;
    const { running, task } = one;
    running.parts.claimed.delete(task);
    let confirmed = 0;
    const calls: readonly Promise<unknown>[] = [
      task.succeed(),
      task.fail("", { retryAfterMs: 0 }),
      task.release(),
    ];
    for (const call of calls) {
      const ended = (): void => {
        confirmed += 1;
        if (confirmed > 1) world.fault(`${task.id} was ended by two calls of one claim`);
      };
      world.watch(running, call, ended);
    }
  }

  #succeeds({ id }: Task): void {
    if (this.#succeeded.has(id)) this.world.fault(`two workers were told of the success of ${id}`);
    this.#succeeded.add(id);
    const item = this.world.table.peek(endedTaskKey(set, id));
    const state = item?.[taskAttributeNames.state];
    if (state !== "succeeded") this.world.fault(`${id} was confirmed, and is ${state}`);
  }

  /** Everybody dies, and ttl forgets the tasks. */
  async #night(): Promise<void> {
    const { world } = this;
    world.killAll();
    await world.clock.advance(2 * keepForMs);
    await world.befall({ kind: "collect" });
    this.#succeeded.clear();
    this.#fences.clear();
  }

  #changed(changes: readonly Change[]): void {
    const { world } = this;
    const { state } = taskAttributeNames;
    for (const { key, before, after } of changes) {
      if (key.sk.startsWith(ratePeriodPrefix)) this.#checkRate(key.sk, before, after);
      if (!key.sk.startsWith(openTaskPrefix) && !key.sk.startsWith(endedTaskPrefix)) continue;
      const id = taskIdOf(key.sk);
      const { table } = world;
      if (table.peek(openTaskKey(set, id)) && table.peek(endedTaskKey(set, id))) {
        world.fault(`${id} is open, and has ended`);
      }
      if (!key.sk.startsWith(endedTaskPrefix)) {
        if (after !== undefined) this.#checkOpen(id, before, after);
        continue;
      }
      if (before?.[state] === "succeeded") world.fault(`${key.sk} was written after its success`);
      if (before !== undefined) world.count("begun again");
      if (after !== undefined) this.#checkEnded(key.sk, after, changes);
    }
  }

  /** Its attempts are bounded, and every claim and every new round has a fencing token of its own, and is meant. */
  #checkOpen(id: string, before: Item | undefined, after: Item): void {
    const { world } = this;
    const { token, fence, acquiredAt } = attributeNames;
    const { attempts, maxAttempts: most, dueAt } = taskAttributeNames;
    const tries = Number(after[attempts]);
    if (tries < 0 || tries > Number(after[most]) || tries > maxAttempts)
      world.fault(`${id} has ${tries} attempts`);
    const claim = after[token];
    const isClaim = claim !== undefined && claim !== before?.[token];
    const highest = this.#fences.get(id) ?? 0;
    const is = Number(after[fence] ?? 0);
    if (isClaim || (before === undefined && after[fence] !== undefined)) {
      if (is <= highest) world.fault(`the fencing token of ${id} went from ${highest} to ${is}`);
    }
    this.#fences.set(id, Math.max(is, highest));
    if (!isClaim) return;
    this.#checkAlone(id, after);
    this.#claims += 1;
    if (this.#rate !== undefined && this.#claims > this.#counted)
      world.fault(`${id} was claimed, and ${this.#counted} claims were counted of ${this.#claims}`);
    if (this.#told.has(String(claim))) world.fault(`a claim of ${id} by ${claim} has landed again`);
    this.#landed.set(`${id} ${is}`, String(claim));
    const isEarly = before?.[token] === undefined && Number(before?.[dueAt]) > Number(after[acquiredAt]);
    if (isEarly) world.fault(`${id} was claimed before it was due`);
  }

  /** A period counts no more claims than the rate allows. */
  #checkRate(sortKey: string, before: Item | undefined, after: Item | undefined): void {
    if (after === undefined) return;
    const [was, is] = [before, after].map((item) => Number(item?.[taskAttributeNames.claims] ?? 0));
    this.#counted += (is ?? 0) - (was ?? 0);
    const most = this.#rate?.claims ?? 0;
    if ((is ?? 0) === most) this.world.count("rate used up");
    if ((is ?? 0) > most) this.world.fault(`${sortKey} counts ${is} claims, one too many`);
  }

  /** No two tasks of one serial key are claimed, whatever their workers believe. */
  #checkAlone(id: string, claimed: Item): void {
    const { world } = this;
    const key = claimed[taskAttributeNames.serialKey];
    if (key === undefined) return;
    world.count("claimed alone");
    const others = ids.filter((other) => {
      const item = other === id ? undefined : world.table.peek(openTaskKey(set, other));
      return item?.[attributeNames.token] !== undefined && item[taskAttributeNames.serialKey] === key;
    });
    world.grows(`the key ${key}`, Number(claimed[attributeNames.fence]));
    if (others.length > 0)
      world.fault(`${id} and ${others.join(", ")} of the key ${key} are claimed at once`);
  }

  /** Ended by the claim that held it, in the very write that took the claim away, or parked with no attempt left. */
  #checkEnded(sortKey: string, after: NonNullable<Change["after"]>, changes: readonly Change[]): void {
    const { token, releasedToken } = attributeNames;
    const state = after[taskAttributeNames.state];
    this.world.count(`recorded: ${state}`);
    const id = taskIdOf(sortKey);
    this.#fences.set(id, Math.max(Number(after[attributeNames.fence]), this.#fences.get(id) ?? 0));
    const open = changes.find(({ key }) => key.sk === openTaskKey(set, id).sk);
    if (open?.after !== undefined) this.world.fault(`${id} is ${state}, and still open`);
    const holder = open?.before?.[token];
    if (state === "cancelled") {
      if (open?.before === undefined || holder !== undefined)
        this.world.fault(`${id} was not waiting, and is cancelled`);
      const remark = String(after[taskAttributeNames.remark]);
      if (this.#answered.has(remark)) this.world.fault(`${remark} of ${id} has landed after its answer`);
      return;
    }
    const isSpent =
      open?.before?.[taskAttributeNames.attempts] === open?.before?.[taskAttributeNames.maxAttempts];
    const isParked = state === "parked" && open?.before !== undefined && isSpent;
    if (isParked && holder === undefined) this.world.count("parked with its claim broken");
    if (!isParked && holder !== after[releasedToken]) {
      this.world.fault(`${id} is ${state} by ${after[releasedToken]}, and was held by ${holder}`);
    }
  }
}
