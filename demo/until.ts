import { setTimeout as delay } from "node:timers/promises";

/** What the client's own allowance for the clocks comes to, and some: a takeover has to exceed it. */
export const takeoverAllowanceMs = 1_050;

const lookEveryMs = 10;
/** Nothing that is waited for takes half of it, on a machine that is busy otherwise. */
const patienceMs = 45_000;

/** Waits until there is something, and gives it. Rejects, saying what was waited for, when it takes too long. */
export async function until<T>(what: string, look: () => T | undefined): Promise<T> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await delay(lookEveryMs);
  }
}

/** Waits until a time in epoch milliseconds, if it is not over. */
export async function untilTime(at: number): Promise<void> {
  const left = at - Date.now();
  if (left > 0) await delay(left);
}
