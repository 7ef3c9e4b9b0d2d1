/** What it takes to hold one to ten thousand locks in one process: one contender after the other, each in processes of its own. */
import { messageFrom, startScript } from "../../../test/support/processes.ts";
import type { Contender, Site } from "./contender.ts";
import type { HolderConfig, HolderReport } from "./holder.ts";
import type { HoldingCost } from "./results.ts";

/** How many locks, and how often they are renewed. */
interface HoldingPlan {
  readonly locks: readonly number[];
  readonly heartbeatMs: number;
}

const script = new URL("./holder.ts", import.meta.url);

/**
 * Measures one heartbeat period, which begins when a contender holds all its locks. Side by side, five contenders with ten
 * thousand locks each ask the local engine for more renewals than it can serve.
 */
export async function measureHolding(
  contenders: readonly Contender[],
  site: Site,
  { locks: counts, heartbeatMs }: HoldingPlan,
): Promise<HoldingCost[]> {
  const costs: HoldingCost[] = [];
  for (const { id, cannot } of contenders) {
    if (id === "floor-again" || cannot.hold !== undefined) continue;
    const holders = counts.map((locks) => {
      const config: HolderConfig = { id, locks, heartbeatMs, site };
      return { locks, child: startScript(script, config, { ipc: true }) };
    });
    try {
      await Promise.all(holders.map(({ child }) => messageFrom(child)));
      const reports = holders.map(async ({ locks, child }) => {
        const report = messageFrom<HolderReport>(child);
        child.send("measure");
        return { id, locks, ...(await report) };
      });
      costs.push(...(await Promise.all(reports)));
    } finally {
      for (const { child } of holders) child.kill("SIGKILL");
    }
  }
  return costs;
}
