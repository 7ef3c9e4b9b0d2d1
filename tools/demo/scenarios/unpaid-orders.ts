import type { LeaseEvent } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { leaseSortKey } from "@leasehold/client/schema";
import type { InvokeResult } from "@leasehold/local";
import type { TriggerOutcome } from "../../../functions/close-unpaid-orders/handler.ts";
import { closeUnpaidOrdersKey, type JobOutcome } from "../../../functions/close-unpaid-orders/job.ts";
import type { Order } from "../../../functions/close-unpaid-orders/orders.ts";
import {
  readShop,
  type ShopState,
  type Stock,
  seedShop,
} from "../../../functions/close-unpaid-orders/shop-table.ts";
import { errorFieldsIn } from "../../../functions/support/answers.ts";
import type { GateRequest, HeldRequest } from "../gate.ts";
import { failureIn, type Instance, Instances } from "../instances.ts";
import { type LoggedLeaseEvent, overlaps, ranOut, takenOver, type WasCutShort } from "../leases.ts";
import { type Check, check, listed, type Outcome, promise, type Scenario } from "../scenario.ts";
import type { Kind } from "../screen.ts";
import type { Stage } from "../stage.ts";
import { NotStaged } from "../tempo.ts";
import {
  deliveriesAtOnce,
  holdAt,
  type Mishap,
  plan,
  plannedTickMs,
  type Step,
  scheduledAt,
  shopAtStart,
} from "./unpaid-orders-plan.ts";

/** What an instance made of a trigger. */
type Answer =
  | ((TriggerOutcome | Extract<JobOutcome, { readonly result: "lost" }>) & { readonly tookMs: number })
  /** The job rejected. */
  | { readonly result: "failed"; readonly problem: string; readonly timedOut: boolean }
  /** The process ended before it answered. */
  | { readonly result: "died" };

/** One trigger that was delivered to one instance. */
interface Delivery {
  readonly tick: number;
  readonly instance: string;
  /** Whether it was the second copy of the same trigger. */
  readonly repeated: boolean;
  readonly answer: Answer;
}

/** A run that was killed or frozen. */
interface Casualty {
  readonly kind: "killed" | "frozen";
  readonly tick: number;
  readonly instance: string;
  readonly fencingToken: number;
}

/** Before the first tick; the orders are written in between, and the others' first instances have started by then. */
const leadMs = 2_000;

/** What is said in advance of a tick's mishap. */
const announcements: Record<Mishap, string> = {
  deliveredTwice: "; it will be delivered twice",
  killed: "; the running instance will be killed",
  frozen: "; the running instance will be frozen",
  woken: "; the frozen instance will wake",
};

/** The closing of an order, as it is on its way to the table. */
interface Closing {
  readonly orderId: string;
  readonly owner: string;
  readonly fencingToken: number;
  /** How many orders this run has closed before. */
  readonly closed: number;
}

