/**
 * The main job of this repository: closing unpaid orders on several instances at once, as real processes.
 *
 * Starts a DynamoDB, plays the plan with its mishaps, prints what happens, and ends with an audit. Exits with 1 if
 * anything is wrong, and ends its processes whatever happens.
 */

import { DeleteTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { createLeaseTable } from "@leasehold/client";
import { type Engine, EngineUnavailableError, startEngine } from "@leasehold/local";
import { createShopTable, readShop, seedShop } from "../functions/close-unpaid-orders/shop-table.ts";
import { audit, conclude } from "./audit.ts";
import { Fleet } from "./fleet.ts";
import { Interruption, interruption } from "./interruption.ts";
import { firstInstances, plan, scheduledAt, shopAtStart, times } from "./plan.ts";
import { Run } from "./run.ts";
import { Screen } from "./screen.ts";

/** From the moment when all instances are ready to the first tick; the orders are written in between. */
const leadMs = 500;

const screen = new Screen(Date.now());

/** Creates the lease table and the shop's. An endpoint that outlives the demonstration is left as it was found. */
async function createTables(
  resources: AsyncDisposableStack,
  engine: Engine,
  dynamodb: DynamoDBClient,
): Promise<{ leaseTable: string; shopTable: string }> {
  const suffix = Date.now().toString(36);
  const leaseTable = `leasehold-demo-${suffix}-leases`;
  const shopTable = `leasehold-demo-${suffix}-shop`;
  if (engine.name === "endpoint") {
    resources.defer(async () => {
      const removals = [leaseTable, shopTable].map((TableName) => new DeleteTableCommand({ TableName }));
      await Promise.allSettled(removals.map((command) => dynamodb.send(command)));
    });
  }
  await createLeaseTable({ tableName: leaseTable, dynamodb });
  await createShopTable(dynamodb, shopTable);
  return { leaseTable, shopTable };
}

async function demonstrate(resources: AsyncDisposableStack): Promise<boolean> {
  if (process.platform === "win32") throw new Interruption("Windows has no SIGSTOP: use WSL.", 1);
  screen.title("Leasehold: a job that closes unpaid orders, on several instances at once");
  const engine = resources.use(await startEngine());
  screen.note(`${engine.version} answers; starting ${firstInstances.length} instances ...`);
  const dynamodb = resources.adopt(new DynamoDBClient(engine.clientConfig), async (client) =>
    client.destroy(),
  );
  const documents = DynamoDBDocumentClient.from(dynamodb);
  const tables = await createTables(resources, engine, dynamodb);

  const run = new Run(screen);
  const fleet = resources.use(new Fleet({ clientConfig: engine.clientConfig, ...tables }, run));
  const instances = await fleet.start(firstInstances);
  screen.note(`Ready: ${instances.map(({ label }) => label).join(", ")}.`);
  const [tick, lease, atLeast] = [times.tickMs, times.leaseDurationMs, times.lockAtLeastForMs].map(
    (ms) => `${ms / 1000} s`,
  );
  screen.note(`A tick every ${tick}; a lease lasts ${lease}; a lock stays closed for at least ${atLeast}.`);

  const firstTickAt = Date.now() + leadMs;
  const before = shopAtStart(firstTickAt);
  await seedShop(documents, tables.shopTable, before);
  screen.header();
  await run.play(fleet, firstTickAt);

  const lastScheduledAt = scheduledAt(firstTickAt, plan.length);
  const after = await readShop(documents, tables.shopTable);
  const { deliveries, events, casualties } = run;
  const evidence = { deliveries, events, casualties, plan, lastScheduledAt, before, after };
  const checks = audit(evidence);
  screen.audit(checks);
  const isRight = checks.every(({ ok }) => ok);
  screen.verdict(isRight, conclude(checks, evidence));
  return isRight;
}

async function main(): Promise<number> {
  await using resources = new AsyncDisposableStack();
  const isRight = await Promise.race([demonstrate(resources), interruption()]);
  return isRight ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  const isExplained = error instanceof Interruption || error instanceof EngineUnavailableError;
  screen.verdict(false, isExplained ? error.message : String(error instanceof Error ? error.stack : error));
  // What was interrupted is still under way.
  process.exit(error instanceof Interruption ? error.exitCode : 1);
}
