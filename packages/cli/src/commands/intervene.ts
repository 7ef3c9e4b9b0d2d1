// The commands that touch another holder's lease, or keep a key closed. They show the lease, ask, act on exactly that
// lease, and report the result: so an action cannot hit another holder than the one that was seen.

import type { LeaseClient, LeaseRecord } from "@leasehold/client";
import type { DescribedLease, KeyDetails, LeaseOperator, OperatorResult } from "@leasehold/client/admin";
import { agreed, type Call, command } from "../command.ts";
import { CommandError, exitCodes, UsageError } from "../exit-codes.ts";
import { defined, duration, text, type Values, yes } from "../flags.ts";
import { ageText, durationText, paragraph, shown, timeText } from "../terminal/text.ts";
import { describedKey, refuseUnreadable } from "../view/described-key.ts";
import { endText, rememberedHolder } from "../view/history.ts";
import {
  nextRenewalInMs,
  ownerOf,
  renewals,
  renewedAgoMs,
  stateWord,
  stopForecast,
} from "../view/key-rows.ts";
import { commandLine, leftLines, shortestPrefix, tokenPrefix } from "../view/next-steps.ts";
import { fenceText } from "../view/rows.ts";
import { serviceNow } from "../view/table-snapshot.ts";
import { lookUntil } from "./polling.ts";

/** Why it is done: shown to others, and kept in the audit trail. */
const reasonFlag = text("TEXT", "why: shown to others, and kept for 30 days (leasehold audit)");

/** Everything under a key, and the operator that may act on its leases. Throws a CommandError (78) if it may have others. */
async function lookedAt({ connect }: Call, key: string) {
  const { client, operator } = await connect();
  const described = await describedKey(operator, key);
  const { details } = described;
  if (details.leases.every(({ state }) => state === "free")) refuseUnreadable(described);
  return { client, operator, details };
}

/** The given reason, or the answer to a question. Throws a UsageError without a reason. */
async function reasonOf({ global, terminal, signal }: Call, given: string | undefined): Promise<string> {
  if (given !== undefined) return given;
  const isAnswered = !global.yes && terminal.canAsk;
  const answer = isAnswered ? await terminal.ask("Reason (kept for 30 days): ", signal) : "";
  if (answer !== "") return answer;
  throw new UsageError("--reason is missing: it is kept in the audit trail, for those who look later");
}

type Done = Extract<OperatorResult, { readonly outcome: "done" }>;

/** The lease of the action. Throws a CommandError: 1 if nobody holds it, 76 if another holder does. */
function doneTo(result: OperatorResult, key: string, client: LeaseClient): Done {
  if (result.outcome === "done") return result;
  if (result.outcome === "heldByAnother") throw otherHolderError(result.holder, serviceNow(client));
  throw new CommandError(`${shown(key)} was released in the meantime. Nothing done`, exitCodes.nothing);
}

/** Reports the action: to people in words, to other programs in the form of the audit trail. */
function sayDone({ terminal, printer }: Call, { entry }: Done, words: string): void {
  if (printer.isForPeople) terminal.say(words);
  else printer.document("action", entry, () => []);
}

const leaseFlags = {
  token: text(
    "TOKEN",
    `the token of the holder that you saw, or its first ${shortestPrefix} characters or more`,
  ),
  place: text("SORTKEY", "which lease, where the key has several; --token says it too"),
} as const;

const mostListed = 8;

/**
 * Finds the selected lease. Throws a CommandError: 1 if nobody holds the key, 76 if another holder than the selected
 * one has it; a UsageError if several leases match.
 */
function seenLease(details: KeyDetails, { token, place }: Values<typeof leaseFlags>): DescribedLease {
  if (token !== undefined && token.length < shortestPrefix) {
    throw new UsageError(
      `--token is "${shown(token)}"; allowed: a token, or at least ${shortestPrefix} characters of its beginning`,
    );
  }
  const there = details.leases.filter(({ state }) => state !== "free");
  const placed = there.filter(({ sortKey }) => place === undefined || sortKey === place);
  const meant = placed.filter((lease) => token === undefined || lease.token.startsWith(token));
  const [lease, another] = meant;
  if (lease !== undefined && another === undefined) return lease;
  if (lease !== undefined) throw severalOf(details, meant, token);
  const [holder] = placed;
  throw holder === undefined ? freeError(details) : otherHolderError(holder, details.readAt);
}

function severalOf(
  details: KeyDetails,
  leases: readonly DescribedLease[],
  token: string | undefined,
): UsageError {
  const tokens = details.leases.map((one) => one.token);
  const listed = leases.slice(0, mostListed).map((lease) => {
    const prefix = tokenPrefix(lease.token, tokens);
    return `  --token ${shown(prefix)}  ${shown(ownerOf(lease))}, ${stateWord(lease.state)} (${shown(lease.sortKey)})`;
  });
  const more =
    leases.length > mostListed ? [`  and ${leases.length - mostListed} more: leasehold get shows them`] : [];
  const finding =
    token === undefined
      ? `${shown(details.key)} has ${leases.length} leases; say which one`
      : `--token ${shown(token)} is the beginning of ${leases.length} tokens; give more of it`;
  return new UsageError([finding, ...listed, ...more].join("\n"));
}

