import type { Item, LeaseRecord, UpdateResult } from "@leasehold/client";
import {
  announceGrant,
  attributeNames,
  type Grant,
  type GrantIdentity,
  inBackground,
  isHeldBy,
  type LeaseAddress,
  LeaseServiceError,
  lastReleasedToken,
  type Moment,
  readRecord,
  type Takeover,
  type Write,
} from "@leasehold/client/internal";
import { callWithRetry } from "./call-with-retry.ts";
import { endedTask, isExhausted } from "./ended.ts";
import { claimTask, parkTask, revokeClaim, type TaskId, takeBackClaim, takeOverTask } from "./expressions.ts";
import { HeldClaim } from "./held-claim.ts";
import { dueAtOf, fenceOf } from "./record.ts";
import { taskIdOf } from "./schema.ts";
import { Task } from "./task.ts";
import type { TaskContext } from "./task-context.ts";

/**
 * One worker's attempt to claim one task, under one token.
 *
 * 1 request for a waiting task. 2 for a task whose worker was lost, or that another worker had since it was read. A
 * repeated request has the same token, so its earlier copy is recognised and no attempt is counted twice.
 */
export class ClaimAttempt {
  readonly #context: TaskContext;
  readonly #item: Item;
  readonly #id: string;
  readonly #lease: LeaseAddress & { readonly sortKey: string };
  readonly #token: string;
  #version = 0;
  /** Whether a write may have taken effect, or may still do so, without this caller knowing. */
  #isUncertain = false;

  constructor(context: TaskContext, item: Item) {
    this.#context = context;
    this.#item = item;
    const { partitionKey, sortKey } = attributeNames;
    this.#lease = { key: String(item[partitionKey]), sortKey: String(item[sortKey]) };
    this.#id = taskIdOf(this.#lease.sortKey);
    this.#token = context.randomness.token();
  }

