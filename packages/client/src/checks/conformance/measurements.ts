/** The measurements of a store besides its conformance: latency, the throughput of one item, the largest batch. */

import { systemClock } from "../../base/clock.ts";
import { LeaseError } from "../../base/errors.ts";
import { mostUpdatesTogether } from "../../base/store.ts";
import { always, type CheckTable } from "./check.ts";
import type { ClockOffset } from "./metered-store.ts";
import { type ItemWrite, render } from "./write.ts";

const writesInTurn = 100;
const writesAtOnce = 200;
const measuringWriters = 10;

/** The measurements of a store. */
export interface ConformanceMeasurements {
  /** How long one conditional write of one item took, in milliseconds. */
  readonly writeMs: { readonly p50: number; readonly p99: number; readonly of: number };
  /** Conditional writes of one item a second, by 10 writers at the same time. */
  readonly writesPerSecond: number;
  /** How many writes of different items one request took; 1 if they are sent one by one. */
  readonly largestBatch: number;
  /** How far the service's clock is ahead of this machine's; undefined where the answers tell no time. */
  readonly clockOffset: ClockOffset | undefined;
}

/** Measures on the table's own items. */
export async function measure(
  table: CheckTable,
  signal: AbortSignal | undefined,
): Promise<Omit<ConformanceMeasurements, "clockOffset">> {
  const countUp: Omit<ItemWrite, "key"> = { set: { n: { of: "n", from: 0, by: 1 } }, insist: always };
  const times: number[] = [];
  for (let turn = 0; turn < writesInTurn; turn += 1) {
    signal?.throwIfAborted();
    times.push(await timed(() => table.write("latency", countUp)));
  }
  times.sort((one, other) => one - other);
  const rank = (share: number): number => times[Math.ceil(share * times.length) - 1] ?? 0;
  const tookMs = await timed(async () => {
    const each = Array.from({ length: writesAtOnce / measuringWriters });
    await Promise.all(
      Array.from({ length: measuringWriters }, async () => {
        for (const _ of each) await table.write("throughput", countUp);
      }),
    );
  });
  return {
    writeMs: { p50: rank(0.5), p99: rank(0.99), of: times.length },
    writesPerSecond: (writesAtOnce / tookMs) * 1_000,
    largestBatch: await largestBatch(table),
  };
}

async function largestBatch(table: CheckTable): Promise<number> {
  const names = Array.from({ length: mostUpdatesTogether }, (_, index) => `batch${index}`);
  // A batch changes existing items; a new item needs a separate write.
  for (const sk of names) await table.put(sk, { n: 1 });
  const requests = names.map((sk) => render({ key: table.key(sk), set: { n: 2 }, insist: [["n", "=", 1]] }));
  const results = await table.store.updateMany(requests, table.call);
  const taken = results.filter((result) => result !== undefined && !(result instanceof LeaseError));
  return Math.max(1, taken.length);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = systemClock.monotonic();
  await work();
  return systemClock.monotonic() - startedAt;
}
