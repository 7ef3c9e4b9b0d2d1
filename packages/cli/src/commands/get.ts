import { LeaseOperator } from "@leasehold/client/admin";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { text } from "../flags.ts";
import { pastHolders } from "../view/holders.ts";
import { isHeld, keyRows } from "../view/key-rows.ts";
import { nextSteps } from "../view/next-steps.ts";
import { leaseRecord, rowRecord } from "../view/row-record.ts";
import { clockNotice } from "../view/service-time.ts";
import { keyReport } from "./shared/key-report.ts";

const shownHolders = 5;

export default command({
  usage: "get KEY",
  details: `
Shows everything about a key: who holds it and whether that holder is alive, who waits, who had it before, what operators
have done, and command lines for what you can do. 1 consistent query for each megabyte under the key, and 1 for its history.

Exits with 0 where the key is held or closed, and with 1 where it is free.`,
  writes: false,
  operands: [1, 1],
  flags: {
    place: text("SORTKEY", "only the lease at this sort key, where the key has several"),
  },
  async run({ operands: [key = ""], flags: { place }, global, connect, printer, terminal, by }) {
    const { client } = await connect();
    const operator = new LeaseOperator(client, { by });
    const read = await operator.describe(key);
    const details =
      place === undefined
        ? read
        : { ...read, leases: read.leases.filter(({ sortKey }) => sortKey === place) };
    const rows = keyRows(details);
    const holders = await pastHolders(operator, details, shownHolders);
    const record = {
      ...details,
      rows: rows.map((row) => rowRecord(row)),
      leases: details.leases.map((lease) => leaseRecord(lease, details.readAt)),
      holders,
      nextSteps: nextSteps(details),
    };
    printer.document("key", record, () =>
      keyReport(details, holders, {
        columns: terminal.columns,
        paint: terminal.paint,
        zone: global.local ? "local" : "utc",
        isWide: printer.format === "wide",
      }),
    );
    if (printer.isForPeople) terminal.sayIf(clockNotice(client));
    return rows.some(isHeld) ? exitCodes.done : exitCodes.nothing;
  },
});
