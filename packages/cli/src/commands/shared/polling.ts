// Polling until the caller, the user or a closed pipe ends it. A service that fails for a while does not end it. A
// table that is too large to be read without the user's consent does, with what reading it costs.

import type { Clock } from "@leasehold/client";
import { ifOperational, mayPass, settles, sleep } from "@leasehold/client/internal";
import { CommandError, exitCodes } from "../../exit-codes.ts";
import { type Flags, type Values, whole } from "../../flags.ts";
import type { TableSize } from "../../table/place.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { shown } from "../../terminal/text.ts";
import {
  costText,
  dollarsText,
  pauseAfter,
  type ReadCost,
  readCost,
  unitsText,
  usualUnitsPerSecond,
} from "../../view/read-cost.ts";
import { TableTooLargeError } from "../../view/table-snapshot.ts";

/** The default pause between two looks at a table. */
const usualPollMs = 2_000;

/** The allowed cost of polling. */
export const paceFlags = {
  "max-rcu": whole(
    `read units a second at most (default ${usualUnitsPerSecond}): a larger table is looked at less often`,
    { least: 1 },
  ),
} satisfies Flags;

/** Returns the pause after a look. */
export function paceOf({
  every,
  "max-rcu": mostUnitsPerSecond = usualUnitsPerSecond,
}: Values<typeof paceFlags> & {
  readonly every: number | undefined;
}): (seen: { readonly cost: ReadCost }) => number {
  return ({ cost }) => pauseAfter(cost, { everyMs: every ?? usualPollMs, mostUnitsPerSecond });
}

/** The terms of polling. */
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
  let pauseMs = typeof everyMs === "number" ? everyMs : usualPollMs;
  while (!terminal.isClosed) {
    try {
      const looking = look();
      if (forMs < Number.POSITIVE_INFINITY) {
        // A hanging service does not prolong the wait.
        if (!(await settles(clock, looking, Math.max(leftMs(), lastLookMs), signal))) return;
      }
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

/** Reads a table. If it is too large, rejects with the cost of reading all of it. */
export async function priceOfTable<T>(
  describeTable: () => Promise<TableSize | undefined>,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof TableTooLargeError)) throw error;
    // A missing permission must not hide the cost of what was read.
    const size = await describeTable().catch(ifOperational(undefined));
    const all =
      size && readCost(Math.max(size.items, error.cost.items), Math.max(size.bytes, error.cost.bytes));
    const whole =
      all === undefined
        ? "there are more"
        : `the table has about ${all.items.toLocaleString("en-US")} items: reading all costs ${unitsText(all.units)} RCU, ${dollarsText(all.dollars)}`;
    const message = `stopped after ${costText(error.cost)}; ${whole}. --scan reads all; leasehold get KEY reads one key`;
    throw new CommandError(message, exitCodes.usage, { cause: error });
  }
}
