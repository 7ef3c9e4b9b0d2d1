import { vi } from "vitest";

/**
 * How long a test waits for what has to come: never on an idle machine, so only a busy one or a mistake takes it.
 *
 * One bound for all: it says nothing about how fast anything is.
 */
export const patienceMs = 120_000;

/** Waits until a check passes, looking every few milliseconds; rejects with its last error when patience is over. */
export function eventually<T>(check: () => T | Promise<T>, intervalMs = 10): Promise<T> {
  return vi.waitFor(check, { timeout: patienceMs, interval: intervalMs });
}
