// The commands that touch another holder's lease, or keep a key closed.

import type { DescribedLease, KeyDetails, LeaseOperator } from "@leasehold/client/admin";
import { type Call, command } from "../command.ts";
import { CommandError, exitCodes, UsageError } from "../exit-codes.ts";
import { defined, duration, yes } from "../flags.ts";
import { ageText, fold, shown, timeText } from "../terminal/text.ts";
import { endText, nextRenewalInMs, ownerOf, renewals, renewedAgoMs, stopForecast } from "../view/key-rows.ts";
import { commandLine, leftLines } from "../view/next-steps.ts";
import { fenceText } from "../view/rows.ts";
import { serviceNow } from "../view/table-snapshot.ts";
import {
  agreed,
  describedKey,
  doneTo,
  freeError,
  leaseFlags,
  reasonFlag,
  reasonOf,
  sayDone,
  seenLease,
} from "./shared/intervention.ts";
import { looks } from "./shared/polling.ts";

const lookEveryMs = 1_000;

export const stop = command({
  usage: "stop KEY",
  details: `
Asks the holder of a key to stop: its signal aborts at its next renewal. The key stays held until the holder releases it, or
until its lease ends. Says beforehand when a holder will never hear of it.

leasehold stop import/orders --token 1620e1bd --reason 'INC-4411: wrong file' --wait 60s`,
  writes: true,
  operands: [1, 1],
  flags: {
    ...leaseFlags,
    reason: reasonFlag,
    wait: duration("then wait until it has let go, at most so long; exit 75 where it has not"),
  },
  async run(call) {
    const { operands, flags, terminal } = call;
    const [key = ""] = operands;
    const { connection, operator, details } = await describedKey(call, key);
    const lease = seenLease(details, flags);
    refuseWithoutHolder(lease, details.readAt);
    terminal.say(heldText(lease, details.readAt));
    if (lease.revocation !== undefined) terminal.say(`It was asked already: "${shown(lease.revocation)}".`);
    const { isHeard, text } = stopForecast(lease, details.readAt);
    terminal.say(text);
    await agreed(call, { question: isHeard ? "Ask it to stop?" : "Ask it to stop all the same?" });
    const { token, sortKey } = lease;
    const reason = defined({ reason: flags.reason });
    const result = doneTo(await operator.stop(key, { token, sortKey, ...reason }), key, connection.client);
    sayDone(call, result, "asked.");
    if (flags.wait === undefined) return exitCodes.done;
    const now = (): number => serviceNow(connection.client);
    return await untilGone(call, operator, lease, { forMs: flags.wait, askedAt: result.entry.at, now });
  },
});

/** `import/orders is held by sfn:import-2f1c for 1h 12m, renewed 12s ago.` */
function heldText(lease: DescribedLease, readAt: number): string {
  const { key, acquiredAt } = lease;
  const renewed = renewals(lease) === 0 ? "" : `, renewed ${ageText(renewedAgoMs(lease, readAt))} ago`;
  return `${shown(key)} is held by ${shown(ownerOf(lease))} for ${ageText(readAt - acquiredAt)}${renewed}.`;
}

/** Throws a CommandError (1) for a lease without a holder that could stop. */
function refuseWithoutHolder({ key, state, expiresAt, pause }: DescribedLease, readAt: number): void {
  const refusals: Partial<Record<typeof state, string>> = {
    expired: `the lease ended ${ageText(readAt - expiresAt)} ago: nobody need stop it, the next caller takes over`,
    cooldown: "its holder has released it: it is closed until lockAtLeastFor is over (leasehold wait)",
    paused: `it is paused by ${pause?.by}: leasehold resume ends that`,
  };
  const refusal = refusals[state];
  if (refusal !== undefined)
    throw new CommandError(`${shown(key)}: ${shown(refusal)}. Nothing done`, exitCodes.nothing);
}

