import { command } from "../command.ts";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { ageText } from "../terminal/durations.ts";
import { shown } from "../terminal/text.ts";
import { agreed, doneTo, operatorOn, reasonFlag, sayDone } from "./shared/intervention.ts";
import { freeError } from "./shared/seen-lease.ts";
import { heldText } from "./stop.ts";

export default command({
  usage: "resume KEY",
  details: `
Ends the pause of a key. It never ends the lease of a holder. What a job has missed meanwhile is run by
leasehold jobs backfill.`,
  writes: true,
  operands: [1, 1],
  flags: { reason: reasonFlag },
  async run(call) {
    const { operands, flags, connect, terminal, by } = call;
    const [key = ""] = operands;
    const connection = await connect();
    const operator = operatorOn(connection, call);
    const details = await operator.describe(key);
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
    const reason = flags.reason === undefined ? {} : { reason: flags.reason };
    const result = doneTo(await operator.resume(key, { token, ...reason }), key, connection.client);
    sayDone(call, result, `resumed. ${shown(key)} is free.`);
    return exitCodes.done;
  },
});
