import { command } from "../command.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { yes } from "../flags.ts";
import { shown } from "../terminal/text.ts";
import { adoptHandle, readHandle } from "../work/handle-file.ts";

export default command({
  usage: "release FILE",
  details: `
Releases the lease of a handle (- reads it from stdin). Exit 76 where it was no longer the holder's. 1 request.`,
  writes: true,
  operands: [1, 1],
  flags: { complete: yes("record the slot as done, so that nobody runs it again") },
  async run({ operands: [path = ""], flags, connect, terminal, signal }) {
    const handle = await readHandle(path, { terminal, signal });
    if (flags.complete && handle.slot === undefined) {
      throw new UsageError(
        `--complete: the lease of ${shown(handle.key)} is for no slot; acquire it with --slot`,
      );
    }
    const connection = await connect(handle.tableName);
    const lease = adoptHandle(connection.client, handle);
    const wasOurs = await (flags.complete ? lease.complete() : lease.release());
    if (wasOurs) {
      const what = flags.complete ? `released, and ${shown(handle.slot ?? "")} is done` : "released";
      terminal.say(`leasehold: ${shown(lease.key)} ${what}`);
      return exitCodes.done;
    }
    terminal.complain(
      `leasehold: ${shown(lease.key)} is not held by this handle any more: nothing was released`,
    );
    return exitCodes.lost;
  },
});
