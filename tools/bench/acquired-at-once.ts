/**
 * Acquires many locks at once, with heartbeats, and watches how many are lost. By hand, for it takes a minute:
 *
 *     npx tsx --conditions=leasehold-source tools/bench/acquired-at-once.ts [--engine=dynoxide] [--leases=2000] [--ms=15000]
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { LeaseEvent } from "@leasehold/client";
import { together } from "@leasehold/client/together";
import { type LocalEngineName, startEngine } from "@leasehold/engine";
import { makeTable } from "../../test/support/table.ts";
import { countRequests, listed } from "./counted.ts";
import { heading, table } from "./report.ts";

const { values } = parseArgs({
  options: {
    engine: { type: "string", default: "dynamodb-local" },
    leases: { type: "string", default: "2000" },
    ms: { type: "string", default: "15000" },
  },
});
const leaseDurationMs = Number(values.ms);
await using engine = await startEngine({ engine: values.engine as LocalEngineName });
const leases = await makeTable(engine);
const counter = countRequests(leases.dynamodb);
const tally = new Map<LeaseEvent["type"], number>();
const client = leases.client({
  leaseDurationMs,
  renewals: together(),
  onEvent: ({ type }) => void tally.set(type, (tally.get(type) ?? 0) + 1),
});
const start = performance.now();
const row = (when: string): string[] => [
  when,
  String(Math.round(performance.now() - start)),
  ...(["acquired", "renewed", "lost"] as const).map((type) => String(tally.get(type) ?? 0)),
  listed(counter.sent),
];

const keys = Array.from({ length: Number(values.leases) }, () => leases.newKey());
const results = await Promise.allSettled(keys.map((key) => client.acquire(key, { heartbeat: true })));
const rows = [row("acquired")];
await sleep(2 * leaseDurationMs);
rows.push(row("two leases later"));
heading(
  `${keys.length} locks at once, ${results.filter(({ status }) => status === "rejected").length} rejected`,
);
table(["", "ms", "acquired", "renewed", "lost", "requests"], rows);
leases.close();
// The heartbeats would go on without their engine.
process.exitCode = tally.has("lost") ? 1 : 0;