/** A run that stands still: its lease has been checked, and its write is under way. */
interface Holding extends Closing {
  readonly tick: number;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** A run whose write stands at the gate. */
interface Victim {
  readonly instance: Instance;
  readonly holding: Holding;
  readonly request: HeldRequest<Closing>;
  readonly answer: Promise<Answer>;
}

/**
 * A job that closes unpaid orders, triggered on several instances at once: each tick has one run.
 *
 * Fires the ticks, brings the mishaps about, and records what comes of it.
 */
export class UnpaidOrders implements Scenario {
  readonly system = "orders";
  readonly about: string;
  readonly #stage: Stage;
  readonly #shopTable: string;
  readonly #tickMs: number;
  /** How long a lease lasts that is not renewed. */
  readonly #leaseMs: number;
  readonly #instances: Instances;
  readonly #deliveries: Delivery[] = [];
  readonly #casualties: Casualty[] = [];
  readonly #ticks = new Map<string, number>();
  readonly #holdings = new Map<string, Holding>();
  readonly #answers = new Map<string, Promise<Answer>>();
  /** Until then, in epoch milliseconds, the lock may be held by the dead. */
  #lockedUntil = 0;
  #leaseEndsAt = 0;
  #closed = 0;
  #frozen: (Victim & { readonly since: number }) | undefined;
  /** What became of the frozen run's write when it arrived. */
  #staleWrite = "never sent";

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#shopTable = stage.app.tableName("UnpaidOrders/Shop");
    this.#tickMs = stage.tempo.ms(plannedTickMs);
    const job = stage.app.spec.functions.find(
      ({ environment }) => environment[environmentNames.job] !== undefined,
    );
    this.#leaseMs = Number(job?.environment[environmentNames.lockAtMostForMs]);
    this.#instances = new Instances(stage, {
      functionId: "UnpaidOrders/Close",
      nameOf: (index) => String.fromCharCode("A".charCodeAt(0) + index),
      key: closeUnpaidOrdersKey,
      onStarted: ({ name, pid }) =>
        stage.screen.event(this.system, "started", name, `instance ${name} (process ${pid})`),
      onLeaseEvent: (entry, requestId) => this.#hear(entry, this.#ticks.get(requestId) ?? 0),
    });
    this.about =
      `a job closes unpaid orders, every ${this.#tickMs / 1000} s on several instances at once; ` +
      `its lease of ${this.#leaseMs / 1000} s is renewed`;
  }

  /** Fires every tick of the plan on time, or as soon as the tick before has released the lock. */
  async play(): Promise<Outcome> {
    const { documents, tempo } = this.#stage;
    const firstTickAt = Date.now() + tempo.ms(leadMs);
    const before = shopAtStart(firstTickAt, this.#tickMs);
    await seedShop(documents, this.#shopTable, before);
    for (const [index, step] of plan.entries()) {
      const tick = index + 1;
      const dueAt = scheduledAt(firstTickAt, tick, this.#tickMs);
      await tempo.untilTime(Math.max(dueAt, this.#lockedUntil));
      await this.#play(tick, dueAt, step);
    }
    this.#tellProgress(plan.length, "every tick has had its run");

    return this.#audit(before, scheduledAt(firstTickAt, plan.length, this.#tickMs));
  }

  /** Judges by the shop's own items, by the leases that the table has granted, and by what was answered. */
  async #audit(before: ShopState, lastScheduledAt: number): Promise<Outcome> {
    const after = await readShop(this.#stage.documents, this.#shopTable);
    // Other leases under the job's key belong to its run history.
    const grants = (await this.#instances.grants()).filter(({ sortKey }) => sortKey === leaseSortKey);
    const log = this.#instances.log.filter(({ event }) => isOfTheLock(event));
    const wasCutShort: WasCutShort = (owner, fencingToken) =>
      this.#casualties.some((run) => run.instance === owner && run.fencingToken === fencingToken);
    const ended = (result: Answer["result"]): number =>
      this.#deliveries.filter(({ answer }) => answer.result === result).length;
    const cutShort = this.#casualties.length;
    const skipped = ended("skipped") + ended("doneBefore");
    const overdue = before.open.filter(({ dueAt }) => dueAt < lastScheduledAt);
    const others = [...before.paid, ...before.open.filter(({ dueAt }) => dueAt >= lastScheduledAt)];
    const untouched = new Set([...after.open, ...after.paid].map(({ orderId }) => orderId));
    const once = new Set(after.closed.flatMap(({ orderId, closings }) => (closings === 1 ? [orderId] : [])));
    const underALease = after.closed.filter(({ closedBy, fencingToken }) =>
      grants.some(
        (one) => one.fencingToken === fencingToken && one.owner === this.#instances.nameOf(closedBy),
      ),
    );
    return {
      checks: [
        check("runs to the end", plan.length - cutShort, ended("ran")),
        check("runs cut short by a kill", this.#suffered("killed"), ended("died")),
        check("runs that lost their lease", this.#suffered("frozen"), ended("lost")),
        check(
          "triggers skipped: others had the lock, or the tick its run",
          this.#deliveries.length - plan.length,
          skipped,
        ),
        check("second copies of a trigger, all skipped", deliveriesAtOnce, this.#copiesSkipped()),
        check("leases granted, one in each tick", plan.length, grants.length),
        promise("leases that overlapped in time", 0, overlaps(grants)),
        check(
          "takeovers, from",
          listed(this.#casualties.map(({ instance }) => instance)),
          listed(takenOver(grants, wasCutShort)),
        ),
        promise("the frozen one's write, when it arrived", "refused", this.#staleWrite),
        check(
          "overdue orders closed exactly once",
          overdue.length,
          overdue.filter(({ orderId }) => once.has(orderId)).length,
        ),
        promise(
          "orders paid or not yet due, untouched",
          others.length,
          others.filter(({ orderId }) => untouched.has(orderId)).length,
        ),
        promise("closings under a lease that was granted", after.closed.length, underALease.length),
        ...stockChecks(before.stock, after.stock, overdue),
      ],
      inShort:
        `${ended("ran")} runs, ${skipped} skips, ${after.closed.length} orders closed exactly once, ` +
        "stock right to the unit, 1 stale write fenced off",
      late: [...this.#timeouts(), ...this.#barredTicks(), ...ranOut(grants, log, wasCutShort)],
    };
  }

  #suffered(kind: Casualty["kind"]): number {
    return this.#casualties.filter((run) => run.kind === kind).length;
  }

  #copiesSkipped(): number {
    return this.#deliveries.filter(({ repeated, answer }) => repeated && answer.result === "doneBefore")
      .length;
  }

  #timeouts(): string[] {
    return this.#deliveries.flatMap(({ tick, instance, answer }) =>
      answer.result === "failed" && answer.timedOut
        ? [`${instance} did not come to an end in tick ${tick}`]
        : [],
    );
  }

  /** In which ticks everybody was turned away by a lease of the dead. */
  #barredTicks(): string[] {
    const isBarred = ({ answer }: Delivery): boolean =>
      answer.result === "skipped" && this.#casualties.some(({ instance }) => instance === answer.holder);
    return [...Map.groupBy(this.#deliveries, ({ tick }) => tick)].flatMap(([tick, own]) =>
      own.every(isBarred) ? [`a dead lease still stood in the way in tick ${tick}`] : [],
    );
  }

  #hear({ at, event: told }: LoggedLeaseEvent, tick: number): void {
    if (!isOfTheLock(told)) return;
    if (told.type === "acquired" || told.type === "renewed") {
      this.#leaseEndsAt = told.expiresAt;
      this.#lockedUntil = told.expiresAt + this.#stage.tempo.takeoverAllowanceMs;
    }
    if (told.type === "released") this.#lockedUntil = 0;
    if (told.type !== "takeover") return;
    const { owner, from, reason } = told;
    const since = ((at - from.expiresAt) / 1000).toFixed(2);
    const how = reason === "observation" ? "unchanged for a whole lease" : "by the service's clock";
    this.#say("takeover", owner, tick, `from ${from.owner}, whose lease had ended ${since} s ago (${how})`);
  }

  async #play(tick: number, dueAt: number, { orders, mishap }: Step): Promise<void> {
    const hold = mishap && holdAt[mishap];
    const held = hold === undefined ? undefined : this.#stage.gate.hold(closingAfter(hold));
    this.#tellProgress(tick - 1, `tick ${tick} of ${plan.length}`);
    const announcement = mishap === undefined ? "" : announcements[mishap];
    const fired = `${deliveriesAtOnce} times at once: ${orders} more orders overdue${announcement}`;
    this.#say("fired", undefined, tick, fired);
    const answers = this.#deliver(tick, dueAt, false);
    const victim = async (): Promise<Victim> => {
      const nobody = Promise.all(answers).then(() => {
        throw new NotStaged(`no write came to the gate in tick ${tick}, where a run was to be ${mishap}`);
      });
      return this.#victim(tick, await Promise.race([held ?? nobody, nobody]));
    };

    switch (mishap) {
      case "deliveredTwice":
        await Promise.all(answers);
        this.#say("fired", undefined, tick, "the same trigger again, now that the run is over");
        answers.push(...this.#deliver(tick, dueAt, true));
        break;
      case "killed": {
        const { instance, holding, request } = await victim();
        this.#suffer("killed", instance, holding);
        await this.#stage.app.kill(instance.environmentId);
        this.#expectNoRelease();
        request.lose();
        break;
      }
      case "frozen": {
        const frozen = await victim();
        this.#stage.app.freeze(frozen.instance.environmentId);
        this.#expectNoRelease();
        this.#suffer("frozen", frozen.instance, frozen.holding);
        this.#frozen = { ...frozen, since: performance.now() };
        answers.splice(answers.indexOf(frozen.answer), 1);
        break;
      }
      case "woken": {
        const successor = await victim();
        await this.#wake();
        await successor.request.letThrough();
        break;
      }
    }
    await Promise.all(answers);
  }

  #victim(tick: number, request: HeldRequest<Closing>): Victim {
    const { orderId, owner } = request.seen;
    for (const [requestId, answer] of this.#answers) {
      const instance = this.#instances.of(requestId);
      if (instance === undefined || !owner.includes(requestId)) continue;
      const holding = { ...request.seen, tick, expiresAt: this.#leaseEndsAt };
      this.#holdings.set(requestId, holding);
      return { instance, holding, request, answer };
    }
    throw new Error(`a write of ${orderId} came from nobody who was triggered: ${owner}`);
  }

  /** The write of the frozen run arrives now: the order is still open, and its lease gone. */
  async #wake(): Promise<void> {
    if (this.#frozen === undefined) throw new Error("nobody is frozen");
    const { instance, holding, request, since, answer } = this.#frozen;
    this.#frozen = undefined;
    const slept = ((performance.now() - since) / 1000).toFixed(1);
    const text = `SIGCONT after ${slept} s: its write of ${holding.orderId}, which is still open, arrives now`;
    this.#say("woken", instance.name, holding.tick, text);
    this.#staleWrite = (await request.letThrough()) ? "landed" : "refused";
    this.#stage.app.thaw(instance.environmentId);
    await answer;
  }

  /** An instance that does not go on may have renewed its lease to the end, without reporting it. */
  #expectNoRelease(): void {
    this.#lockedUntil = Date.now() + this.#leaseMs + this.#stage.tempo.takeoverAllowanceMs;
  }

  #suffer(kind: Casualty["kind"], { name: instance }: Instance, holding: Holding): void {
    const { tick, fencingToken, closed, orderId, expiresAt } = holding;
    this.#casualties.push({ kind, tick, instance, fencingToken });
    // A frozen one still comes to report what it closed.
    if (kind === "killed") this.#closed += closed;
    const until = this.#stage.screen.time(expiresAt);
    const text =
      kind === "killed"
        ? `SIGKILL after ${closed} orders, with more to do; its lease stands until ${until}`
        : `SIGSTOP after ${closed} orders, its lease checked (until ${until}), its write of ${orderId} on the way`;
    this.#say(kind, instance, tick, text);
  }

  #deliver(tick: number, dueAt: number, repeated: boolean): Promise<Answer>[] {
    const event = { job: "close-unpaid-orders", scheduledTime: new Date(dueAt).toISOString() };
    return Array.from({ length: deliveriesAtOnce }, () => {
      const startedAt = performance.now();
      const { requestId, result } = this.#instances.deliver(event);
      this.#ticks.set(requestId, tick);
      const answer = result.then((outcome): Answer => {
        const tookMs = Math.round(performance.now() - startedAt);
        const instance = this.#instances.of(requestId)?.name ?? "?";
        const read = answerOf(outcome, tookMs, this.#holdings.get(requestId));
        const holder =
          "holder" in read && read.holder !== undefined ? this.#instances.nameOf(read.holder) : undefined;
        const answered = read.result === "skipped" ? { ...read, holder } : read;
        const delivery: Delivery = { tick, instance, repeated, answer: answered };
        this.#deliveries.push(delivery);
        this.#tell(delivery);
        return answered;
      });
      this.#answers.set(requestId, answer);
      return answer;
    });
  }

  /** An instance has answered a trigger. */
  #tell({ tick, instance, answer }: Delivery): void {
    const say = (kind: Kind, text: string): void => this.#say(kind, instance, tick, text);
    if ("closed" in answer) this.#closed += answer.closed;
    switch (answer.result) {
      case "ran":
        say(
          "ran",
          `closed ${answer.closed} orders in ${answer.tookMs} ms, fencing token ${answer.fencingToken}`,
        );
        break;
      case "skipped":
        say(
          "skipped",
          answer.holder === undefined || answer.expiresAt === undefined
            ? "the lock was let go at this very moment"
            : `held by ${answer.holder} until ${this.#stage.screen.time(answer.expiresAt)}`,
        );
        break;
      case "doneBefore":
        say("skipped", "the tick has had its run");
        break;
      case "lost": {
        const { fencedOff, reason, closed } = answer;
        const end =
          fencedOff === undefined ? "stopped by itself" : `its write of ${fencedOff} was fenced off`;
        say("lost", `${end} (lease ${reason}); its ${closed} orders from before stay closed`);
        break;
      }
      case "failed":
        say("failed", answer.problem);
        break;
      case "died":
        if (!this.#casualties.some((run) => run.tick === tick && run.instance === instance))
          say("failed", "its process ended, and nobody meant it to");
        break;
    }
  }

  #tellProgress(ticks: number, text: string): void {
    this.#stage.screen.progress(this.system, ticks, plan.length, `${text}; ${this.#closed} orders closed`);
  }

  #say(kind: Kind, who: string | undefined, tick: number, text: string): void {
    this.#stage.screen.event(this.system, kind, who, `${`tick ${tick}:`.padEnd(8)} ${text}`);
  }
}

/** Whether an event is about the job's lock, and not about another lease under its key. */
function isOfTheLock(event: LeaseEvent): boolean {
  return !("sortKey" in event) || event.sortKey === leaseSortKey;
}

/** What the closed orders held is on the shelf again. */
function stockChecks(before: Stock, after: Stock, returned: readonly Order[]): Check[] {
  return Object.entries(before).map(([product, available]) => {
    const back = returned.flatMap(({ lines }) => lines).filter((line) => line.product === product);
    const expected = back.reduce((sum, line) => sum + line.quantity, available);
    return check(`stock: ${product}`, expected, after[product] ?? "missing");
  });
}

/**
 * Reads what Lambda said about an invocation.
 *
 * @param holding what the run was about to do when it was last seen, if it lost its lease
 */
function answerOf(result: InvokeResult, tookMs: number, holding: Holding | undefined): Answer {
  const { payload } = result;
  const failure = failureIn(result);
  if (failure === undefined) return { ...(payload as TriggerOutcome), tookMs };
  if (failure === "died") return { result: "died" };
  const { errorType, errorMessage } = payload as {
    readonly errorType: string;
    readonly errorMessage: string;
  };
  if (errorType !== "LeaseLostError" || holding === undefined) {
    const problem = `${errorType}: ${errorMessage.split("\n")[0]}`;
    return { result: "failed", problem, timedOut: failure === "timedOut" };
  }
  const { reason } = errorFieldsIn(errorMessage) as Pick<Answer & { result: "lost" }, "reason">;
  const [, fencedOff] = /order (\S+) was fenced off/.exec(errorMessage) ?? [];
  const { fencingToken, closed } = holding;
  return { result: "lost", fencingToken, closed, reason, fencedOff, tookMs };
}

interface Transaction {
  readonly TransactItems: readonly {
    readonly Update?: {
      readonly ExpressionAttributeValues?: Record<
        string,
        { readonly S?: string; readonly N?: string } | undefined
      >;
    };
  }[];
}

/** Sees the closing that a run asks for after so many others. One that is sent again, after a conflict, counts once. */
function closingAfter(count: number): (request: GateRequest) => Closing | undefined {
  const sent = new Map<string, Set<string>>();
  return ({ operation, body }) => {
    if (operation !== "TransactWriteItems") return undefined;
    for (const { Update } of (body as Transaction).TransactItems) {
      const values = Update?.ExpressionAttributeValues;
      const [orderId, owner] = [values?.[":orderId"]?.S, values?.[":owner"]?.S];
      if (orderId === undefined || owner === undefined) continue;
      const orders = sent.get(owner) ?? new Set();
      const closed = orders.has(orderId) ? -1 : orders.size;
      sent.set(owner, orders.add(orderId));
      const fencingToken = Number(values?.[":fencingToken"]?.N);
      return closed === count ? { orderId, owner, fencingToken, closed } : undefined;
    }
    return undefined;
  };
}
