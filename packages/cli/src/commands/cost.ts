import { command } from "../command.ts";
import { docsAddress } from "../docs.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { duration, text, whole, yes } from "../flags.ts";
import { type CostLine, estimate, parseRate } from "../money/estimate.ts";
import { prices } from "../money/prices.ts";
import { shown } from "../terminal/text.ts";

const defaultLeaseMs = 30_000;

export default command({
  usage: "cost [flags]",
  details: `
Calculates what a use of locks costs a month, on demand, for items of up to 1 KB. Sends nothing. Each started KB of data
counts once more in writes; a refused attempt costs as much as a successful one. Storage and other services come on top.

  leasehold cost --lease 30s --heartbeat --holders 20 --acquires 2/s --waiters 5`,
  writes: false,
  flags: {
    lease: duration("how long a lease lasts (default 30s)"),
    heartbeat: yes("leases are renewed, each at about a third of its duration"),
    holders: whole("how many leases are held at any time (default 1)", { least: 0, most: 10_000_000 }),
    acquires: text("RATE", "how often a lock is acquired and released: 2/s, 10/m, 500/h, 20/d (default 0)"),
    waiters: whole("how many callers wait at any time (default 0)", { least: 0, most: 10_000_000 }),
  },
  async run({ flags, global, printer, terminal }) {
    const { lease = defaultLeaseMs, holders = 1, acquires = "0/s", waiters = 0 } = flags;
    const acquiresPerSecond = parseRate(acquires);
    if (acquiresPerSecond === undefined) {
      throw new UsageError(
        `--acquires is "${shown(acquires)}"; allowed: a rate such as 2/s, 10/m, 500/h, 20/d`,
      );
    }
    if (lease === 0) throw new UsageError('--lease is "0"; allowed: a duration such as 30s');
    const lines = estimate({
      leaseMs: lease,
      hasHeartbeat: flags.heartbeat,
      holders,
      acquiresPerSecond,
      waiters,
    });
    const total = lines.reduce((sum, { usdAMonth }) => sum + usdAMonth, 0);
    const rows: readonly (CostLine | undefined)[] = [...lines, undefined];
    if (printer.format === "json") {
      printer.document("costs", { lines, usdAMonth: total, prices }, () => []);
    } else {
      printer.list({
        kind: "cost",
        rows,
        columns: [
          { title: "FOR", cell: (row) => row?.what ?? "total" },
          { title: "REQUESTS", cell: (row) => (row === undefined ? "" : rateText(row)), align: "right" },
          {
            title: "A MONTH",
            cell: (row) => (row === undefined ? "" : countText(row.requestsAMonth)),
            align: "right",
          },
          { title: "USD A MONTH", cell: (row) => (row?.usdAMonth ?? total).toFixed(2), align: "right" },
        ],
        record: (row) => row ?? { what: "total", usdAMonth: total },
        key: (row) => row?.what ?? "total",
      });
    }
    const elsewhere =
      global.region === undefined || global.region === prices.region
        ? ""
        : `, not of ${shown(global.region)}`;
    terminal.say(
      `Prices of ${prices.region}${elsewhere}, on demand, ${prices.date}; other regions differ: ${prices.source}`,
    );
    terminal.say(`see ${docsAddress("costs.md")}`);
    return exitCodes.done;
  },
});

/** `4.0/s × 1 write unit`; a rare request by the hour. */
function rateText({ requestsPerSecond, writeUnits, readUnits }: CostLine): string {
  const rate =
    requestsPerSecond >= 0.1
      ? `${requestsPerSecond.toFixed(1)}/s`
      : `${(requestsPerSecond * 3_600).toFixed(1)}/h`;
  return `${rate} × ${writeUnits > 0 ? `${writeUnits} write unit` : `${readUnits} read unit`}`;
}

function countText(count: number): string {
  if (count >= 1_000_000) return `${(count / 1_000_000).toFixed(1)} M`;
  return count >= 1_000 ? `${(count / 1_000).toFixed(1)} k` : count.toFixed(0);
}
