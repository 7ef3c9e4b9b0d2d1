// The monthly cost of a use of locks. The requests of each operation are those of docs/requests.md, for items of up to
// 1 KB.

import { prices, secondsOfMonth } from "./prices.ts";

/** A use of locks. */
export interface Use {
  readonly leaseMs: number;
  readonly hasHeartbeat: boolean;
  /** Leases that are held at any time. */
  readonly holders: number;
  readonly acquiresPerSecond: number;
  /** Callers that wait at any time. */
  readonly waiters: number;
}

/** One part of the cost. */
export interface CostLine {
  readonly what: "acquire and release" | "heartbeats" | "waiting";
  readonly requestsPerSecond: number;
  readonly writeUnits: number;
  readonly readUnits: number;
  readonly requestsAMonth: number;
  readonly usdAMonth: number;
}

/** An acquisition and a release are a write each. */
const writesOfUse = 2;
/** A heartbeat comes at a third of the lease, less a random share of up to a tenth of that. */
const beatShare = (1 / 3) * 0.95;
/** A caller that waits for ten minutes looks 124 times: eventually consistent reads, half a unit each. */
const looksPerSecond = 124 / 600;
const unitsOfLook = 0.5;

/** Calculates the parts with a cost. */
export function estimate({
  leaseMs,
  hasHeartbeat,
  holders,
  acquiresPerSecond,
  waiters,
}: Use): readonly CostLine[] {
  const beatsPerSecond = hasHeartbeat ? (holders * 1_000) / (leaseMs * beatShare) : 0;
  return [
    line("acquire and release", acquiresPerSecond * writesOfUse, { writeUnits: 1, readUnits: 0 }),
    line("heartbeats", beatsPerSecond, { writeUnits: 1, readUnits: 0 }),
    line("waiting", waiters * looksPerSecond, { writeUnits: 0, readUnits: unitsOfLook }),
  ].filter(({ requestsPerSecond }) => requestsPerSecond > 0);
}

function line(
  what: CostLine["what"],
  requestsPerSecond: number,
  { writeUnits, readUnits }: Pick<CostLine, "writeUnits" | "readUnits">,
): CostLine {
  const requestsAMonth = requestsPerSecond * secondsOfMonth;
  const usdAMonth = requestsAMonth * (writeUnits * prices.writeUnit + readUnits * prices.readUnit);
  return { what, requestsPerSecond, writeUnits, readUnits, requestsAMonth, usdAMonth };
}

const rateUnits = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

/** Reads `2/s`, `10/m`, `500/h`, `20/d` as a rate per second; undefined for everything else. */
export function parseRate(text: string): number | undefined {
  const [, count, unit] = /^(\d+(?:\.\d+)?)\/(s|m|h|d)$/.exec(text) ?? [];
  return unit === undefined ? undefined : Number(count) / rateUnits[unit as keyof typeof rateUnits];
}
