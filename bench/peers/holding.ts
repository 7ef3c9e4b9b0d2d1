/** What it takes to hold one to ten thousand locks in one process: each contender in processes of its own, all side by side. */
import type { DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { messageFrom, startScript } from "../../test/support/processes.ts";
import type { Target } from "../../test/support/proxy.ts";
import type { Contender } from "./contender.ts";
import type { HolderConfig, HolderReport } from "./holder.ts";
import type { Tables } from "./place.ts";
import type { HoldingCost } from "./results.ts";

/** How many locks, and how often they are renewed. */
export interface HoldingPlan {
  readonly locks: readonly number[];
  readonly heartbeatMs: number;
}

const script = new URL("./holder.ts", import.meta.url);

/** Measures one heartbeat period, which begins when all of them hold all their locks. */
export async function measureHolding(
  contenders: readonly Contender[],
  engine: Target,
  tables: Tables,
  { locks: counts, heartbeatMs }: HoldingPlan,
): Promise<HoldingCost[]> {
  const clientConfig = engine.clientConfig as DynamoDBClientConfig;
  const compared = contenders.filter(({ id, cannot }) => id !== "floor-again" && cannot.hold === undefined);
  const holders = compared.flatMap(({ id }) =>
    counts.map((locks) => {
      const config: HolderConfig = { id, locks, heartbeatMs, clientConfig, tables };
      return { id, locks, child: startScript(script, config, { ipc: true }) };
    }),
  );
  try {
    await Promise.all(holders.map(({ child }) => messageFrom(child)));
    const reports = holders.map(async ({ id, locks, child }) => {
      const report = messageFrom<HolderReport>(child);
      child.send("measure");
      return { id, locks, ...(await report) };
    });
    return await Promise.all(reports);
  } finally {
    for (const { child } of holders) child.kill("SIGKILL");
  }
}
