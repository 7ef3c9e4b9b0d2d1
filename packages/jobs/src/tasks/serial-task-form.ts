import type { Item, LeaseRecord, UpdateResult } from "@leasehold/client";
import {
  attributeNames,
  type CallBudget,
  type Core,
  type Grant,
  optionalTextIn,
  transact,
} from "@leasehold/client/internal";
import { claimSerialKey } from "./expressions.ts";
import { taskFenceOf } from "./record.ts";
import { serialKeyItemKey, taskAttributeNames, taskIdOf } from "./schema.ts";
import type { TaskContext } from "./task-context.ts";
import { TaskForm } from "./task-form.ts";

/**
 * The lease of one claim of a task with a serial key. It is taken in a transaction, which is refused while a worker has
 * the task of that key that was claimed last.
 */
export class SerialTaskForm extends TaskForm {
  readonly #core: Core;
  readonly #task: { readonly set: string; readonly id: string; readonly serialKey: string };
  /** The item that has refused the last try: a takeover is from the record that it shows. */
  #refusing: Item = {};

  constructor({ core, set, terms }: TaskContext, seen: Item, serialKey: string) {
    const id = taskIdOf(String(seen[attributeNames.sortKey]));
    super({ set, id }, seen, terms.keepForMs);
    this.#core = core;
    this.#task = { set, id, serialKey };
  }

  /** 1 read of the key's item, and 1 transaction of at most three writes. */
  async acquireBy(grant: Grant, passed: readonly LeaseRecord[], budget: CallBudget): Promise<UpdateResult> {
    const { set, serialKey } = this.#task;
    const request = { key: serialKeyItemKey(set, serialKey), consistent: true };
    const seenTask = optionalTextIn(
      (await this.#core.get(request, budget)) ?? {},
      taskAttributeNames.lastTask,
    );
    const beside = claimSerialKey({ ...this.#task, now: grant.acquiredAt }, seenTask);
    const claim = this.acquire(grant, passed);
    const { applied, refusals, retried } = await transact(this.#core, [claim, ...beside], budget);
    if (applied) {
      const before = passed.length === 0 ? this.seen : this.#refusing;
      return { applied, item: claimed(before, grant), retried };
    }
    const [refusal] = refusals;
    this.isKeyBusy = refusal === undefined;
    this.#refusing = refusal?.item ?? {};
    return { applied, item: refusal?.item, retried };
  }
}

/** What a claim has made of an item. The transaction insists on the item's fencing token, and brings no item. */
function claimed(before: Item, grant: Grant): Item {
  const { token, version, owner, acquiredAt, expiresAt, leaseDurationMs, fence, ownClock, revocation } =
    attributeNames;
  const { attempts } = taskAttributeNames;
  const { [revocation]: _, [ownClock]: __, ...kept } = before;
  return {
    ...kept,
    [token]: grant.token,
    [version]: grant.version,
    [owner]: grant.owner,
    [acquiredAt]: grant.acquiredAt,
    [expiresAt]: grant.expiresAt,
    [leaseDurationMs]: grant.leaseDurationMs,
    [fence]: (taskFenceOf(before) ?? grant.acquiredAt) + 1,
    [attempts]: Number(before[attempts]) + 1,
    ...(grant.ownClock ? { [ownClock]: grant.version } : {}),
  };
}
