import type { Item, LeaseRecord, UpdateRequest, UpdateResult } from "@leasehold/client";
import {
  announceGrant,
  attributeNames,
  callStore,
  type GrantIdentity,
  inBackground,
  isHeldBy,
  type LeasePlace,
  LeaseServiceError,
  lastReleasedToken,
  type Moment,
  readRecord,
  type Takeover,
} from "@leasehold/client/internal";
import { ClaimTenancy } from "./claim-tenancy.ts";
import type { TaskDesk } from "./desk.ts";
import { endedTask, isExhausted } from "./ended.ts";
import { type Claim, claimTask, parkTask, spendClaim, takeBackClaim, takeOverTask } from "./expressions.ts";
import { persist } from "./persistence.ts";
import { dueAtOf, fenceOf } from "./record.ts";
import { taskIdOf } from "./schema.ts";
import { Task } from "./task.ts";

/** What a task is parked with whose last worker's claim has run out, and one whose last worker's claim was broken. */
const lostRemark = "worker lost";
const brokenRemark = "claim broken";

/** Why a claim came to nothing. */
export interface NotClaimed {
  /** Whether no attempt was left, and this claim has parked the task. */
  readonly isParked: boolean;
  /** When the task may be claimed if nothing changes; infinite where that is not known. */
  readonly claimableInMs: number;
}

const elsewhere: NotClaimed = { isParked: false, claimableInMs: Number.POSITIVE_INFINITY };

/**
 * One worker's attempt to claim one task, under one token.
 *
 * 1 request for a task that waits, 2 for one whose worker was lost or that others have had since it was seen. A repeated
 * request is the very same, so that its own earlier copy is recognised and no attempt is counted twice.
 */
export class ClaimAttempt {
  readonly #desk: TaskDesk;
  readonly #item: Item;
  readonly #id: string;
  readonly #lease: LeasePlace & { readonly place: string };
  readonly #token: string;
  #version = 0;
  /** Whether a write of ours may have landed, or may yet land, unknown to us. */
  #isUncertain = false;

