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
import { callWithRetry } from "./call-with-retry.ts";
import { endedTask, isExhausted } from "./ended.ts";
import { parkTask } from "./expressions.ts";
import { dueAtOf, serialKeyOf, taskFenceOf } from "./record.ts";
import { taskIdOf } from "./schema.ts";
import { SerialTaskForm } from "./serial-task-form.ts";
import { Task } from "./task.ts";
import type { TaskContext } from "./task-context.ts";
import { TaskForm } from "./task-form.ts";

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
    claim.keepAlive(terms.heartbeatMs);
    announceGrant(core, form, granted, core.clock.monotonic() - startedAt);
    return new Task(context, claim, form, item);
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
export interface NotClaimed {
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
