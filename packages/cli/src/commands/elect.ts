import { Leader } from "@leasehold/client/leader";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { duration, json } from "../flags.ts";
import { cut, shown } from "../terminal/text.ts";
import { checkExecutable } from "../work/executable.ts";
import { endingBySignals, runChild } from "../work/run-child.ts";
import { checkGrace, childFlags, superviseChild } from "../work/supervision.ts";

const defaultLeaseMs = 15_000;
const longestCommand = 200;

export default command({
  usage: "elect KEY [flags] -- CMD [ARG…]",
  details: `
Stands for election, and runs CMD while it leads. When CMD has ended, or the lead is lost, it stands again. SIGINT, SIGTERM
and SIGHUP go on to CMD, and end the candidacy. CMD gets LEASEHOLD_KEY, LEASEHOLD_TOKEN and LEASEHOLD_FENCING_TOKEN.

  leasehold elect scheduler --lease 15s -- ./scheduler`,
  writes: true,
  operands: [1, 1],
  child: "required",
  flags: {
    lease: duration("how long the lead lasts after the leader has died (default 15s)"),
    data: json("what others see beside the owner, such as an address"),
    pause: duration("how long to let others be elected after CMD has ended by itself (default 1s)"),
    ...childFlags,
  },
  async run(call) {
    const { flags, env, clock, terminal, child: commandLine = [] } = call;
    const [key = ""] = call.operands;
    const name = shown(key);
    const leaseMs = flags.lease ?? defaultLeaseMs;
    checkGrace(flags, { leaseMs, heartbeat: true });
    checkExecutable(commandLine[0] ?? "", env);
    const { client, tableName } = await call.connect();
    const data = flags.data ?? { cmd: cut(commandLine.join(" "), longestCommand), pid: process.pid };
    const leader = new Leader(client, key, {
      leaseDurationMs: leaseMs,
      data,
      ...(flags.pause === undefined ? {} : { pauseMs: flags.pause }),
    });
    const running = endingBySignals(call);
    const { signal } = running;
    await leader.lead(
      async (lease) => {
        terminal.say(`leasehold: elected for ${name} (fencing token ${lease.fencingToken})`);
        const added = {
          LEASEHOLD_KEY: key,
          LEASEHOLD_TOKEN: lease.token,
          LEASEHOLD_FENCING_TOKEN: String(lease.fencingToken),
          LEASEHOLD_TABLE_NAME: tableName,
        };
        const say = (line: string): void => terminal.complain(line);
        const { code } = await runChild(
          running,
          { commandLine, env: { ...env, ...added }, fd: flags.fd },
          (child) => superviseChild(child, { key, lease, leaseMs, flags, clock, say }),
        );
        const next = signal.aborted ? "resigning" : "standing for election again";
        terminal.say(`leasehold: the child exited ${code}; ${next}`);
      },
      { signal },
    );
    return running.exitCode() ?? exitCodes.done;
  },
});