  constructor(desk: TaskDesk, item: Item) {
    this.#desk = desk;
    this.#item = item;
    const { partitionKey, sortKey } = attributeNames;
    this.#lease = { key: String(item[partitionKey]), place: String(item[sortKey]) };
    this.#id = taskIdOf(this.#lease.place);
    this.#token = desk.context.randomness.token();
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
    const { context, judge } = this.#desk;
    const since = context.clock.moment();
    const first = await this.#claimAsSeen(since);
    if (this.#isOurs(first)) return this.#settle(first, since, undefined);

    if (first.item === undefined) return elsewhere;
    const seen = readRecord(first.item);
    if (seen === undefined) return await this.#whyWaiting(first.item);
    const verdict = judge.judge(seen);
    if (!verdict.expired) return { isParked: false, claimableInMs: verdict.claimableInMs };
    if (isExhausted(first.item)) return await this.#park(first.item, seen);
    const takenAt = context.clock.moment();
    const second = await this.#send(takeOverTask(this.#grant(takenAt), seen));
    if (!this.#isOurs(second)) return elsewhere;
    // Another copy of the first claim has landed in between: what the table says counts from that one.
    if (readRecord(second.item)?.version !== this.#version) return this.#settle(second, since, undefined);
    return this.#settle(second, takenAt, { ground: verdict.ground, from: seen });
  }

  /** Others may have had the task and returned it since it was seen: then it is tried once more as it is now. */
  async #claimAsSeen(since: Moment): Promise<UpdateResult> {
    const result = await this.#send(claimTask(this.#grant(since), fenceOf(this.#item)));
    const { item } = result;
    const isSame = item === undefined || fenceOf(item) === fenceOf(this.#item);
    if (this.#isOurs(result) || isSame || readRecord(item) !== undefined || isExhausted(item)) return result;
    return await this.#send(claimTask(this.#grant(since), fenceOf(item)));
  }

  /** Nobody has it, and it could not be claimed: it is not due, or an operator has broken its last attempt. */
  async #whyWaiting(item: Item): Promise<NotClaimed> {
    if (isExhausted(item)) return await this.#park(item);
    return { isParked: false, claimableInMs: dueAtOf(item) - this.#desk.context.clock.now() };
  }

  get #identity(): GrantIdentity {
    return { token: this.#token, owner: this.#desk.terms.owner };
  }

  #isOurs(result: UpdateResult): boolean {
    return result.applied || isHeldBy(result.item, this.#identity);
  }

  #grant(at: Moment): Claim {
    const { set, terms } = this.#desk;
    const { clock } = this.#desk.context;
    this.#version += 1;
    return {
      set,
      id: this.#id,
      token: this.#token,
      version: this.#version,
      owner: terms.owner,
      acquiredAt: clock.timeOf(at),
      expiresAt: clock.expiryOf(at, terms.leaseDurationMs),
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
    if (result.retried) doubt();
    return result;
  }

  #settle({ item = {} }: UpdateResult, since: Moment, takeover: Takeover | undefined): Task {
    const { context, terms, heartbeat } = this.#desk;
    const record = readRecord(item);
    const { leaseDurationMs } = terms;
    const { clock } = context;
    const forMs = record && clock.checkExpiry(record.expiresAt, since, leaseDurationMs).believedMs;
    if (record === undefined || forMs === undefined || clock.elapsedSince(since) >= forMs) {
      this.#isUncertain = true;
      throw new LeaseServiceError(
        "LEASE_NO_ANSWER",
        `the answers for the task ${JSON.stringify(this.#id)} take longer than its claim of ${leaseDurationMs} ms: ` +
          "lengthen leaseDurationMs",
      );
    }
    const tenancyTerms = { record, leaseDurationMs, closedUntil: undefined, slot: undefined };
    const tenancy = new ClaimTenancy(context, tenancyTerms, { since, forMs });
    if (terms.heartbeatMs !== undefined) heartbeat.start(tenancy, terms.heartbeatMs);
    announceGrant(context, record, takeover, clock.monotonic() - since.monotonic);
    return new Task(this.#desk, tenancy, item);
  }

  async #park(item: Item, seen?: LeaseRecord): Promise<NotClaimed> {
    const { context } = this.#desk;
    const remark = seen === undefined ? brokenRemark : lostRemark;
    const ended = endedTask(this.#desk, item, seen, "parked", remark, this.#token);
    const result = await persist(context, (store, call) => store.transact(parkTask(ended, seen), call));
    const isOurs = result.applied || lastReleasedToken(result.refusals[1]?.item) === this.#token;
    return { ...elsewhere, isParked: isOurs };
  }

  #takeBackLater(): void {
    const { context, terms } = this.#desk;
    const expiresAt = context.clock.now() + terms.leaseDurationMs;
    const passed = inBackground(context, { ...this.#lease, owner: terms.owner, operation: "cancel" });
    context.lifecycle.remove({ ...this.#lease, expiresAt }, this.#takeBack(), passed);
  }

  /** Takes back a claim that may have landed, or may yet: 1 request or 2, in the background. */
  async #takeBack(): Promise<void> {
    const { context, set, terms } = this.#desk;
    const send = (update: UpdateRequest): Promise<UpdateResult> =>
      callStore(context, (store, call) => store.update(update, call));
    const place = { set, id: this.#id, token: this.#token };
    const now = context.clock.now();
    const undo = takeBackClaim({ ...place, now, keepForMs: terms.keepForMs });
    const { applied, item } = await send(undo);
    if (applied || item === undefined || lastReleasedToken(item) === this.#token) return;
    const marked = await send(spendClaim(place));
    // The claim has landed just now.
    if (isHeldBy(marked.item, this.#identity)) await send(undo);
  }
}
