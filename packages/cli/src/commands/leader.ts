import { Leader, type LeaderRecord } from "@leasehold/client/leader";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { yes } from "../flags.ts";
import { exitCodeOfAbort } from "../interruption.ts";
import { timeText } from "../terminal/durations.ts";
import { shown } from "../terminal/text.ts";
import { serviceNow } from "../view/service-time.ts";

export default command({
  usage: "leader KEY",
  details: `
Who leads the election KEY; exit 1 where nobody does. With --observe: a line for each change, until it is interrupted.`,
  writes: false,
  operands: [1, 1],
  flags: { observe: yes("go on, and print each change") },
  async run({ operands: [key = ""], flags, connect, printer, terminal, signal }) {
    const { client } = await connect();
    const leader = new Leader(client, key);
    const print = (record: LeaderRecord | undefined): void => {
      const seen = record ?? { owner: null };
      const at = serviceNow(client);
      if (!printer.isForPeople) printer.line("leader", { key, at, ...seen });
      else if (record === undefined) terminal.print(`${timeText(at)}  nobody leads ${shown(key)}`);
      else {
        const since = `since ${timeText(record.since)} UTC, fencing token ${record.fencingToken}`;
        terminal.print(`${timeText(at)}  ${shown(record.owner)} leads ${shown(key)} ${since}`);
      }
    };
    if (!flags.observe) {
      const current = await leader.current();
      print(current);
      return current === undefined ? exitCodes.nothing : exitCodes.done;
    }
    for await (const record of leader.observe({ signal })) {
      print(record);
      if (terminal.isClosed) return exitCodes.done;
    }
    return exitCodeOfAbort(signal);
  },
});