/** Nobody holds a key. */
function freeError(details: KeyDetails): CommandError {
  const [last] = rememberedHolder(details);
  const ended =
    last === undefined
      ? ""
      : `: ${last.ended} ${ageText(Math.max(0, details.readAt - last.endedAt))} ago by ${shown(last.owner)}`;
  return new CommandError(`nobody holds ${shown(details.key)}${ended}. Nothing done`, exitCodes.nothing);
}

/** Another holder than the selected one has the key. */
function otherHolderError(holder: LeaseRecord, nowMs: number): CommandError {
  const since = ageText(Math.max(0, nowMs - holder.acquiredAt));
  const message = `held by another since ${since} ago (${shown(holder.owner)}): look again. Nothing done`;
  return new CommandError(message, exitCodes.lost);
}

const lookEveryMs = 1_000;

export const stop = command({
  usage: "stop KEY",
  details: `
Asks the holder of a key to stop: its signal aborts at its next renewal. The key stays held until the holder releases it, or
until its lease ends. Says beforehand when a holder will never hear of it.

leasehold stop import/orders --token 1620e1bd --reason 'INC-4411: wrong file' --wait 60s`,
  writes: true,
  flags: {
    ...leaseFlags,
    reason: reasonFlag,
    wait: duration(
      "then wait until it has let go, at most so long; exit 75 where it has not, 69 without an answer",
    ),
  },
  async run(call, key) {
    const { flags, terminal } = call;
    const { client, operator, details } = await lookedAt(call, key);
    const lease = seenLease(details, flags);
    refuseWithoutHolder(lease, details.readAt);
    terminal.say(heldText(lease, details.readAt));
    if (lease.revocation !== undefined) terminal.say(`It was asked already: "${shown(lease.revocation)}".`);
    const { isHeard, text } = stopForecast(lease, details.readAt);
    terminal.say(text);
    await agreed(call, { question: isHeard ? "Ask it to stop?" : "Ask it to stop all the same?" });
    const { token, sortKey } = lease;
    const reason = defined({ reason: flags.reason });
    const result = doneTo(await operator.stop(key, { token, sortKey, ...reason }), key, client);
    sayDone(call, result, "asked.");
    if (flags.wait === undefined) return exitCodes.done;
    const now = (): number => serviceNow(client);
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
  { terminal, clock, signal }: Call,
  operator: LeaseOperator,
  { key, token }: DescribedLease,
  { forMs, askedAt, now }: { readonly forMs: number; readonly askedAt: number; readonly now: () => number },
): Promise<number> {
  terminal.say(`waiting up to ${ageText(forMs)} for it to let go …`);
  const polling = { terminal, clock, signal, everyMs: lookEveryMs, forMs };
  const leaseIn = ({ leases }: KeyDetails) => leases.find((one) => one.token === token);
  const isGone = (details: KeyDetails): boolean =>
    !["held", "stopping", "grace"].includes(leaseIn(details)?.state ?? "free");
  const { seen, isSo } = await lookUntil(() => operator.describe(key), isGone, polling);
  if (seen === undefined) {
    const message = `nothing is known of ${shown(key)} since you asked: no answer in ${durationText(forMs)}`;
    throw new CommandError(message, exitCodes.unavailable);
  }
  const after = `${ageText(Math.max(0, now() - askedAt))} after you asked.`;
  const ended =
    leaseIn(seen) !== undefined ? "over, without a release" : endText(seen.lastHolder?.end ?? "released");
  terminal.say(`${shown(key)} ${isSo ? `was ${ended}` : "is still held"} ${after}`);
  return isSo ? exitCodes.done : exitCodes.held;
}

export const breakCommand = command({
  usage: "break KEY",
  details: `
Takes a lease away from its holder, which is not asked: it works on until its next renewal or its deadline, and until then
two may be at work. leasehold stop asks first. To confirm, type the key.

leasehold break label-printer --token 1620e1bd --reason 'host is gone, INC-4411'`,
  writes: true,
  flags: {
    ...leaseFlags,
    reason: reasonFlag,
    force: yes("remove the record of a lease that has ended, too: the next caller would take it over anyway"),
  },
  async run(call, key) {
    const { flags, terminal } = call;
    const { client, operator, details } = await lookedAt(call, key);
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
    const result = doneTo(await operator.break(key, { token, sortKey, reason }), key, client);
    sayDone(call, result, `broken. ${whatComesNext(details, lease)}`);
    return exitCodes.done;
  },
});

const textWidth = 104;

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
  return paragraph(text, textWidth, "  · ");
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
  flags: {
    for: duration("for how long, at most 366d"),
    reason: reasonFlag,
    wait: duration("wait for the present holder of the lock, at most so long (default: not at all)"),
  },
  async run(call, key) {
    const { flags, terminal, signal } = call;
    const forMs = flags.for;
    if (forMs === undefined) throw new UsageError("--for is missing: for how long? A pause ends by itself");
    const { client, operator } = await call.connect();
    const details = await operator.describe(key);
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
      const since = ageText(Math.max(0, serviceNow(client) - holder.acquiredAt));
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
  flags: { reason: reasonFlag },
  async run(call, key) {
    const { flags, terminal, by } = call;
    const { client, operator, details } = await lookedAt(call, key);
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
    const result = doneTo(await operator.resume(key, { token, ...reason }), key, client);
    sayDone(call, result, `resumed. ${shown(key)} is free.`);
    return exitCodes.done;
  },
});
