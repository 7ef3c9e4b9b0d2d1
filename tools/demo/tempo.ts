import { NotStaged } from "./endings.ts";

/** How long a dead lease stands in the way after its end: the allowance for clocks, and the second of a Date header. */
const allowanceMs = 2_000;
/** An answer that is slow leaves its reader behind by as much. */
const slowAnswerMs = 200;

const lookEveryMs = 10;
/** Nothing that is waited for takes half of it where the plan is kept. */
const patienceMs = 45_000;
/** The whole plan takes a third of it. */
const longestPlanMs = 120_000;

/** Looks how late timers come: a process that gets no time sees its own as late. */
const sampleMs = 100;

/** How the plan's times are stretched on this machine. */
export class Tempo implements Disposable {
  /** 1 on a machine that is quick enough for the plan as it is written, more on a slower or busier one. */
  readonly stretch: number;
  readonly #sampler: NodeJS.Timeout;
  #sampledAt = performance.now();
  #lateMs = 0;

  constructor(stretch: number) {
    this.stretch = stretch;
    this.#sampler = setInterval(() => this.#sample(), sampleMs);
    this.#sampler.unref();
  }

  /** A time of the plan, as it is on this machine. Milliseconds. */
  ms(planned: number): number {
    return Math.round(planned * this.stretch);
  }

  /** How long after its end a dead lease can be taken over at the first call, by the service's clock. Milliseconds. */
  get takeoverAllowanceMs(): number {
    return allowanceMs + this.ms(slowAnswerMs);
  }

  /** Waits for a time of the plan. */
  async delay(planned: number): Promise<void> {
    await pause(this.ms(planned));
  }

  /** Waits until a time in epoch milliseconds, if it is not over. */
  async untilTime(at: number): Promise<void> {
    const left = at - Date.now();
    if (left > 0) await pause(left);
  }

  /** Waits until there is something, and gives it. Rejects with NotStaged, saying what was waited for, if it takes too long. */
  async until<T>(what: string, look: () => T | undefined | Promise<T | undefined>): Promise<T> {
    const deadline = this.#worked() + this.ms(patienceMs);
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      if (this.#worked() > deadline) {
        throw new NotStaged(`waited ${Math.round(this.ms(patienceMs) / 1000)} s in vain for ${what}`);
      }
      await pause(lookEveryMs);
    }
  }

  /** Waits for what a promise gives. Rejects with NotStaged, saying what was waited for, if it takes too long. */
  async within<T>(what: string, promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = promise.finally(() => {
      isSettled = true;
    });
    const limit = this.until(what, () => isSettled || undefined);
    return Promise.race([settled, limit.then(() => settled)]);
  }

  /** Rejects with NotStaged when the whole plan has taken far too long, counted from this call. Never resolves. */
  async tooLong(): Promise<never> {
    const deadline = this.#worked() + this.ms(longestPlanMs);
    while (this.#worked() < deadline) await pause(sampleMs);
    throw new NotStaged(`the plan was not over after ${Math.round(this.ms(longestPlanMs) / 1000)} s`);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#sampler);
  }

  /** Milliseconds in which this process had the machine: those in which it stood still do not count. */
  #worked(): number {
    const now = performance.now();
    return now - this.#lateMs - this.#lateAt(now);
  }

  #sample(): void {
    const now = performance.now();
    this.#lateMs += this.#lateAt(now);
    this.#sampledAt = now;
  }

  #lateAt(now: number): number {
    return Math.max(0, now - this.#sampledAt - sampleMs);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
