import type { Host } from "../worlds/host.ts";
import type { Scene } from "../worlds/simulation.ts";
import { Violation } from "../worlds/world.ts";
import { ChoiceWorld, type Fate, type Message } from "./choice-world.ts";
import { LaneRun } from "./lane-run.ts";
import type { AnyScenario, FaultKind } from "./scenario.ts";

/** What may happen next. */
export interface Choice {
  readonly what: string;
  /** How many faults it takes. */
  readonly faults: 0 | 1;
  /** Whether it concerns one host alone: the moment stays as new as it was. @default false */
  readonly isLocal?: boolean;
  take(): void | Promise<void>;
}

/** A clock that is set is wrong by so much afterwards: more than a lease. */
const clockStepMs = 20_000;
/** What has not settled by then never will. */
const longestMs = 600_000;
/** What is frozen when all else is over wakes within this time, or never. */
const longestFreezeMs = 30_000;

/** One course of a scenario: what may happen next, and what does. */
export class Course {
  readonly world: ChoiceWorld;
  readonly #scenario: AnyScenario;
  readonly #scene: Scene<unknown>;
  readonly #lanes: readonly LaneRun[];
  readonly #kinds: ReadonlySet<FaultKind>;
  /** Nothing has happened since time has passed, but inside single hosts. */
  #isNewTime = false;
  #hasEnded = false;
  /** The hosts that a fault has stopped. One that a step freezes wakes by itself. */
  readonly #stopped = new Set<Host>();

  constructor(scenario: AnyScenario, isTold = false) {
    this.#scenario = scenario;
    this.#kinds = new Set(scenario.kinds);
    this.world = new ChoiceWorld(scenario.fraction ?? 0.5, isTold);
    this.#scene = scenario.make(this.world);
    this.#lanes = scenario.lanes.map((lane) => new LaneRun(lane, this.world, this.#scene));
  }

