import type { LeaseEvent } from "@leasehold/client";
import { readShop, type ShopState } from "../../../../functions/close-unpaid-orders/shop-table.ts";
import { NotStaged } from "../../endings.ts";
import type { Gate, HeldRequest } from "../../gate.ts";
import { type Instance, Instances, type InstancesListener } from "../../instances.ts";
import type { Stage } from "../../scenario.ts";
import type { Tempo } from "../../tempo.ts";
import { type Answer, answerOf, type Holding } from "./answers.ts";
import { type Closing, ClosingWatch } from "./closings.ts";
import { deliveriesAtOnce, holdAt, plan, plannedTickMs, type Step, scheduledAt } from "./plan.ts";
import {
  type Casualty,
  type Delivery,
  isOfTheLock,
  type RecordedEvent,
  type Recording,
} from "./recording.ts";
import { Reporter } from "./reporter.ts";

/** The function that runs as many instances at once. */
const functionId = "UnpaidOrders/Close";

/** A run whose write stands at the gate. */
interface Victim {
  readonly instance: Instance;
  readonly holding: Holding;
  readonly request: HeldRequest<Closing>;
  readonly answer: Promise<Answer>;
}

/** Plays the plan: fires the ticks, brings the mishaps about, and records what comes of it. */
export class Run implements InstancesListener, Recording {
  readonly deliveries: Delivery[] = [];
  readonly events: RecordedEvent[] = [];
  readonly casualties: Casualty[] = [];
  readonly instances: Instances;
  readonly #gate: Gate;
  readonly #tempo: Tempo;
  readonly #readShop: () => Promise<ShopState>;
  readonly #leaseMs: number;
  readonly #reporter: Reporter;
  readonly #ticks = new Map<string, number>();
  readonly #holdings = new Map<string, Holding>();
  readonly #answers = new Map<string, Promise<Answer>>();
  /** Until then, in epoch milliseconds, the lock may be held by the dead. */
  #lockedUntil = 0;
  #leaseEndsAt = 0;
  #frozen: (Victim & { readonly since: number }) | undefined;

  /** `leaseMs` is how long a lease lasts that is not renewed. */
  constructor({ app, gate, documents, screen, tempo }: Stage, leaseMs: number) {
    this.#readShop = () => readShop(documents, app.tableName("UnpaidOrders/Shop"));
    this.#gate = gate;
    this.#tempo = tempo;
    this.#leaseMs = leaseMs;
    this.instances = new Instances(app, { functionId, nameOf: letter }, this);
    this.#reporter = new Reporter(screen, this);
  }

  onStarted(instance: Instance): void {
    this.#reporter.started(instance);
  }

  onLeaseEvent(instance: Instance, requestId: string, event: LeaseEvent, at: number): void {
    const tick = this.#ticks.get(requestId) ?? 0;
    this.events.push({ tick, instance: instance.name, at, event });
    if (!isOfTheLock(event)) return;
    if (event.type === "acquired" || event.type === "renewed") {
      this.#leaseEndsAt = event.expiresAt;
      this.#lockedUntil = event.expiresAt + this.#tempo.takeoverAllowanceMs;
    }
    if (event.type === "released") this.#lockedUntil = 0;
    if (event.type === "takeover") this.#reporter.takeover(tick, at, event);
  }

  /** Fires every tick of the plan on time, or as soon as the tick before has released the lock. */
  async play(firstTickAt: number): Promise<void> {
    for (const [index, step] of plan.entries()) {
      const tick = index + 1;
      const dueAt = scheduledAt(firstTickAt, tick, this.#tempo.ms(plannedTickMs));
      await this.#tempo.untilTime(Math.max(dueAt, this.#lockedUntil));
      await this.#play(tick, dueAt, step);
    }
    this.#reporter.over();
  }

  async #play(tick: number, dueAt: number, { orders, mishap }: Step): Promise<void> {
    const hold = mishap && holdAt[mishap];
    const watch = hold === undefined ? undefined : new ClosingWatch(hold);
    const held = watch && this.#gate.hold((request) => watch.sees(request));
    this.#reporter.fired(tick, orders, mishap);
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
        this.#reporter.firedAgain(tick);
        answers.push(...this.#deliver(tick, dueAt, true));
        break;
      case "killed": {
        const { instance, holding, request } = await victim();
        const casualty = this.#suffer("killed", instance, holding);
        await this.instances.kill(instance);
        this.#expectNoRelease();
        request.lose();
        await this.#count(casualty);
        break;
      }
      case "frozen": {
        const frozen = await victim();
        this.instances.freeze(frozen.instance);
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
    const { orderId, owner, fencingToken, before: closed } = request.seen;
    for (const [requestId, answer] of this.#answers) {
      const instance = this.instances.of(requestId);
      if (instance === undefined || !owner.includes(requestId)) continue;
      const holding = { tick, orderId, closed, fencingToken, expiresAt: this.#leaseEndsAt };
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
    this.#reporter.woken(instance.name, holding, performance.now() - since);
    await request.letThrough();
    this.instances.thaw(instance);
    await answer;
  }

  /** An instance that does not go on may have renewed its lease to the end, without reporting it. */
  #expectNoRelease(): void {
    this.#lockedUntil = Date.now() + this.#leaseMs + this.#tempo.takeoverAllowanceMs;
  }

  #suffer(kind: Casualty["kind"], { name: instance }: Instance, holding: Holding): Casualty {
    const { tick, fencingToken, closed, orderId } = holding;
    const casualty: Casualty = { kind, tick, instance, fencingToken, closedAtGate: closed, closed, orderId };
    this.casualties.push(casualty);
    this.#reporter.casualty(kind, instance, holding);
    return casualty;
  }

  /** What was let through before the process was stopped may have landed after its write was: the table knows. */
  async #count(casualty: Casualty): Promise<void> {
    await this.#gate.settled();
    const { closed } = await this.#readShop();
    casualty.closed = closed.filter(({ fencingToken }) => fencingToken === casualty.fencingToken).length;
  }

  #deliver(tick: number, dueAt: number, repeated: boolean): Promise<Answer>[] {
    const event = { job: "close-unpaid-orders", scheduledTime: new Date(dueAt).toISOString() };
    return Array.from({ length: deliveriesAtOnce }, () => {
      const startedAt = performance.now();
      const { requestId, result } = this.instances.deliver(event);
      this.#ticks.set(requestId, tick);
      const answer = result.then((outcome): Answer => {
        const tookMs = Math.round(performance.now() - startedAt);
        const instance = this.instances.of(requestId)?.name ?? "?";
        const read = answerOf(outcome, tookMs, this.#holdings.get(requestId));
        const holder =
          "holder" in read && read.holder !== undefined ? this.instances.nameOf(read.holder) : undefined;
        const answered = read.result === "skipped" ? { ...read, holder } : read;
        const delivery: Delivery = { tick, instance, repeated, answer: answered };
        this.deliveries.push(delivery);
        this.#reporter.answer(delivery, answered);
        return answered;
      });
      this.#answers.set(requestId, answer);
      return answer;
    });
  }
}

/** A, B, C ... */
function letter(index: number): string {
  return String.fromCharCode("A".charCodeAt(0) + index);
}
