import type { DescribedLease, KeyDetails } from "@leasehold/client/admin";
import { command } from "../command.ts";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { yes } from "../flags.ts";
import { ageText, timeText } from "../terminal/durations.ts";
import { fold, shown } from "../terminal/text.ts";
import { commandLine } from "../view/command-lines.ts";
import { nextRenewalInMs, renewals, renewedAgoMs } from "../view/liveness.ts";
import { agreed, doneTo, operatorOn, reasonFlag, reasonOf, sayDone } from "./shared/intervention.ts";
import { fenceText } from "./shared/row-columns.ts";
import { leaseFlags, seenLease } from "./shared/seen-lease.ts";

export default command({
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
    const { operands, flags, connect, terminal } = call;
    const [key = ""] = operands;
    const connection = await connect();
    const operator = operatorOn(connection, call);
    const details = await operator.describe(key);
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
export function breakWarning(lease: DescribedLease, readAt: number): readonly string[] {
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
