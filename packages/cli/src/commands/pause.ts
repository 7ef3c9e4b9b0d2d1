import type { NotPaused, PauseLeaves } from "@leasehold/client/admin";
import { command } from "../command.ts";
import { CommandError, exitCodes, UsageError } from "../exit-codes.ts";
import { duration } from "../flags.ts";
import { ageText, timeText } from "../terminal/durations.ts";
import { shown } from "../terminal/text.ts";
import { commandLine } from "../view/command-lines.ts";
import { ownerOf } from "../view/key-rows.ts";
import { serviceNow } from "../view/service-time.ts";
import { operatorOn, reasonFlag, reasonOf, sayDone } from "./shared/intervention.ts";
import { heldText } from "./stop.ts";

export default command({
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
    const { operands, flags, connect, terminal, signal } = call;
    const [key = ""] = operands;
    const forMs = flags.for;
    if (forMs === undefined) throw new UsageError("--for is missing: for how long? A pause ends by itself");
    const connection = await connect();
    const operator = operatorOn(connection, call);
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

const goesOn: Readonly<Record<NotPaused, string>> = {
  runs: "its job runs (leasehold jobs skip keeps a slot from running)",
  tasks: "its tasks (leasehold tasks drop takes one away)",
  computations: "its computations of a single flight",
};

/** What a pause does not close, a line for each kind. */
export function leftLines(
  key: string,
  { finishing, notPaused }: PauseLeaves = { finishing: [], notPaused: [] },
): string[] {
  const holders = finishing.map(({ owner, seat }) => `${owner} (${seat?.kind})`).join(", ");
  return [
    ...(finishing.length > 0 ? [`still there, until they end: ${holders}`] : []),
    ...(notPaused.length > 0
      ? [`not paused under ${key}: ${notPaused.map((one) => goesOn[one]).join("; ")}`]
      : []),
  ];
}
