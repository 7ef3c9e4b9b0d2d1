import { ifOperational } from "@leasehold/client/internal";
import { type Call, command } from "../command.ts";
import type { Connection } from "../connection.ts";
import { exitCodes, messageOf } from "../exit-codes.ts";
import { yes } from "../flags.ts";
import { cut, durationText, shown, timeText } from "../terminal/text.ts";
import { checkExecutable, runChild } from "../work/child.ts";
import { acquireHold, checkHoldFlags, type Hold, holdFlags, outerHold } from "../work/hold.ts";
import { checkGrace, childFlags, leaseVariables, runUnderLease } from "../work/supervision.ts";

const flags = {
  ...holdFlags,
  "no-heartbeat": yes("do not renew the lease: it has to last longer than the child"),
  ...childFlags,
  reentrant: yes("inside of another leasehold run of the same key: use its lease"),
};

type RunCall = Call<typeof flags>;

const longestCommand = 200;

export const run = command({
  usage: "run KEY [flags] -- CMD [ARG…]",
  details: `
Acquires KEY, runs CMD, and releases KEY when CMD has ended: flock(1) for a fleet. CMD has the terminal, stdin, stdout and
stderr to itself. The exit code is CMD's own; 75 where another holds KEY, 76 where the lease was lost while CMD ran, 80
where the slot is done, 124 after --max, 126 and 127 where CMD cannot be run or is not found.

CMD gets LEASEHOLD_KEY, LEASEHOLD_TOKEN, LEASEHOLD_FENCING_TOKEN, LEASEHOLD_TABLE_NAME and LEASEHOLD_SLOT. Signals go on to
CMD and to what it has started. When this process is killed, CMD is killed too. Others see the command line (--data null
leaves it out). On Windows a signal ends CMD at once, and only CMD itself ends with this process.

  leasehold run deploy/prod --wait 10m -- ./deploy.sh
  * * * * * leasehold run orders/close --slot minute --skip-ok -- close-orders       # the same line on every host`,
  writes: true,
  child: "required",
  flags,
  async run(call, key) {
    const commandLine = call.child ?? [];
    checkHoldFlags(call.flags);
    const heartbeat = !call.flags["no-heartbeat"];
    checkGrace(call.flags, { leaseMs: call.flags.lease, heartbeat });
    checkExecutable(commandLine[0] ?? "", call.env);
    const connection = await call.connect();
    if (call.flags.reentrant) {
      const outer = await outerHold(connection.client, key, call.env);
      // The outer run renews and releases its lease, and ends this process if it is lost.
      if (outer !== undefined) {
        call.terminal.say(`leasehold: the run around this one holds ${shown(key)}: using its lease`);
        return await runChild(call, { commandLine, env: call.env, fd: call.flags.fd }, ({ ended }) => ended);
      }
    }
    const data = { cmd: cut(commandLine.join(" "), longestCommand), pid: process.pid };
    const hold = await acquireHold(call, connection, key, { heartbeat, data });
    if (typeof hold === "number") return hold;
    return await runUnderHold(call, connection, hold);
  },
});

/** Runs the child under a lease, and releases the lease, however the child ends. */
async function runUnderHold(call: RunCall, { tableName }: Connection, hold: Hold): Promise<number> {
  const { lease, slot, waitedMs } = hold;
  const { flags, child: commandLine = [], terminal, clock, global } = call;
  const name = shown(lease.key);
  // After a wait, or at a terminal, someone wants to know. A crontab's mail is only for failures.
  const isTalkative = waitedMs > 0 || terminal.stderr.isTTY === true || global.verbose;
  const talk = (line: string): void => {
    if (isTalkative) terminal.say(`leasehold: ${line}`);
  };
  const waited = waitedMs > 0 ? ` after ${durationText(waitedMs)}` : "";
  talk(`${name} acquired${waited} (fencing token ${lease.fencingToken})`);
  const startedAt = clock.monotonic();
  const variables = leaseVariables(lease.key, lease, { tableName, slot });
  const end = await runUnderLease(call, {
    ...{ commandLine, variables, key: lease.key, lease, leaseMs: flags.lease, flags },
  }).catch(async (error: unknown) => {
    // The user sees only that the child could not be started.
    await lease.release().catch(ifOperational(false));
    throw error;
  });
  const heldFor = durationText(clock.monotonic() - startedAt);
  const isDone = !end.isLost && !end.isTooLong && end.code === 0;
  const wasOurs = await releaseHold(call, hold, isDone);
  if (end.isLost || !wasOurs) {
    if (!end.isLost) terminal.complain(`leasehold: LOST ${name}: it was broken or taken while the child ran`);
    const advice = "another holder may be at work now";
    terminal.complain(`leasehold: ${advice}; the child exited ${end.code}. Exit ${exitCodes.lost}.`);
    return exitCodes.lost;
  }
  const what = slot !== undefined && isDone ? `released, and ${shown(slot)} is done,` : "released";
  talk(`${what} after ${heldFor}; child exited ${end.code}`);
  return end.isTooLong ? exitCodes.tooLong : end.code;
}

/**
 * Returns whether this call still held the lease. If DynamoDB does not answer, it counts as held: the child has ended
 * in time.
 */
async function releaseHold(
  { terminal, clock }: RunCall,
  { lease, slot }: Hold,
  isDone: boolean,
): Promise<boolean> {
  const { expiresAt } = lease;
  const heldUntil = clock.monotonic() + lease.remainingMs();
  try {
    return await (isDone ? lease.complete() : lease.release());
  } catch (error) {
    const reason = shown(messageOf(error));
    const left = durationText(Math.max(0, heldUntil - clock.monotonic()));
    const until = `${timeText(expiresAt)} UTC, ${left} from now`;
    terminal.complain(
      `leasehold: ${shown(lease.key)} is not released: it stays held until ${until} (${reason})`,
    );
    if (isDone && slot !== undefined) {
      terminal.complain(`leasehold: the slot ${shown(slot)} is not recorded as done, and may run again`);
    }
    return true;
  }
}
