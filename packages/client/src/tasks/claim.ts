import { LeaseServiceError } from "../errors.ts";
import {
  type Claim,
  claimTask,
  parkTask,
  spendClaim,
  takeOverTask,
  undoClaim,
} from "../expressions-tasks.ts";
import { announceGrant, type Takeover } from "../protocol/announcement.ts";
import { callStore } from "../protocol/context.ts";
import { isHeldBy, type LeaseRecord, lastReleasedToken, readRecord } from "../record.ts";
import { attributeNames } from "../schema.ts";
import { taskIdOf } from "../schema-tasks.ts";
import type { Item, UpdateRequest, UpdateResult } from "../store.ts";
import { type Moment, moment } from "../time/clock.ts";
import { ClaimTenancy } from "./claim-tenancy.ts";
import type { TaskDesk } from "./desk.ts";
import { endedTask, isExhausted } from "./ended.ts";
import { persist } from "./persistence.ts";
import { Task } from "./task.ts";

/** What a task is parked with whose last worker's claim has run out, and one whose last worker's claim was broken. */
const lostRemark = "worker lost";
const brokenRemark = "claim broken";

/**
 * One worker's attempt to claim one task, under one token.
 *
 * 1 request for a task that waits, 2 for one whose worker was lost. A repeated request is the very same, so that its
 * own earlier copy is recognised and no attempt is counted twice.
 */
export class ClaimAttempt {
  readonly #desk: TaskDesk;
  readonly #id: string;
  readonly #token: string;
  #version = 0;
  /** Whether a write of ours may have landed, or may yet land, unknown to us. */
  #isUncertain = false;

  constructor(desk: TaskDesk, item: Item) {
    this.#desk = desk;
    this.#id = taskIdOf(String(item[attributeNames.sortKey]));
    this.#token = desk.context.randomness.token();
  }

  /** Gives the task; `parked` where no attempt was left and this one has parked it; undefined where others have it. */
  async run(): Promise<Task | "parked" | undefined> {
    let outcome: Task | "parked" | undefined;
    try {
      outcome = await this.#claim();
      return outcome;
    } finally {
      if (outcome === undefined && this.#isUncertain) void this.#takeBack().catch(() => undefined);
    }
  }

  async #claim(): Promise<Task | "parked" | undefined> {
    const { context, judge } = this.#desk;
    const since = moment(context.clock);
    const first = await this.#send(claimTask(this.#grant(since)));
    if (this.#isOurs(first)) return this.#settle(first, since, undefined);

    if (first.item === undefined) return undefined;
    const seen = readRecord(first.item);
    // Nobody has it, and it could not be claimed: it is not due, or an operator has broken its last attempt.
    if (seen === undefined) return isExhausted(first.item) ? await this.#park(first.item) : undefined;
    const verdict = judge.judge(seen, first.offset);
    if (!verdict.expired) return undefined;
    if (isExhausted(first.item)) return await this.#park(first.item, seen);
    const takenAt = moment(context.clock);
    const second = await this.#send(takeOverTask(this.#grant(takenAt), seen));
    if (!this.#isOurs(second)) return undefined;
    // Another copy of the first claim has landed in between: what the table says counts from that one.
    if (readRecord(second.item)?.version !== this.#version) return this.#settle(second, since, undefined);
    return this.#settle(second, takenAt, { ground: verdict.ground, from: seen });
  }

  #isOurs(result: UpdateResult): boolean {
    return result.applied || isHeldBy(result.item, this.#token);
  }

  #grant(at: Moment): Claim {
    const { set, terms } = this.#desk;
    this.#version += 1;
    return {
      set,
      id: this.#id,
      token: this.#token,
      version: this.#version,
      owner: terms.owner,
      acquiredAt: at.wall,
      leaseDurationMs: terms.leaseDurationMs,
      keepForMs: terms.keepForMs,
    };
  }

  async #send(update: UpdateRequest): Promise<UpdateResult> {
    const { context } = this.#desk;
    const doubt = (): void => {
      this.#isUncertain = true;
    };
    const result = await persist(context, (store, call) => store.update(update, call), doubt);
    context.noteOffset(result.offset);
    if (result.retried) doubt();
    return result;
  }

  #settle({ item = {} }: UpdateResult, since: Moment, takeover: Takeover | undefined): Task {
    const { context, terms, heartbeat } = this.#desk;
    const record = readRecord(item);
    const { leaseDurationMs } = terms;
    if (record === undefined || context.clock.monotonic() - since.monotonic >= leaseDurationMs) {
      this.#isUncertain = true;
      throw new LeaseServiceError(
        "LEASE_NO_ANSWER",
        `the answers for the task ${JSON.stringify(this.#id)} take longer than its claim of ${leaseDurationMs} ms: ` +
          "lengthen leaseDurationMs",
      );
    }
    const tenancy = new ClaimTenancy(
      context,
      { record, leaseDurationMs, closedUntil: undefined, slot: undefined },
      since,
    );
    if (terms.heartbeatMs !== undefined) heartbeat.start(tenancy, terms.heartbeatMs);
    announceGrant(context, record, takeover, context.clock.monotonic() - since.monotonic);
    return new Task(this.#desk, tenancy, item);
  }

  /** Gives undefined where it was not this attempt that has parked it. */
  async #park(item: Item, seen?: LeaseRecord): Promise<"parked" | undefined> {
    const { context } = this.#desk;
    const remark = seen === undefined ? brokenRemark : lostRemark;
    const ended = endedTask(this.#desk, item, seen, "parked", remark, this.#token);
    const result = await persist(context, (store, call) => store.transact(parkTask(ended, seen), call));
    const isOurs = result.applied || lastReleasedToken(result.refusals[1]?.item) === this.#token;
    return isOurs ? "parked" : undefined;
  }

  /** Takes back a claim that may have landed, or may yet: 1 request or 2, in the background. */
  async #takeBack(): Promise<void> {
    const { context, set, terms } = this.#desk;
    const send = (update: UpdateRequest): Promise<UpdateResult> =>
      callStore(context, (store, call) => store.update(update, call));
    const place = { set, id: this.#id, token: this.#token };
    const now = context.clock.now();
    const undo = undoClaim({ ...place, now, keepForMs: terms.keepForMs });
    const { applied, item } = await send(undo);
    if (applied || item === undefined || lastReleasedToken(item) === this.#token) return;
    const marked = await send(spendClaim(place));
    // The claim has landed just now.
    if (isHeldBy(marked.item, this.#token)) await send(undo);
  }
}
