import { setTimeout as delay } from "node:timers/promises";
import type { Fleet } from "./fleet.ts";
import type { InstanceListener, InstanceProcess } from "./instance-process.ts";
import type { Answer, Holding, LeaseEventMessage } from "./messages.ts";
import { holdAt, plan, type Step, scheduledAt, times } from "./plan.ts";
import type { Casualty, Delivery, RecordedEvent, Recording } from "./recording.ts";
import { Reporter } from "./reporter.ts";
import type { Screen } from "./screen.ts";

/** A run that stands still between the check of its lease and a write. */
interface Held {
  readonly instance: InstanceProcess;
  readonly holding: Holding;
}

/** The allowance for the clocks has to be exceeded, not just reached, and timers fire a little early. */
const marginMs = 20;

/** Plays the plan on a fleet: fires the ticks, brings the mishaps about, and records what comes of it. */
export class Run implements InstanceListener, Recording {
  readonly deliveries: Delivery[] = [];
  readonly events: RecordedEvent[] = [];
  readonly casualties: Casualty[] = [];
  readonly #reporter: Reporter;
  /** Until then, in epoch milliseconds, the lock may be closed or held by the dead. */
  #lockedUntil = 0;
  #held = Promise.withResolvers<Held>();
  #frozen: (Held & { readonly since: number; readonly answer: Promise<Answer> }) | undefined;

  constructor(screen: Screen) {
    this.#reporter = new Reporter(screen, this);
  }

  onLeaseEvent(instance: InstanceProcess, { tick, at, event }: LeaseEventMessage): void {
    this.events.push({ tick, instance: instance.name, at, event });
    if (event.type === "acquired") {
      this.#lockedUntil = at + times.leaseDurationMs + times.clockSkewMs + marginMs;
    }
    if (event.type === "takeover") this.#reporter.takeover(tick, at, event);
  }

  onHolding(instance: InstanceProcess, holding: Holding): void {
    this.#held.resolve({ instance, holding });
  }

  /** Fires every tick of the plan on time, or as soon after as the one before has let go of the lock. */
  async play(fleet: Fleet, firstTickAt: number): Promise<void> {
    for (const [index, step] of plan.entries()) {
      const tick = index + 1;
      const dueAt = scheduledAt(firstTickAt, tick);
      await delay(Math.max(dueAt, this.#lockedUntil) - Date.now());
      await this.#play(fleet, tick, dueAt, step);
    }
  }

  async #play(fleet: Fleet, tick: number, dueAt: number, { orders, mishap }: Step): Promise<void> {
    // Whoever is asked first usually wins: everybody is to have a turn.
    const { idle } = fleet;
    const turn = tick % idle.length;
    const instances = [...idle.slice(turn), ...idle.slice(0, turn)];
    this.#held = Promise.withResolvers();
    this.#reporter.fired(tick, orders, instances, mishap);
    const hold = mishap && holdAt[mishap];
    const answers = new Map(
      instances.map((instance) => [instance, this.#deliver(instance, tick, dueAt, hold)]),
    );
    const held = async (): Promise<Held> => {
      const nobody = Promise.all(answers.values()).then(() => {
        throw new Error(`nobody came to stand still in tick ${tick}, where a run was to be ${mishap}`);
      });
      return await Promise.race([this.#held.promise, nobody]);
    };

    switch (mishap) {
      case "deliveredTwice":
        await Promise.all(answers.values());
        this.#reporter.firedAgain(tick, instances);
        for (const instance of instances) {
          answers.set(instance, this.#deliver(instance, tick, dueAt, undefined, true));
        }
        break;
      case "killed": {
        const victim = await held();
        this.#suffer("killed", victim);
        await victim.instance.kill();
        this.#reporter.started(tick, await fleet.replace(), victim.instance);
        break;
      }
      case "frozen": {
        const victim = await held();
        victim.instance.freeze();
        this.#suffer("frozen", victim);
        const answer = answers.get(victim.instance) as Promise<Answer>;
        this.#frozen = { ...victim, since: performance.now(), answer };
        answers.delete(victim.instance);
        break;
      }
      case "woken": {
        const successor = await held();
        await this.#wake();
        successor.instance.goOn();
        break;
      }
    }
    await Promise.all(answers.values());
  }

  /** The write that the frozen run stood before is now its next step: the order is still open, and its lease gone. */
  async #wake(): Promise<void> {
    if (this.#frozen === undefined) throw new Error("nobody is frozen");
    const { instance, holding, since, answer } = this.#frozen;
    this.#frozen = undefined;
    this.#reporter.woken(instance.name, holding, performance.now() - since);
    instance.goOn();
    instance.thaw();
    await answer;
  }

  #suffer(kind: Casualty["kind"], { instance, holding }: Held): void {
    const { tick, fencingToken, closed, orderId } = holding;
    this.casualties.push({ kind, tick, instance: instance.name, fencingToken, closed, orderId });
    this.#reporter.casualty(kind, instance.name, holding);
  }

  async #deliver(
    instance: InstanceProcess,
    tick: number,
    dueAt: number,
    hold: number | undefined,
    repeated = false,
  ): Promise<Answer> {
    const delivery: Delivery = { tick, instance: instance.name, repeated, answer: undefined };
    this.deliveries.push(delivery);
    const answer = await instance.deliver({ tick, scheduledAt: dueAt, holdAt: hold });
    delivery.answer = answer;
    this.#reporter.answer(delivery, answer);
    return answer;
  }
}
