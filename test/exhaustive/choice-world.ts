import type { Host } from "../worlds/host.ts";
import { longestDelayMs, type Network, type Surroundings } from "../worlds/network.ts";
import { Random } from "../worlds/random.ts";
import type { Change } from "../worlds/table.ts";
import { epoch, settling, World, type WorldClock } from "../worlds/world.ts";
import { ChoiceNetwork } from "./choice-network.ts";
import { digest } from "./digest.ts";

/** Something that a host or the world has waited for until now. */
export interface Timer {
  readonly at: number;
  readonly host: Host | undefined;
  readonly run: () => void;
}

/** Time that passes only when it is told to, from one timer to the next. */
class StepClock implements WorldClock {
  readonly timers: Timer[] = [];
  readonly #settle: () => Promise<void>;
  #now = 0;

  constructor(settle: () => Promise<void>) {
    this.#settle = settle;
  }

  now(): number {
    return Math.floor(epoch + this.#now);
  }

  monotonic(): number {
    return this.#now;
  }

  schedule(run: () => void, delayMs: number): () => void {
    return this.scheduleFor(undefined, run, delayMs);
  }

  scheduleFor(host: Host | undefined, run: () => void, delayMs: number): () => void {
    const timer = { at: this.#now + Math.max(0, delayMs), host, run };
    this.timers.push(timer);
    return () => this.remove(timer);
  }

  remove(timer: Timer): void {
    const index = this.timers.indexOf(timer);
    if (index >= 0) this.timers.splice(index, 1);
  }

  fire(timer: Timer): void {
    this.remove(timer);
    timer.run();
  }

  /** The timer that is due first. */
  get next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.timers) if (first === undefined || timer.at < first.at) first = timer;
    return first;
  }

  passTo(at: number): void {
    this.#now = Math.max(this.#now, at);
  }

  freeze(ms: number): void {
    this.#now += ms;
  }

  /** Lets everything come that comes by itself: for the end of a story, where nothing is chosen any more. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (;;) {
      await this.#settle();
      const { next } = this;
      if (next === undefined || next.at > until) break;
      this.passTo(next.at);
      this.fire(next);
    }
    this.passTo(until);
    await this.#settle();
  }
}

/** A request or an answer, as it is sent. */
export interface Sent {
  readonly what: string;
  readonly host: Host;
  readonly kind: "request" | "transaction" | "read" | "answer" | "copy";
  /** Arrives, with this to happen to it. */
  arrive(fate: Fate): void;
}

/** A request or an answer that is under way. */
export interface Message extends Sent {
  /** It need not arrive before time passes. */
  readonly isLate: boolean;
  /** When it must have arrived. */
  readonly until: number;
}

/** What can become of a request that is not late itself. */
export type Fate =
  | "answered"
  | "answer lost"
  | "answer late"
  | "sent twice"
  | "conflict"
  | "read lags"
  | "Date replaced"
  | "throttled";

/** Takes the same decisions again and again, where chance is not what is explored. */
class Constant extends Random {
  readonly #fraction: number;

  constructor(fraction: number) {
    super(0);
    this.#fraction = fraction;
  }

  override fraction(): number {
    return this.#fraction;
  }
}

/**
 * A world in which nothing happens by chance: what is under way waits until it is chosen.
 *
 * It keeps what each host has experienced and what was written. Hosts are functions of their experience and of the time,
 * and what must hold is a function of both and of the writes: worlds that agree in all of that have the same future.
 */
export class ChoiceWorld extends World {
  readonly messages: Message[] = [];
  readonly hosts: Host[] = [];
  readonly steps: StepClock;
  /** The hosts to which something has happened since this was emptied. */
  readonly moved = new Set<Host>();
  override readonly isRandom = false;
  /** Items that ttl may remove, and from when. */
  readonly removable = new Map<string, number>();
  /** Nothing goes astray any more, and everything comes by itself. */
  #isCalm = false;
  readonly #settled = settling();
  readonly #experiences = new Map<Host, string>();
  /** What became of each item: what must hold never goes by the order of writes to different items. */
  readonly #writes = new Map<string, string>();

  /** With `isTold`, all that happens is told: for a story that is read. */
  constructor(fraction: number, isTold: boolean) {
    const clock = new StepClock(() => this.#settle());
    super(0, { isTold, random: new Constant(fraction), clock });
    this.steps = clock;
  }

  override after(delayMs: number, run: () => void, host?: Host): () => void {
    return this.steps.scheduleFor(host, run, delayMs);
  }

  override connect(host: Host, around: Surroundings): Network {
    this.hosts.push(host);
    this.#experiences.set(host, "");
    return new ChoiceNetwork(host, around, this);
  }

  override experienced(host: Host, what: string): void {
    this.moved.add(host);
    this.befell(host, what);
    this.tell(host.name, what);
  }

  /** Something befalls a host that is no event of its own: what it does from now on follows from this too. */
  befell(host: Host, what: string): void {
    this.#experiences.set(host, digest(`${this.#experiences.get(host)} ${this.now} ${what}`));
  }

  override written(changes: readonly Change[]): void {
    const what = `${this.now} ${JSON.stringify(changes)}`;
    for (const { key, after } of changes) {
      const id = JSON.stringify([key.pk, key.sk]);
      this.#writes.set(id, digest(`${this.#writes.get(id)} ${what}`));
      if (after === undefined) this.removable.delete(id);
      else this.removable.set(id, Number(after.ttl) * 1_000 - epoch);
    }
  }

  /** All that the future depends on, but for what the script has left. */
  fingerprint(): string {
    // What the dead have experienced says what they have under way, and what was seen of them.
    const hosts = this.hosts.map((host) => {
      const state = host.isDead ? "x" : host.isRunning ? "" : `-${[...host.backlog].sort()}`;
      return `${this.#experiences.get(host)}${state}`;
    });
    const messages = this.messages.map(({ what, isLate }) => (isLate ? `${what}~` : what)).sort();
    const writes = [...this.#writes].map((one) => one.join()).sort();
    return `${this.now}|${writes.join()}|${hosts.join()}|${messages.join()}`;
  }

  /** What has become of time in the world: ttl has removed something. */
  collected(): void {
    this.#writes.set("ttl", `${this.#writes.get("ttl") ?? ""} ${this.now}`);
    for (const [id, at] of this.removable) if (at < this.now) this.removable.delete(id);
  }

  send(sent: Sent): void {
    this.messages.push({ ...sent, isLate: false, until: this.now });
  }

  /** It arrives at any later moment, and within the time that requests take at most. */
  sendLate(sent: Sent): void {
    this.messages.push({ ...sent, isLate: true, until: this.now + longestDelayMs });
  }

  arrive(message: Message, fate: Fate): void {
    this.lose(message);
    message.arrive(fate);
  }

  lose(message: Message): void {
    const index = this.messages.indexOf(message);
    if (index >= 0) this.messages.splice(index, 1);
  }

  async calmDown(): Promise<void> {
    this.#isCalm = true;
    for (const host of this.hosts) host.wake();
    await this.#settle();
  }

  async #settle(): Promise<void> {
    for (;;) {
      await this.#settled();
      this.look();
      const [message] = this.messages;
      if (!this.#isCalm || message === undefined) return;
      this.arrive(message, "answered");
    }
  }
}
