import type { DescribedLease, LeaseOperator } from "@leasehold/client/admin";
import { type Call, command } from "../command.ts";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { duration } from "../flags.ts";
import { ageText } from "../terminal/durations.ts";
import { shown } from "../terminal/text.ts";
import { endText, ownerOf } from "../view/key-rows.ts";
import { renewals, renewedAgoMs, stopForecast } from "../view/liveness.ts";
import { serviceNow } from "../view/service-time.ts";
import { agreed, doneTo, operatorOn, reasonFlag, sayDone } from "./shared/intervention.ts";
import { looks } from "./shared/polling.ts";
import { leaseFlags, seenLease } from "./shared/seen-lease.ts";

const lookEveryMs = 1_000;

export default command({
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
    const { operands, flags, connect, terminal } = call;
    const [key = ""] = operands;
    const connection = await connect();
    const operator = operatorOn(connection, call);
    const details = await operator.describe(key);
    const lease = seenLease(details, flags);
    refuseWithoutHolder(lease, details.readAt);
    terminal.say(heldText(lease, details.readAt));
    if (lease.revocation !== undefined) terminal.say(`It was asked already: "${shown(lease.revocation)}".`);
    const { isHeard, text } = stopForecast(lease, details.readAt);
    terminal.say(text);
    await agreed(call, { question: isHeard ? "Ask it to stop?" : "Ask it to stop all the same?" });
    const { token, sortKey } = lease;
    const reason = flags.reason === undefined ? {} : { reason: flags.reason };
    const result = doneTo(await operator.stop(key, { token, sortKey, ...reason }), key, connection.client);
    sayDone(call, result, "asked.");
    if (flags.wait === undefined) return exitCodes.done;
    const now = (): number => serviceNow(connection.client);
    return await untilGone(call, operator, lease, { forMs: flags.wait, askedAt: result.entry.at, now });
  },
});

/** `import/orders is held by sfn:import-2f1c for 1h 12m, renewed 12s ago.` */
export function heldText(lease: DescribedLease, readAt: number): string {
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
