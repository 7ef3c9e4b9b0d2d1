import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { durationText } from "../terminal/durations.ts";
import { shown } from "../terminal/text.ts";
import { adoptHandle, HandleFile, readHandle } from "../work/handle-file.ts";

export default command({
  usage: "renew FILE",
  details: `
Prolongs the lease of a handle by its duration, counted from now, and writes the new handle over the old one; with - it
reads stdin and writes stdout. Exit 76 where another has it by now. 1 request.`,
  writes: true,
  operands: [1, 1],
  flags: {},
  async run({ operands: [path = ""], connect, terminal, signal, global }) {
    const handle = await readHandle(path, { terminal, signal });
    const file = path === "-" || global["dry-run"] ? undefined : await HandleFile.prepare(path);
    try {
      const connection = await connect(handle.tableName);
      const lease = adoptHandle(connection.client, handle);
      // The handle holds the lease, and not this process.
      connection.keepLeases();
      await lease.renew();
      if (file === undefined) await terminal.deliver(JSON.stringify(lease));
      else await file.save(lease.toJSON());
      const ends = durationText(lease.remainingMs());
      terminal.say(`leasehold: ${shown(lease.key)} renewed; it ends in ${ends}`);
      return exitCodes.done;
    } catch (error) {
      await file?.discard();
      throw error;
    }
  },
});
