import type { Item, LeaseRecord } from "@leasehold/client";
import {
  Attempt,
  announceGrant,
  type Granted,
  HeldLease,
  lastReleasedToken,
  type Refused,
  sortKeyOf,
  transact,
} from "@leasehold/client/internal";
import { countClaim, endedTask, parkTask } from "./expressions.ts";
import type { TaskRate } from "./options.ts";
import { dueAtOf, isExhausted, serialKeyOf, taskFenceOf } from "./record.ts";
import { taskIdOf } from "./schema.ts";
import { Task } from "./task.ts";
import { callWithRetry, type TaskContext } from "./task-context.ts";
import { SerialTaskForm, TaskForm } from "./task-form.ts";

/**
 * One worker's attempt to claim one task, under one token.
 *
 * 1 request for a waiting task. 2 for a task whose worker was lost, or that another worker had since it was read. A
 * repeated request has the same token, so its earlier copy is recognised and no attempt is counted twice. With a serial
 * key, each of them is a read and a transaction.
 */
export class ClaimAttempt {
  readonly #context: TaskContext;
  readonly #form: TaskForm;
  readonly #attempt: Attempt;

  constructor(context: TaskContext, item: Item) {
    const { core, set, terms } = context;
    const sortKey = sortKeyOf(item);
    const serialKey = serialKeyOf(item);
    const { owner, leaseDurationMs, keepForMs } = terms;
    const wishes = { reentrant: false, resumes: false, data: undefined, slot: undefined };
    this.#context = context;
    this.#form =
      serialKey === undefined
        ? new TaskForm({ set, id: taskIdOf(sortKey) }, item, keepForMs)
        : new SerialTaskForm(context, item, serialKey);
    this.#attempt = new Attempt(core, this.#form, {
      key: set,
      sortKey,
      owner,
      leaseDurationMs,
      ...wishes,
    });
  }

  /** Whether a claim has landed, or may still land, although it was not granted. */
  get mayHaveLanded(): boolean {
    return this.#attempt.mayHaveLanded;
  }

  async run(): Promise<Task | NotClaimed> {
    const startedAt = this.#context.core.clock.monotonic();
    let outcome: Granted | Refused | undefined;
    try {
      outcome = await this.#claim();
      return outcome.granted ? this.#begin(outcome, startedAt) : await this.#refused(outcome);
    } finally {
      if (!outcome?.granted) this.#attempt.abandon();
    }
  }

  /** Another worker may have had the task and returned it since it was read. Then it is tried once more, as it is now. */
  async #claim(): Promise<Granted | Refused> {
    const outcome = await this.#try();
    const { item } = outcome;
    if (outcome.granted || outcome.availability.blocker !== undefined || item === undefined) return outcome;
    if (taskFenceOf(item) === taskFenceOf(this.#form.seen) || isExhausted(item)) return outcome;
    this.#form.seen = item;
    return await this.#try();
  }

  async #try(): Promise<Granted | Refused> {
    const withinMs = Number.POSITIVE_INFINITY;
    return await callWithRetry(this.#context.core, () => this.#attempt.try({ withinMs }));
  }

  #begin(granted: Granted, startedAt: number): Task {
    const context = this.#context;
    const { core, terms } = context;
    const { record, belief, item = {} } = granted;
    const form = this.#form;
    const claim = new HeldLease(core, form, { record, leaseDurationMs: terms.leaseDurationMs }, belief);
    announceGrant(core, form, granted, core.clock.monotonic() - startedAt);
    const task = new Task(context, claim, form, item);
    // Only now: nobody has a task that cannot be read, and its claim has to end by itself.
    claim.keepAlive(terms.heartbeatMs);
    return task;
  }

  async #refused({ item, availability }: Refused): Promise<NotClaimed> {
    const { blocker, claimableInMs } = availability;
    if (item === undefined) return { ...takenByAnother, isKeyBusy: this.#form.isKeyBusy };
    if (claimableInMs > 0) return { ...takenByAnother, claimableInMs };
    if (isExhausted(item)) return await this.#park(item, blocker);
    if (blocker !== undefined) return takenByAnother;
    return { ...takenByAnother, claimableInMs: dueAtOf(item) - this.#context.core.clock.now() };
  }

  /** `lost` is the expired claim of the last worker; undefined when an operator has broken it. */
  async #park(item: Item, lost: LeaseRecord | undefined): Promise<NotClaimed> {
    const context = this.#context;
    const { core } = context;
    const { token } = this.#attempt;
    const ended = endedTask(context, item, lost, "parked", lost ? lostRemark : brokenRemark, token);
    const result = await callWithRetry(core, () => transact(core, parkTask(ended, lost)));
    const isOurs = result.applied || lastReleasedToken(result.refusals[1]?.item) === token;
    return { ...takenByAnother, isParked: isOurs };
  }
}

/** The remarks of a task that is parked: the claim of its last worker has expired, or was broken. */
const lostRemark = "worker lost";
const brokenRemark = "claim broken";

/** Why a task was not claimed. */
interface NotClaimed {
  /** Whether no attempt was left, and this claim has parked the task. */
  readonly isParked: boolean;
  /** Whether a worker has another task with the same serial key. */
  readonly isKeyBusy: boolean;
  /** When the task may be claimed, if nothing changes; infinite when that is not known. */
  readonly claimableInMs: number;
}

const takenByAnother: NotClaimed = {
  isParked: false,
  isKeyBusy: false,
  claimableInMs: Number.POSITIVE_INFINITY,
};

/** Counts the claims of a set, of all its workers, by periods of the service's clock. */
export class ClaimRate {
  readonly #context: TaskContext;
  readonly #rate: TaskRate;
  /** The period in which this process was refused last: until its end it asks no more. */
  #usedUp: number | undefined;

  constructor(context: TaskContext, rate: TaskRate) {
    this.#context = context;
    this.#rate = rate;
  }

  /**
   * Counts one claim, which may begin then; gives 0. Gives how long to wait for the next period where this one is used up.
   *
   * 1 request. A count whose answer was lost is repeated, and may be counted twice: so a claim is lost, and none is one
   * too many.
   */
  async take(): Promise<number> {
    const { core, set } = this.#context;
    const { claims, perMs } = this.#rate;
    const period = this.#period();
    if (period !== this.#usedUp) {
      const write = countClaim({ set, claims, perMs, period });
      const { applied } = await callWithRetry(core, () => core.update(write));
      if (applied) return 0;
      this.#usedUp = period;
    }
    return Math.max(1, (period + 1) * perMs - core.clock.now());
  }

  #period(): number {
    return Math.floor(this.#context.core.clock.now() / this.#rate.perMs);
  }
}