  /** What may happen next, the ordinary first; nothing, when the course is over. */
  choices(left: number): readonly Choice[] {
    if (this.#hasEnded || this.world.violation !== undefined) return [];
    const faultsLeft = this.world.now < (this.#scenario.openingMs ?? 0) ? 0 : left;
    const local = this.#localEvent();
    // What happens inside one host alone goes first: no order between it and anything else makes a difference.
    if (local !== undefined) return faultsLeft > 0 ? [local, ...this.#hostFaults()] : [local];
    const due = this.#due();
    const late = this.world.messages.filter(({ isLate }) => isLate).map((message) => this.#arrival(message));
    const isOver = due.length === 0 && this.#isOver;
    // What is frozen may wake later, or never.
    const passing = due.length === 0 && !(isOver && this.#frozen.length === 0) ? this.#passing(isOver) : [];
    const end = isOver ? [this.#end()] : [];
    const faults = faultsLeft > 0 ? [...this.#messageFaults(), ...this.#hostFaults(), ...this.#ttl()] : [];
    return [...due, ...passing, ...end, ...late, ...this.#wakings(), ...faults];
  }

  /** Takes a choice, and lets everything settle that follows from it by itself. */
  async take(choice: Choice): Promise<void> {
    this.world.tell("choice", choice.what);
    // What is frozen may wake at the time of a local event too.
    this.#isNewTime &&= choice.isLocal === true;
    this.world.moved.clear();
    await choice.take();
    await this.world.clock.advance(0);
  }

  /** All that the future depends on, but for the faults that are left. */
  fingerprint(faultsLeft: number): string {
    const moved = faultsLeft > 0 ? [...this.world.moved].map(({ name }) => name) : [];
    const lanes = this.#lanes.map(({ state }) => state);
    const remembered = this.#scene.state ?? "";
    return `${this.world.fingerprint()}|${lanes}|${remembered}|${this.#isNewTime}|${moved}`;
  }

  /** The steps of lanes and the timers that are due, each with its host. */
  #dueEvents(): readonly { readonly host: Host | undefined; readonly choice: Choice }[] {
    const { steps, now } = this.world;
    const lanes = this.#lanes.filter(({ isDue }) => isDue);
    const timers = steps.timers.filter(({ at }) => at <= now);
    const event = (host: Host | undefined, what: string, take: Choice["take"]) => ({
      host,
      choice: { what, faults: 0, take } as const,
    });
    return [
      ...lanes.map((lane) => event(lane.host, `${lane.host?.name}: ${lane.what}`, () => lane.take())),
      ...timers.map((timer) =>
        event(timer.host, `a timer of ${timer.host?.name ?? "the world"} fires`, () => steps.fire(timer)),
      ),
    ];
  }

  /** The next of them, where nothing else that is to happen to its host could come before it. */
  #localEvent(): Choice | undefined {
    const events = this.#dueEvents();
    const local = events.find(
      ({ host }, index) =>
        this.world.messages.every((message) => message.host !== host) &&
        events.every((other, place) => place === index || other.host !== host),
    );
    return local && { ...local.choice, isLocal: true };
  }

  /** What happens before time passes. */
  #due(): Choice[] {
    const messages = this.world.messages
      .filter(({ isLate, until }) => !isLate || until <= this.world.now)
      .map((message) => this.#arrival(message));
    return [...this.#dueEvents().map(({ choice }) => choice), ...messages];
  }

  #arrival(message: Message): Choice {
    const take = (): void => this.world.arrive(message, "answered");
    return { what: `${message.what} arrives`, faults: 0, take };
  }

  /** All steps are taken, and all calls have settled, but those of frozen hosts. */
  get #isOver(): boolean {
    return (
      this.#lanes.every(({ isOver }) => isOver) &&
      [...this.#scene.world.calls.values()].every((host) => !host.isRunning)
    );
  }

  get #frozen(): Host[] {
    return [...this.#stopped].filter((host) => !host.isDead && !host.isRunning);
  }

  /** Time passes, to the next moment at which something comes by itself. */
  #passing(isOver: boolean): Choice[] {
    const { world } = this;
    const times = [...world.messages.map(({ until }) => until), ...this.#lanes.flatMap(({ at }) => at ?? [])];
    const { next } = world.steps;
    if (next !== undefined) times.push(next.at);
    const at = Math.min(...times);
    if (isOver && at > longestFreezeMs) return [];
    if (times.length === 0 || world.now > longestMs) {
      world.fault(times.length === 0 ? "it is stuck: nothing is under way any more" : "it never ends");
      return [];
    }
    const take = (): void => {
      world.steps.passTo(at);
      this.#isNewTime = true;
    };
    return [{ what: `time passes to ${Math.round(at)} ms`, faults: 0, take }];
  }

  #end(): Choice {
    const take = async (): Promise<void> => {
      this.#hasEnded = true;
      await this.world.calmDown();
      if (this.world.violation === undefined) await this.#scene.end();
      this.world.check();
    };
    return { what: "the end", faults: 0, take: () => take().catch(unlessViolation) };
  }

  /** A host that is frozen may wake whenever time has passed. */
  #wakings(): Choice[] {
    if (!this.#isNewTime) return [];
    return this.#frozen.map((host) => {
      const take = (): void => {
        this.world.befell(host, `woken with ${host.backlog}`);
        host.wake();
      };
      return { what: `${host.name} wakes`, faults: 0, take };
    });
  }

  /** What befalls a host, right after something has happened to it: later, it would make no difference. */
  #hostFaults(): Choice[] {
    return [...this.world.moved].flatMap((host) => {
      if (!host.isRunning) return [];
      const { name } = host;
      const index = this.#scene.world.processes.findIndex(({ process }) => process === host);
      const fault = (kind: FaultKind, befall: () => void): Choice[] =>
        this.#fault(kind, name, () => {
          this.world.befell(host, kind);
          befall();
        });
      const stop = (withClock: boolean) => (): void => {
        this.#stopped.add(host);
        host.stop(withClock);
      };
      return [
        ...fault("killed", () => this.#scene.world.kill(index)),
        ...fault("frozen", stop(false)),
        ...(this.#isSuspendable(host) ? fault("suspended", stop(true)) : []),
        ...fault("clock ahead", () => host.setWallOffset(clockStepMs)),
        ...fault("clock back", () => host.setWallOffset(-clockStepMs)),
        ...fault("no Dates", () => host.loseDates()),
      ];
    });
  }

  /** A clock that is set, on a machine that is suspended and cannot tell its uptime, is beyond what is promised. */
  #isSuspendable({ uptime }: Host): boolean {
    return uptime !== undefined || !(this.#kinds.has("clock ahead") || this.#kinds.has("clock back"));
  }

  #ttl(): Choice[] {
    const { removable, now } = this.world;
    if (!this.#isNewTime || ![...removable.values()].some((at) => at < now)) return [];
    return this.#fault("ttl", "removes what is due", () => {
      this.#scene.world.table.collectGarbage();
      this.world.collected();
    });
  }

  #messageFaults(): Choice[] {
    const { world } = this;
    return world.messages.flatMap((message) => {
      const { what, kind, isLate } = message;
      if (isLate) return [];
      const fated = (fate: Fate & FaultKind): Choice[] =>
        this.#fault(fate, what, () => world.arrive(message, fate));
      const late = (): void => {
        world.lose(message);
        world.sendLate(message);
      };
      return [
        ...this.#fault("request lost", what, () => world.lose(message)),
        ...this.#fault("request late", what, late),
        ...(kind === "read"
          ? fated("read lags")
          : [...fated("answer lost"), ...fated("answer late"), ...fated("sent twice")]),
        ...fated("Date replaced"),
        ...(kind === "transaction" ? fated("conflict") : []),
        ...(kind === "answer" || kind === "copy" ? [] : fated("throttled")),
      ];
    });
  }

  #fault(kind: FaultKind, what: string, take: () => void): Choice[] {
    return this.#kinds.has(kind) ? [{ what: `${kind}: ${what}`, faults: 1, take }] : [];
  }
}

function unlessViolation(error: unknown): void {
  if (!(error instanceof Violation)) throw error;
}
