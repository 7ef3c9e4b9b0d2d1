/** Holds many locks in a process of its own, and tells what one heartbeat period takes. */
import { subscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ownCpuUs } from "../turns.ts";
import { type HeldLock, inParallel, placeAt, type Site } from "./contender.ts";
import { contenders } from "./contenders/index.ts";
import { fewestForMemory } from "./results.ts";

/** What a holder is started with. */
export interface HolderConfig {
  readonly id: string;
  readonly locks: number;
  readonly heartbeatMs: number;
  readonly site: Site;
}

/** What it tells at the end. */
export interface HolderReport {
  readonly requests: number;
  readonly cpuMs: number;
  readonly bytes: number | null;
}

const config = JSON.parse(process.argv[2] ?? "{}") as HolderConfig;
const { id, locks, heartbeatMs, site } = config;
const contender = contenders.find((one) => one.id === id);
if (contender === undefined) throw new Error(`there is no contender ${id}`);

let requests = 0;
// What goes over the wire, whatever library sends it.
subscribe("http.client.request.start", () => {
  requests += 1;
});
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const client = contender.open(placeAt(site), { leaseDurationMs: 3 * heartbeatMs, heartbeatMs });
const held: HeldLock[] = [];
const acquire = async (): Promise<void> => {
  held.push(await client.acquire(`held-${crypto.randomUUID()}`));
};
// The first ones load what is needed once, compile it, and drop what was there for the start.
const first = Math.ceil(locks / 10);
await inParallel(8, first, acquire);
const before = await heapBytes();
await inParallel(8, locks - first, acquire);
const bytes = locks < fewestForMemory ? null : ((await heapBytes()) - before) / (locks - first);
process.send?.("holding");
await once(process, "message");

const start = await used();
await sleep(heartbeatMs);
const end = await used();
const report: HolderReport = {
  requests: end.requests - start.requests,
  cpuMs: (end.cpuUs - start.cpuUs) / 1000,
  bytes,
};
process.send?.(report, () => process.exit());

async function heapBytes(): Promise<number> {
  if (client.runsIn !== undefined) return await client.runsIn.heapBytes();
  collect();
  return process.memoryUsage().heapUsed;
}

async function used(): Promise<{ readonly cpuUs: number; readonly requests: number }> {
  return (await client.runsIn?.used()) ?? { cpuUs: ownCpuUs(), requests };
}
