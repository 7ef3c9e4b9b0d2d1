import { InvalidOptionsError, type RetryStrategy } from "@leasehold/client";

/** The ways to wait that an event can ask for, by name, with delays that suit a computation of seconds. */
export const rhythms = {
  untilExpiry: { strategy: "untilExpiry" },
  fixed: { strategy: "fixed", delayMs: 200 },
  linear: { strategy: "linear", delayMs: 100, maxDelayMs: 2_000 },
  exponential: { strategy: "exponential", delayMs: 50, maxDelayMs: 2_000 },
  fullJitter: { strategy: "fullJitter", delayMs: 100, maxDelayMs: 2_000 },
  random: { strategy: "random", minDelayMs: 150, maxDelayMs: 250, maxRetries: 5 },
} as const satisfies Record<RetryStrategy["strategy"], RetryStrategy>;

/** Gives a way to wait: by its name, or as the event has it, which the client checks. Throws InvalidOptionsError. */
export function rhythmOf(name: unknown): RetryStrategy {
  if (typeof name === "object" && name !== null) return name as RetryStrategy;
  const known = Object.values(rhythms).find(({ strategy }) => strategy === name);
  if (known === undefined)
    throw new InvalidOptionsError(
      "event.retry",
      name,
      `${Object.keys(rhythms).join(", ")}, or an object with strategy`,
    );
  return known;
}