async function untilGone(
  { terminal, clock, signal }: Pick<Call, "terminal" | "clock" | "signal">,
  operator: LeaseOperator,
  { key, token }: DescribedLease,
  { forMs, askedAt, now }: { readonly forMs: number; readonly askedAt: number; readonly now: () => number },
): Promise<number> {
  terminal.say(`waiting up to ${ageText(forMs)} for it to let go …`);
  const polling = { terminal, clock, signal, everyMs: lookEveryMs, forMs };
  for await (const { leases, lastHolder } of looks(() => operator.describe(key), polling)) {
    const lease = leases.find((one) => one.token === token);
    if (lease?.state === "held" || lease?.state === "stopping" || lease?.state === "grace") continue;
    const ended = lease !== undefined ? "over, without a release" : endText(lastHolder?.end ?? "released");
    terminal.say(`${shown(key)} was ${ended} ${ageText(Math.max(0, now() - askedAt))} after you asked.`);
    return exitCodes.done;
  }
  terminal.say(`${shown(key)} is still held ${ageText(Math.max(0, now() - askedAt))} after you asked.`);
  return exitCodes.held;
}

export const breakCommand = command({
  usage: "break KEY",
  details: `
Takes a lease away from its holder, which is not asked: it works on until its next renewal or its deadline, and until then
two may be at work. leasehold stop asks first. To confirm, type the key.

leasehold break label-printer --token 1620e1bd --reason 'host is gone, INC-4411'`,
  writes: true,
  operands: [1, 1],
  flags: {
    ...leaseFlags,
    reason: reasonFlag,
    force: yes("remove the record of a lease that has ended, too: the next caller would take it over anyway"),
  },
  async run(call) {
    const { operands, flags, terminal } = call;
    const [key = ""] = operands;
    const { connection, operator, details } = await describedKey(call, key);
    const lease = seenLease(details, flags);
    for (const line of breakWarning(lease, details.readAt)) terminal.say(line);
    if (lease.state === "expired" && !flags.force) {
      throw new CommandError(
        "nothing done. (--force to remove the record of it all the same)",
        exitCodes.nothing,
      );
    }
    await agreed(call, { question: "Type the key to break it", word: key });
    const reason = await reasonOf(call, flags.reason);
    const { token, sortKey } = lease;
    const result = doneTo(await operator.break(key, { token, sortKey, reason }), key, connection.client);
    sayDone(call, result, `broken. ${whatComesNext(details, lease)}`);
    return exitCodes.done;
  },
});

const textWidth = 100;

/** What a person should know before a lease is broken. Throws a CommandError (64) for a pause. */
function breakWarning(lease: DescribedLease, readAt: number): readonly string[] {
  const { key, owner, expiresAt, fencingToken, state, acquiredAt } = lease;
  const name = shown(key);
  const holder = shown(owner);
  const left = ageText(Math.max(0, expiresAt - readAt));
  const at = `${timeText(expiresAt).slice(11)} UTC, in ${left}`;
  switch (state) {
    case "paused": {
      const message = `${name} is paused by ${shown(lease.pause?.by ?? "?")}, and not held: ${commandLine("resume", [key])} ends the pause`;
      throw new CommandError(message, exitCodes.usage);
    }
    case "expired":
      return [
        `${name} was held by ${holder}. Its lease ended ${ageText(readAt - expiresAt)} ago: nobody need break it, the next caller takes over.`,
      ];
    case "cooldown":
      return [
        `${name} was released early by ${holder}, and is closed for ${left} more (lockAtLeastFor): if it is opened, the same work may begin again too soon.`,
      ];
    default: {
      const inMs = nextRenewalInMs(lease, readAt);
      const alive =
        renewals(lease) > 0
          ? `${name} is HELD AND ALIVE: renewed ${ageText(renewedAgoMs(lease, readAt))} ago by ${holder}, fencing token ${fenceText(fencingToken)}.`
          : `${name} is HELD by ${holder}, and was not renewed since it was acquired ${ageText(readAt - acquiredAt)} ago, fencing token ${fenceText(fencingToken)}.`;
      const hears =
        inMs === undefined
          ? `It hears of it at its deadline (${at})`
          : `It hears of it at its next renewal (within about ${ageText(inMs)}), or at its deadline (${at})`;
      return [
        alive,
        ...bullet(`Breaking it does not stop the work. ${hears}, and until then two may be at work.`),
        ...bullet("Safe only if its writes are fenced (fence() or conditionCheck())."),
        ...bullet(`\`${commandLine("stop", [key])}\` asks first.`),
      ];
    }
  }
}

function bullet(text: string): readonly string[] {
  return fold(text, textWidth).map((line, index) => (index === 0 ? `  · ${line}` : `    ${line}`));
}

