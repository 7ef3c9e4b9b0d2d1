// Looking again and again, until the caller, the user or a closed pipe ends it. A service that fails for a while does not.

import type { Clock } from "@leasehold/client";
import { sleep } from "@leasehold/client/internal";
import { exitCodeOf, exitCodes } from "../../exit-codes.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { shown } from "../../terminal/text.ts";

/** How often a table is looked at. */
export const usualPollMs = 2_000;

/** How to look again and again. */
export interface Polling {
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly everyMs: number;
  /** For how long; the last look comes at its end. @default - for ever */
  readonly forMs?: number | undefined;
}

/** Gives what each look has seen. Ends when the time is over or the reader has closed the pipe; rejects when the signal aborts. */
export async function* looks<Seen>(
  look: () => Promise<Seen>,
  { terminal, clock, signal, everyMs, forMs = Number.POSITIVE_INFINITY }: Polling,
): AsyncGenerator<Seen, void, undefined> {
  const began = clock.monotonic();
  let failure = "";
  while (!terminal.isClosed) {
    try {
      yield await look();
      failure = "";
    } catch (error) {
      // What may pass is said once, and not for every look.
      if (exitCodeOf(error) !== exitCodes.unavailable) throw error;
      const { message } = error as Error;
      if (message !== failure) terminal.complain(`leasehold: ${shown(message)}; trying again`);
      failure = message;
    }
    const leftMs = forMs - (clock.monotonic() - began);
    if (leftMs <= 0) return;
    await sleep(clock, Math.min(everyMs, leftMs), signal);
  }
}
