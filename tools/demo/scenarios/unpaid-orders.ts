import { environmentNames } from "@leasehold/client/environment";
import type { InvokeResult } from "@leasehold/local";
import type { TriggerOutcome } from "../../../functions/close-unpaid-orders/handler.ts";
import { closeUnpaidOrdersKey } from "../../../functions/close-unpaid-orders/job.ts";
import { readShop, seedShop } from "../../../functions/close-unpaid-orders/shop-table.ts";
import { errorFieldsIn } from "../../../functions/support/answers.ts";
import type { GateRequest, HeldRequest } from "../gate.ts";
import { failureIn, type Instance, Instances } from "../instances.ts";
import type { Outcome, Scenario } from "../scenario.ts";
import type { Kind } from "../screen.ts";
import type { Stage } from "../stage.ts";
import { NotStaged } from "../tempo.ts";
import {
  type Answer,
  type Casualty,
  type Delivery,
  isOfTheLock,
  judgeOrders,
  type Mishap,
  type RecordedEvent,
  type Step,
} from "./unpaid-orders-audit.ts";
import {
  deliveriesAtOnce,
  holdAt,
  plan,
  plannedTickMs,
  scheduledAt,
  shopAtStart,
} from "./unpaid-orders-plan.ts";

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
  readonly #events: RecordedEvent[] = [];
  readonly #casualties: Casualty[] = [];
  readonly #ticks = new Map<string, number>();
  readonly #holdings = new Map<string, Holding>();
  readonly #answers = new Map<string, Promise<Answer>>();
  /** Until then, in epoch milliseconds, the lock may be held by the dead. */
  #lockedUntil = 0;
  #leaseEndsAt = 0;
  #closed = 0;
  #frozen: (Victim & { readonly since: number }) | undefined;

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
      onLeaseEvent: (entry, requestId) => this.#hear({ tick: this.#ticks.get(requestId) ?? 0, ...entry }),
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

    const { closed, ...rest } = await readShop(documents, this.#shopTable);
    const named = closed.map((order) => ({ ...order, closedBy: this.#instances.nameOf(order.closedBy) }));
    return judgeOrders({
      deliveries: this.#deliveries,
      events: this.#events,
      casualties: this.#casualties,
      plan,
      grants: await this.#instances.grants(),
      lastScheduledAt: scheduledAt(firstTickAt, plan.length, this.#tickMs),
      before,
      after: { ...rest, closed: named },
    });
  }

  #hear(event: RecordedEvent): void {
    this.#events.push(event);
    if (!isOfTheLock(event.event)) return;
    const { tick, at, event: told } = event;
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
        const casualty = this.#suffer("killed", instance, holding);
        await this.#instances.kill(instance);
        this.#expectNoRelease();
        request.lose();
        await this.#count(casualty);
        break;
      }
      case "frozen": {
        const frozen = await victim();
        this.#instances.freeze(frozen.instance);
        this.#expectNoRelease();
        await this.#count(this.#suffer("frozen", frozen.instance, frozen.holding));
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
    await request.letThrough();
    this.#instances.thaw(instance);
    await answer;
  }

  /** An instance that does not go on may have renewed its lease to the end, without reporting it. */
  #expectNoRelease(): void {
    this.#lockedUntil = Date.now() + this.#leaseMs + this.#stage.tempo.takeoverAllowanceMs;
  }

  #suffer(kind: Casualty["kind"], { name: instance }: Instance, holding: Holding): Casualty {
    const { tick, fencingToken, closed, orderId, expiresAt } = holding;
    const casualty: Casualty = { kind, tick, instance, fencingToken, closedAtGate: closed, closed, orderId };
    this.#casualties.push(casualty);
    // A frozen one still comes to report what it closed.
    if (kind === "killed") this.#closed += closed;
    const until = this.#stage.screen.time(expiresAt);
    const text =
      kind === "killed"
        ? `SIGKILL after ${closed} orders, with more to do; its lease stands until ${until}`
        : `SIGSTOP after ${closed} orders, its lease checked (until ${until}), its write of ${orderId} on the way`;
    this.#say(kind, instance, tick, text);
    return casualty;
  }

  /** What was let through before the process was stopped may have landed after its write was: the table knows. */
  async #count(casualty: Casualty): Promise<void> {
    const { gate, documents } = this.#stage;
    await gate.settled();
    const { closed } = await readShop(documents, this.#shopTable);
    casualty.closed = closed.filter(({ fencingToken }) => fencingToken === casualty.fencingToken).length;
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
