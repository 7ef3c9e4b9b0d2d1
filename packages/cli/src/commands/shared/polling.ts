// Looking again and again, until the caller, the user or a closed pipe ends it. A service that fails for a while does not.

import type { Clock } from "@leasehold/client";
import { mayPass, settles, sleep } from "@leasehold/client/internal";
import { type Flags, type Values, whole } from "../../flags.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { shown } from "../../terminal/text.ts";
import { pauseAfter, type ReadCost, usualUnitsPerSecond } from "../../view/read-cost.ts";

/** How often a table is looked at. */
export const usualPollMs = 2_000;

/** How much looking again and again may cost. */
export const paceFlags = {
  "max-rcu": whole(
    `read units a second at most (default ${usualUnitsPerSecond}): a larger table is looked at less often`,
    { least: 1 },
  ),
} satisfies Flags;

/** Gives how long after a look the next one may come. */
export function paceOf({
  every,
  "max-rcu": mostUnitsPerSecond = usualUnitsPerSecond,
}: Values<typeof paceFlags> & {
  readonly every: number | undefined;
}): (seen: { readonly cost: ReadCost }) => number {
  return ({ cost }) => pauseAfter(cost, { everyMs: every ?? usualPollMs, mostUnitsPerSecond });
}

/** How to look again and again. */
export interface Polling<Seen = unknown> {
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long after a look the next one comes, or what tells it by what was seen. */
  readonly everyMs: number | ((seen: Seen) => number);
  /** For how long; the last look comes at its end. @default - for ever */
  readonly forMs?: number | undefined;
}

/** How long the last look may take. */
const lastLookMs = 1_000;

/** Gives what each look has seen. Ends when the time is over or the reader has closed the pipe; rejects when the signal aborts. */
export async function* looks<Seen>(
  look: () => Promise<Seen>,
  { terminal, clock, signal, everyMs, forMs = Number.POSITIVE_INFINITY }: Polling<Seen>,
): AsyncGenerator<Seen, void, undefined> {
  const end = clock.monotonic() + forMs;
  const leftMs = (): number => end - clock.monotonic();
  let failure = "";
  let pauseMs = typeof everyMs === "number" ? everyMs : usualPollMs;
  while (!terminal.isClosed) {
    try {
      const looking = look();
      if (forMs < Number.POSITIVE_INFINITY) {
        // A service that hangs ends the wait no later.
        if (!(await settles(clock, looking, Math.max(leftMs(), lastLookMs), signal))) return;
      }
      const seen = await looking;
      if (typeof everyMs === "function") pauseMs = everyMs(seen);
      yield seen;
      failure = "";
    } catch (error) {
      // What may pass is said once, and not for every look.
      if (!mayPass(error)) throw error;
      const { message } = error;
      if (message !== failure) terminal.complain(`leasehold: ${shown(message)}; trying again`);
      failure = message;
    }
    if (leftMs() <= 0) return;
    await sleep(clock, Math.min(pauseMs, leftMs()), signal);
  }
}
