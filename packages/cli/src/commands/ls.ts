import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { choice, duration, text, whole, yes } from "../flags.ts";
import { shown } from "../terminal/text.ts";
import { costText, pauseAfter } from "../view/read-cost.ts";
import { countsText, rowColumns, rowRecord, selectRows } from "../view/rows.ts";
import { clockNotice, readTable, type TableSnapshot, usualMostItems } from "../view/table-snapshot.ts";
import { looks, paceFlags } from "./polling.ts";

export const ls = command({
  usage: "ls [PREFIX]",
  details: `
Shows a line for each key that is held, closed or waited for. It reads the whole table, a megabyte a request; above
${usualMostItems.toLocaleString("en-US")} items it stops, and tells what the rest costs.

STATE  held      its time is not over
       EXPIRED   its time is over, and it was not released: the next caller takes it over
       grace     its time is over, but within the allowance for clocks (--skew)
       closed    released early, and closed until lockAtLeastFor is over
       stopping  its holder was asked to stop
       PAUSED    an operator keeps it closed
       free      nobody holds it: only with --tombstones

leasehold ls --expired -0 | xargs -0 -n1 leasehold get`,
  writes: false,
  flags: {
    all: yes("every primitive: job runs, task sets and caches too"),
    expired: yes("only what has expired and was not released"),
    tombstones: yes("free locks too"),
    owner: text("GLOB", "only what such an owner holds, as 'ip-10-0-3-*'"),
    older: duration("only what is held for at least so long"),
    sort: choice(
      ["age", "key", "ends"],
      "the longest held first, by key (default), or the next to end first",
    ),
    limit: whole("at most so many lines", { least: 1 }),
    watch: yes("look again and again"),
    ...paceFlags("how often to look with --watch"),
    scan: yes("read the table however large it is"),
    "fail-if-empty": yes("exit with 1 where nothing is found"),
  },
  async run({ flags, global, connect, printer, terminal, signal, clock }, prefix?: string) {
    const { client, place, describeTable } = await connect();
    const { limit, scan } = flags;
    const mostItems = scan ? Number.POSITIVE_INFINITY : usualMostItems;
    const look = (): Promise<TableSnapshot> => readTable(client, { prefix, mostItems, describeTable });
    const pace = { everyMs: flags.every, mostUnitsPerSecond: flags["max-rcu"] };
    const everyMs = ({ cost }: TableSnapshot): number => pauseAfter(cost, pace);
    const seen = flags.watch ? looks(look, { terminal, clock, signal, everyMs }) : [await look()];
    let found = 0;
    for await (const snapshot of seen) {
      if (flags.watch) terminal.clear();
      const rows = selectRows(snapshot, flags);
      found = rows.length;
      printer.list({
        kind: "lock",
        rows: rows.slice(0, limit),
        columns: rowColumns(global),
        record: rowRecord,
        key: ({ key }) => key,
      });
      for (const { key, message } of snapshot.unreadable) terminal.say(`${shown(key)}: ${shown(message)}`);
      if (!printer.isForPeople) continue;
      terminal.say(`${countsText(rows)}.  ${place} · ${costText(snapshot.cost)}`);
      terminal.sayIf(clockNotice(client));
    }
    return found === 0 && flags["fail-if-empty"] ? exitCodes.nothing : exitCodes.done;
  },
});
