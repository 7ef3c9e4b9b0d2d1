import { spawn } from "node:child_process";
import { once } from "node:events";

/** Something that the plan needs did not come in its time. Nothing is wrong with what was seen until then. */
export class NotStaged extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NotStaged";
  }
}

/** How long a dead lease stands in the way after its end: the allowance for clocks, and the second of a Date header. */
const allowanceMs = 2_000;
/** An answer that is slow leaves its reader behind by as much. */
const slowAnswerMs = 200;

const lookEveryMs = 10;
/** Nothing that is waited for takes half of it where the plan is kept. */
const patienceMs = 45_000;
/** The whole plan takes a third of it. */
const longestPlanMs = 120_000;

/** How the plan's times are stretched on this machine. */
export class Tempo {
  /** 1 on a machine that is quick enough for the plan as it is written, more on a slower or busier one. */
  readonly stretch: number;

  constructor(stretch: number) {
    this.stretch = stretch;
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
    const deadline = performance.now() + this.ms(patienceMs);
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      if (performance.now() > deadline) {
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
    await pause(this.ms(longestPlanMs));
    throw new NotStaged(`the plan was not over after ${Math.round(this.ms(longestPlanMs) / 1000)} s`);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** As many processes as work side by side most of the time, and how many starts one after the other. */
const sideBySide = 2;
const startsInTurn = 4;

/** The work of a process of this probe: to start, and some arithmetic, as a function's first invocation has. */
const work = "let sum = 0; for (let i = 0; i < 2e7; i++) sum += i % 7;";

/** What the probe takes on the machine for which the plan is written: two processors with nothing else to do. */
const expectedMs = 400;

/** Up to here the plan has room as it is, and beyond it half of what the machine is slower is enough. */
const quickEnough = 1.5;
const share = 0.5;
/** A plan that is stretched further than this takes longer than anybody looks on. */
const mostStretch = 5;

/** Measures how long processes take to start and to work here, in about half a second where nothing else runs. */
export async function measureMachine(signal: AbortSignal): Promise<number> {
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: sideBySide }, async () => {
      for (let index = 0; index < startsInTurn; index++) {
        await once(spawn(process.execPath, ["-e", work], { stdio: "ignore", signal }), "close");
      }
    }),
  );
  return performance.now() - startedAt;
}

/** By how much the plan is stretched on a machine that took so long over the probe: halves are fine enough. */
export function stretchFor(measuredMs: number): number {
  const slowness = measuredMs / expectedMs;
  if (slowness <= quickEnough) return 1;
  return Math.min(mostStretch, Math.ceil((1 + share * (slowness - 1)) * 2) / 2);
}
