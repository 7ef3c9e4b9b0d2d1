import type { LeaseRecord } from "@leasehold/client";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { durationText } from "../terminal/durations.ts";

export default command({
  usage: "ls [PREFIX]",
  writes: false,
  operands: [0, 1],
  flags: {},
  async run({ operands, connect, printer, clock, terminal, signal }) {
    const { client, place } = await connect();
    const [prefix] = operands;
    const rows: LeaseRecord[] = [];
    for await (const { leases } of client.listPages(prefix === undefined ? {} : { prefix })) {
      signal.throwIfAborted();
      rows.push(...leases);
    }
    rows.sort((one, other) => (one.key < other.key ? -1 : 1));
    const now = clock.now();
    printer.list({
      rows,
      columns: [
        { title: "KEY", cell: ({ key }) => key, gives: true },
        { title: "OWNER", cell: ({ owner }) => owner, gives: true },
        { title: "HELD FOR", cell: ({ acquiredAt }) => durationText(now - acquiredAt), align: "right" },
        { title: "ENDS IN", cell: ({ expiresAt }) => durationText(expiresAt - now), align: "right" },
      ],
      record: (row) => row,
      key: ({ key }) => key,
    });
    terminal.say(`${rows.length} keys. ${place}`);
    return exitCodes.done;
  },
});
