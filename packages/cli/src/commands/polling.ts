// Polling until the user, the caller or a closed pipe ends it. A service that fails for a while does not end it.

import type { Clock } from "@leasehold/client";
import { mayPass, settles, sleep } from "@leasehold/client/internal";
import { duration, type Flags, usually, whole } from "../flags.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { shown } from "../terminal/text.ts";

/** How often a table is looked at, and the allowed cost of that. `what` comes before the default in the help. */
export function paceFlags(what: string) {
  const help = "read units a second at most (default 5): a larger table is looked at less often";
  return {
    every: usually(duration(`${what} (default 2s)`), 2_000),
    "max-rcu": usually(whole(help, { least: 1 }), 5),
  } satisfies Flags;
}

export interface Polling<Seen = unknown> {
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The pause after a look, or a function that returns it for what was seen. */
  readonly everyMs: number | ((seen: Seen) => number);
  /** The total time; the last look comes at its end. @default - for ever */
  readonly forMs?: number | undefined;
}

/** How long the last look may take. */
const lastLookMs = 1_000;
/** The pause until a look has told one. */
const usualPauseMs = 2_000;

/**
 * Yields what each look has seen. Ends when the time is over or the reader has closed the pipe; rejects when the signal
 * aborts.
 */
export async function* looks<Seen>(
  look: () => Promise<Seen>,
  { terminal, clock, signal, everyMs, forMs = Number.POSITIVE_INFINITY }: Polling<Seen>,
): AsyncGenerator<Seen, void, undefined> {
  const end = clock.monotonic() + forMs;
  const leftMs = (): number => end - clock.monotonic();
  let failure = "";
  let pauseMs = typeof everyMs === "number" ? everyMs : usualPauseMs;
  while (!terminal.isClosed) {
    try {
      const looking = look();
      // A hanging service prolongs neither the wait nor its interruption.
      if (!(await settles(clock, looking, Math.max(leftMs(), lastLookMs), signal))) return;
      const seen = await looking;
      if (typeof everyMs === "function") pauseMs = everyMs(seen);
      yield seen;
      failure = "";
    } catch (error) {
      // An error that may pass is reported once, and not at every look.
      if (!mayPass(error)) throw error;
      const { message } = error;
      if (message !== failure) terminal.complain(`leasehold: ${shown(message)}; trying again`);
      failure = message;
    }
    if (leftMs() <= 0) return;
    await sleep(clock, Math.min(pauseMs, leftMs()), signal);
  }
}

/** Looks until something is so, or until the time is over: what was seen last, if anything was, and whether it is so. */
export async function lookUntil<Seen>(
  look: () => Promise<Seen>,
  isSo: (seen: Seen) => boolean,
  polling: Polling<Seen>,
): Promise<{ readonly seen: Seen | undefined; readonly isSo: boolean }> {
  let last: Seen | undefined;
  for await (const seen of looks(look, polling)) {
    last = seen;
    if (isSo(seen)) return { seen, isSo: true };
  }
  return { seen: last, isSo: false };
}
