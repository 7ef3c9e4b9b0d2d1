import { command } from "../command.ts";
import { CommandError, exitCodes, UsageError } from "../exit-codes.ts";
import { custom, duration, usually } from "../flags.ts";
import { durationText, shown } from "../terminal/text.ts";
import { describedKey, refuseUnreadable } from "../view/described-key.ts";
import { isClosed, isHeld, type KeyRow, keyRows } from "../view/key-rows.ts";
import { globTest } from "../view/rows.ts";
import { lookUntil } from "./polling.ts";

export const wait = command({
  usage: "wait KEY",
  details: `
Waits until the key is free, or what --until says. It takes nothing: by the time that it has ended, another caller may
have the lock. Exits with 0 when it is so, with 75 when --for is over, and with 69 where DynamoDB did not answer until then.

leasehold wait deploy/prod --for 5m && echo free
leasehold wait deploy/prod --until gone-owner='bob@*'`,
  writes: false,
  flags: {
    for: duration("for how long at most (default: for ever)"),
    timeout: duration("another name for --for"),
    until: usually(
      custom("free|held|gone-owner=GLOB", "what to wait for (default free)", conditionIn),
      isFree,
    ),
    every: usually(duration("how often to look (default 1s)"), 1_000),
  },
  async run({ flags, connect, terminal, clock, signal }, key) {
    if (flags.for !== undefined && flags.timeout !== undefined) {
      throw new UsageError("--timeout is another name for --for here; give one of them");
    }
    const { operator } = await connect();
    const began = clock.monotonic();
    const look = async (): Promise<readonly KeyRow[]> => {
      const described = await describedKey(operator, key);
      const rows = keyRows(described.details);
      if (!rows.some(isHeld)) refuseUnreadable(described);
      return rows;
    };
    const pace = { everyMs: flags.every, forMs: flags.for ?? flags.timeout };
    const { seen, isSo } = await lookUntil(look, flags.until, { terminal, clock, signal, ...pace });
    const waited = durationText(clock.monotonic() - began);
    if (seen === undefined) {
      const message = `nothing is known of ${shown(key)}: no answer in ${waited}`;
      throw new CommandError(message, exitCodes.unavailable);
    }
    terminal.say(`${shown(key)} is ${isSo ? "" : "still "}${stateOf(seen)}, after ${waited}`);
    return isSo ? exitCodes.done : exitCodes.held;
  },
});

function isFree(rows: readonly KeyRow[]): boolean {
  return !rows.some(isClosed);
}

/** Throws a UsageError. */
function conditionIn(given: string, name: string): (rows: readonly KeyRow[]) => boolean {
  if (given === "free") return isFree;
  if (given === "held") return (rows) => rows.some(isHeld);
  const pattern = /^gone-owner=(.+)$/s.exec(given)?.[1];
  if (pattern === undefined) {
    throw new UsageError(`${name} is "${given}"; allowed: free, held, gone-owner=GLOB`);
  }
  const isOwner = globTest(pattern);
  return (rows) => !rows.some((row) => isHeld(row) && row.leases.some(({ owner }) => isOwner(owner)));
}

function stateOf(rows: readonly KeyRow[]): string {
  const row = rows.find(isHeld);
  if (row === undefined) return "free";
  return shown(
    row.lease === undefined ? `${row.stateText} (${row.primitive})` : `${row.stateText} by ${row.owner}`,
  );
}