  async run(): Promise<Task | NotClaimed> {
    let outcome: Task | NotClaimed | undefined;
    try {
      outcome = await this.#claim();
      return outcome;
    } finally {
      if (!(outcome instanceof Task) && this.#isUncertain) this.#takeBackLater();
    }
  }

  async #claim(): Promise<Task | NotClaimed> {
    const { clock, detector } = this.#context;
    const since = clock.moment();
    const first = await this.#claimAsSeen(since);
    if (this.#isOurs(first)) return this.#settle(first, since, []);

    if (first.item === undefined) return takenByAnother;
    const seen = readRecord(first.item);
    if (seen === undefined) return await this.#notDue(first.item);
    const verdict = detector.judge(seen);
    if (!verdict.expired) return { isParked: false, claimableInMs: verdict.claimableInMs };
    if (isExhausted(first.item)) return await this.#park(first.item, seen);
    const takenAt = clock.moment();
    const second = await this.#send(takeOverTask(this.#task, this.#grant(takenAt), seen));
    if (!this.#isOurs(second)) return takenByAnother;
    // A copy of the first claim took effect in between: the lease in the table counts from that one.
    if (readRecord(second.item)?.version !== this.#version) return this.#settle(second, since, []);
    return this.#settle(second, takenAt, [{ reason: verdict.reason, from: seen }]);
  }

  /** Another worker may have had the task and returned it since it was read. Then it is tried once more, as it is now. */
  async #claimAsSeen(since: Moment): Promise<UpdateResult> {
    const result = await this.#send(claimTask(this.#task, this.#grant(since), fenceOf(this.#item)));
    const { item } = result;
    const isSame = item === undefined || fenceOf(item) === fenceOf(this.#item);
    if (this.#isOurs(result) || isSame || readRecord(item) !== undefined || isExhausted(item)) return result;
    return await this.#send(claimTask(this.#task, this.#grant(since), fenceOf(item)));
  }

  /** No worker has the task, and it could not be claimed: it is not due, or an operator has broken its last claim. */
  async #notDue(item: Item): Promise<NotClaimed> {
    if (isExhausted(item)) return await this.#park(item);
    return { isParked: false, claimableInMs: dueAtOf(item) - this.#context.clock.now() };
  }

  get #task(): TaskId {
    return { set: this.#context.set, id: this.#id };
  }

  get #identity(): GrantIdentity {
    return { token: this.#token, owner: this.#context.terms.owner };
  }

  #isOurs(result: UpdateResult): boolean {
    return result.applied || isHeldBy(result.item, this.#identity);
  }

  #grant(at: Moment): Grant {
    const { terms, clock } = this.#context;
    this.#version += 1;
    return {
      token: this.#token,
      version: this.#version,
      owner: terms.owner,
      acquiredAt: clock.timeOf(at),
      expiresAt: clock.expiryOf(at, terms.leaseDurationMs),
      leaseDurationMs: terms.leaseDurationMs,
      retentionMs: terms.keepForMs,
      reentrant: false,
      data: undefined,
      slot: undefined,
    };
  }

  async #send(write: Write): Promise<UpdateResult> {
    const doubt = (): void => {
      this.#isUncertain = true;
    };
    const result = await callWithRetry(this.#context, (table) => table.update(write), doubt);
    if (result.retried) doubt();
    return result;
  }

  #settle({ item = {} }: UpdateResult, since: Moment, takeovers: readonly Takeover[]): Task {
    const context = this.#context;
    const { terms, heartbeat, clock } = context;
    const { leaseDurationMs } = terms;
    const record = readRecord(item);
    const forMs = record && clock.checkExpiry(record.expiresAt, since, leaseDurationMs).believedMs;
    if (record === undefined || forMs === undefined || clock.elapsedSince(since) >= forMs) {
      this.#isUncertain = true;
      throw new LeaseServiceError(
        "LEASE_NO_ANSWER",
        `the replies for the task ${JSON.stringify(this.#id)} take longer than its claim of ${leaseDurationMs} ms: ` +
          "set a longer leaseDurationMs",
      );
    }
    const leaseTerms = { record, leaseDurationMs, closedUntil: undefined, slot: undefined };
    const claim = new HeldClaim(context, leaseTerms, { since, forMs });
    if (terms.heartbeatMs !== undefined) heartbeat.start(claim, terms.heartbeatMs);
    announceGrant(context, record, takeovers, clock.monotonic() - since.monotonic);
    return new Task(context, claim, item);
  }

  async #park(item: Item, seen?: LeaseRecord): Promise<NotClaimed> {
    const context = this.#context;
    const remark = seen === undefined ? brokenRemark : lostRemark;
    const ended = endedTask(context, item, seen, "parked", remark, this.#token);
    const result = await callWithRetry(context, (table) => table.transact(parkTask(ended, seen)));
    const isOurs = result.applied || lastReleasedToken(result.refusals[1]?.item) === this.#token;
    return { ...takenByAnother, isParked: isOurs };
  }

  #takeBackLater(): void {
    const { clock, lifecycle, terms } = this.#context;
    const expiresAt = clock.now() + terms.leaseDurationMs;
    const passed = inBackground(this.#context, { ...this.#lease, owner: terms.owner, operation: "cancel" });
    lifecycle.remove({ ...this.#lease, expiresAt }, this.#takeBack(), passed);
  }

  /** Takes back a claim that may have taken effect, or may still do so: 1 or 2 requests, in the background. */
  async #takeBack(): Promise<void> {
    const context = this.#context;
    const { table, terms } = context;
    const claim = { ...this.#task, token: this.#token };
    const now = context.clock.now();
    const undo = takeBackClaim({ ...claim, now, keepForMs: terms.keepForMs });
    const { applied, item } = await table.update(undo);
    if (applied || item === undefined || lastReleasedToken(item) === this.#token) return;
    const marked = await table.update(revokeClaim(claim));
    // The claim has taken effect just before.
    if (isHeldBy(marked.item, this.#identity)) await table.update(undo);
  }
}

/** The remarks of a task that is parked: the claim of its last worker has expired, or was broken. */
const lostRemark = "worker lost";
const brokenRemark = "claim broken";

/** Why a task was not claimed. */
export interface NotClaimed {
  /** Whether no attempt was left, and this claim has parked the task. */
  readonly isParked: boolean;
  /** When the task may be claimed, if nothing changes; infinite when that is not known. */
  readonly claimableInMs: number;
}

const takenByAnother: NotClaimed = { isParked: false, claimableInMs: Number.POSITIVE_INFINITY };
