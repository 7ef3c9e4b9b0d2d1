import { InvalidOptionsError, type RetryStrategy } from "@leasehold/client";

/** The ways to wait that an event can ask for, by name, with delays that suit a computation of seconds. */
export const rhythms = {
  untilExpiry: { strategy: "untilExpiry" },
  fixed: { strategy: "fixed", delayMs: 200 },
  linear: { strategy: "linear", delayMs: 100, maxDelayMs: 2_000 },
  exponential: { strategy: "exponential", delayMs: 50, maxDelayMs: 2_000 },
  fullJitter: { strategy: "fullJitter", delayMs: 100, maxDelayMs: 2_000 },
} as const satisfies Record<RetryStrategy["strategy"], RetryStrategy>;

/** Gives a way to wait by its name. Throws InvalidOptionsError. */
export function rhythmOf(name: unknown): RetryStrategy {
  const known = Object.values(rhythms).find(({ strategy }) => strategy === name);
  if (known === undefined)
    throw new InvalidOptionsError("event.retry", name, Object.keys(rhythms).join(", "));
  return known;
}