function whatComesNext({ waiting, readAt }: KeyDetails, { sortKey }: DescribedLease): string {
  const line = waiting.filter((ticket) => ticket.sortKey === sortKey && ticket.expiresAt > readAt);
  const [next] = line;
  if (next === undefined) return "The key is free.";
  const count = line.length === 1 ? "1 is" : `${line.length} are`;
  return `The key is free. ${count} waiting: the next is ${shown(next.owner)}.`;
}

export const pause = command({
  usage: "pause KEY --for DUR --reason TEXT",
  details: `
Keeps a key closed on purpose, as a maintenance window does: its lock, its semaphore and its read-write lock. Every caller is
refused, and sees who has paused it and why. It touches no holder: with --wait it waits for the lock's; permits, readers and
writers that are there finish. Slots of a job with a run history, tasks and computations go on: it names them.
leasehold resume ends it early.

leasehold pause price-feed --for 2h --reason 'INC-4411, vendor down' --wait 10m`,
  writes: true,
  operands: [1, 1],
  flags: {
    for: duration("for how long, at most 366d"),
    reason: reasonFlag,
    wait: duration("wait for the present holder of the lock, at most so long (default: not at all)"),
  },
  async run(call) {
    const { operands, flags, terminal, signal } = call;
    const [key = ""] = operands;
    const forMs = flags.for;
    if (forMs === undefined) throw new UsageError("--for is missing: for how long? A pause ends by itself");
    const { connection, operator, details } = await describedKey(call, key);
    const holder = details.leases.find(
      ({ sortKey, state }) => sortKey === "lease" && state !== "free" && state !== "expired",
    );
    if (holder !== undefined && holder.pause === undefined) {
      terminal.say(heldText(holder, details.readAt));
      if (flags.wait !== undefined) terminal.say(`waiting up to ${ageText(flags.wait)} for it …`);
    }
    const reason = await reasonOf(call, flags.reason);
    const result = await operator.pause(key, { forMs, reason, waitMs: flags.wait ?? 0, signal });
    if (result.outcome === "heldByAnother") {
      const { holder } = result;
      const since = ageText(Math.max(0, serviceNow(connection.client) - holder.acquiredAt));
      const by =
        holder.pause === undefined ? `held by ${holder.owner}` : `paused already by ${holder.pause.by}`;
      const advice =
        holder.pause === undefined
          ? `--wait waits for it; ${commandLine("stop", [key])} asks it to stop`
          : `${commandLine("resume", [key])} ends that`;
      throw new CommandError(
        `${shown(`${key} is ${by}`)} for ${since}: ${advice}. Nothing done`,
        exitCodes.held,
      );
    }
    if (result.outcome === "free") {
      throw new CommandError(`${shown(key)} became free as the wait ended: try again`, exitCodes.held);
    }
    const { expiresAt } = result.lease;
    const until = `${timeText(expiresAt)} UTC, for ${ageText(forMs)}`;
    const paused = shown(ownerOf(result.lease));
    sayDone(
      call,
      result,
      `${paused}: ${shown(key)} is closed until ${until}, or until ${commandLine("resume", [key])}`,
    );
    for (const line of leftLines(key, result.leaves)) terminal.say(shown(line));
    return exitCodes.done;
  },
});

export const resume = command({
  usage: "resume KEY",
  details: `
Ends the pause of a key. It never ends the lease of a holder. What a job has missed meanwhile is run by
leasehold jobs backfill.`,
  writes: true,
  operands: [1, 1],
  flags: { reason: reasonFlag },
  async run(call) {
    const { operands, flags, terminal, by } = call;
    const [key = ""] = operands;
    const { connection, operator, details } = await describedKey(call, key);
    const lease = details.leases.find(({ state }) => state === "paused");
    if (lease?.pause === undefined) {
      const [holder] = details.leases.filter(({ state }) => state !== "free");
      if (holder === undefined) throw freeError(details);
      const message = `${heldText(holder, details.readAt)} It is not paused. Nothing done`;
      throw new CommandError(message, exitCodes.lost);
    }
    const { pause, token, acquiredAt } = lease;
    const since = ageText(details.readAt - acquiredAt);
    terminal.say(shown(`${key} is paused by ${pause.by} for ${since}: "${pause.reason}".`));
    // Another operator may have a reason to keep it closed.
    if (pause.by !== by) await agreed(call, { question: "End the pause?" });
    const reason = defined({ reason: flags.reason });
    const result = doneTo(await operator.resume(key, { token, ...reason }), key, connection.client);
    sayDone(call, result, `resumed. ${shown(key)} is free.`);
    return exitCodes.done;
  },
});
