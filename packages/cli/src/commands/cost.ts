// The monthly cost of a use of locks. The requests of each operation are those of docs/requests.md, for items of up to
// 1 KB.

import { command } from "../command.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { custom, duration, usually, whole, yes } from "../flags.ts";
import { docsAddress, shown } from "../terminal/text.ts";
import { prices, secondsOfMonth } from "../view/read-cost.ts";

/** An acquisition and a release are a write each. */
const writesOfUse = 2;
/** A heartbeat comes at a third of the lease, less a random share of up to a tenth of that. */
const beatShare = (1 / 3) * 0.95;
/** A caller that waits for ten minutes looks 124 times: eventually consistent reads, half a unit each. */
const looksPerSecond = 124 / 600;
const unitsOfLook = 0.5;

/** A part of the cost: its requests, and the units of each. */
function part(what: string, requestsPerSecond: number, units: { writeUnits: number; readUnits: number }) {
  const { writeUnits, readUnits } = units;
  const requestsAMonth = requestsPerSecond * secondsOfMonth;
  const usdAMonth = requestsAMonth * (writeUnits * prices.writeUnit + readUnits * prices.readUnit);
  return { what, requestsPerSecond, ...units, requestsAMonth, usdAMonth };
}
type Part = ReturnType<typeof part>;

const rateUnits = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

/** Reads `2/s`, `10/m`, `500/h`, `20/d` as a rate per second. Throws a UsageError. */
function parseRate(text: string, name: string): number {
  const [, count, unit] = /^(\d+(?:\.\d+)?)\/(s|m|h|d)$/.exec(text) ?? [];
  if (unit !== undefined) return Number(count) / rateUnits[unit as keyof typeof rateUnits];
  throw new UsageError(`${name} is "${text}"; allowed: a rate such as 2/s, 10/m, 500/h, 20/d`);
}

const flags = {
  lease: usually(duration("how long a lease lasts (default 30s)"), 30_000),
  heartbeat: yes("leases are renewed, each at about a third of its duration"),
  holders: usually(whole("how many leases are held at any time (default 1)", { most: 10_000_000 }), 1),
  acquires: usually(
    custom(
      "RATE",
      "how often a lock is acquired and released: 2/s, 10/m, 500/h, 20/d (default 0)",
      parseRate,
    ),
    0,
  ),
  waiters: usually(whole("how many callers wait at any time (default 0)", { most: 10_000_000 }), 0),
};

export const cost = command({
  usage: "cost [flags]",
  details: `
Calculates what a use of locks costs a month, on demand, for items of up to 1 KB. Sends nothing. Each started KB of data
counts once more in writes; a refused attempt costs as much as a successful one. Storage and other services come on top.

  leasehold cost --lease 30s --heartbeat --holders 20 --acquires 2/s --waiters 5`,
  writes: false,
  flags,
  async run({ flags, global, printer, terminal }) {
    const { lease, heartbeat, holders, acquires, waiters } = flags;
    if (lease === 0) throw new UsageError('--lease is "0"; allowed: a duration such as 30s');
    const beats = heartbeat ? (holders * 1_000) / (lease * beatShare) : 0;
    const write = { writeUnits: 1, readUnits: 0 };
    const lines = [
      part("acquire and release", acquires * writesOfUse, write),
      part("heartbeats", beats, write),
      part("waiting", waiters * looksPerSecond, { writeUnits: 0, readUnits: unitsOfLook }),
    ].filter(({ requestsPerSecond }) => requestsPerSecond > 0);
    const total = lines.reduce((sum, { usdAMonth }) => sum + usdAMonth, 0);
    const rows: readonly (Part | undefined)[] = [...lines, undefined];
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
function rateText({ requestsPerSecond, writeUnits, readUnits }: Part): string {
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
