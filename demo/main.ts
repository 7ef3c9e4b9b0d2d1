/**
 * The app of this repository, here: synthesized, and run on this machine with nothing to set up.
 *
 * A job that closes unpaid orders on several instances at once, with every mishap that can befall them, beside a
 * workflow that outlives many leases. Prints what happens, and ends with an audit. Exits with 1 if anything is wrong,
 * and ends its processes whatever happens.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { environmentNames } from "@leasehold/client/environment";
import {
  EngineUnavailableError,
  type LocalApp,
  type LocalAppEvent,
  startApp,
  startEngine,
} from "@leasehold/local";
import { readShop, seedShop } from "../functions/close-unpaid-orders/shop-table.ts";
import { audit, conclude } from "./audit.ts";
import { auditTransfers } from "./audit-transfers.ts";
import { Gate } from "./gate.ts";
import { Instances } from "./instances.ts";
import { Interruption, interruption } from "./interruption.ts";
import { plan, scheduledAt, shopAtStart, tickMs } from "./plan.ts";
import { Run } from "./run.ts";
import { Screen } from "./screen.ts";
import { synthesize } from "./synthesis.ts";
import { Transfers } from "./transfers.ts";

/** From the moment when everything is ready to the first tick; the orders are written in between. */
const leadMs = 500;

const screen = new Screen(Date.now());

/** Synthesizes the app and starts it, all but its schedules: the plan fires those. */
async function startHere(
  resources: AsyncDisposableStack,
  hear: (event: LocalAppEvent) => void,
): Promise<{ app: LocalApp; gate: Gate; documents: DynamoDBDocumentClient }> {
  const assemblyDir = await mkdtemp(join(tmpdir(), "leasehold-"));
  resources.defer(() => rm(assemblyDir, { recursive: true, force: true }));
  const cut = new AbortController();
  resources.defer(() => cut.abort());
  screen.note("Synthesizing infra/app.ts, and starting a DynamoDB ...");
  const [engine] = await Promise.all([startEngine(), synthesize(assemblyDir, cut.signal)]);
  resources.use(engine);
  const { endpoint } = engine.clientConfig;
  if (endpoint === undefined) {
    throw new Interruption(
      "The demonstration wants a DynamoDB on this machine: leave DYNAMODB_ENDPOINT unset.",
      1,
    );
  }
  const gate = resources.use(await Gate.open(endpoint));
  const environment = { AWS_ENDPOINT_URL_DYNAMODB: gate.url };
  const app = resources.use(
    await startApp({ assemblyDir, engine, schedules: false, environment, onEvent: hear }),
  );
  const { tables, functions, stateMachines } = app.spec;
  screen.note(
    `${engine.version} answers. The app: ${tables.length} tables, ${functions.length} functions, ` +
      `${stateMachines.length} state machines.`,
  );
  const dynamodb = resources.adopt(new DynamoDBClient(engine.clientConfig), async (client) =>
    client.destroy(),
  );
  return { app, gate, documents: DynamoDBDocumentClient.from(dynamodb) };
}

async function demonstrate(resources: AsyncDisposableStack): Promise<boolean> {
  if (process.platform === "win32") throw new Interruption("Windows has no SIGSTOP: use WSL.", 1);
  screen.title("Leasehold: a job on several instances at once, and a workflow that outlives its leases");
  const transfers = new Transfers(screen);
  let instances: Instances | undefined;
  const { app, gate, documents } = await startHere(resources, (event) => {
    if (event.type === "error") screen.note(`${event.where}: ${String(event.error)}`);
    transfers.hear(event);
    instances?.hear(event);
  });
  const run = new Run(screen, gate, (listener) => {
    instances = new Instances(app, listener);
    return instances;
  });
  const lease = leaseOf(app);
  screen.note(`A tick every ${tickMs / 1000} s; a run's lease lasts ${lease / 1000} s and is renewed.`);

  const shopTable = app.tableName("UnpaidOrders/Shop");
  const firstTickAt = Date.now() + leadMs;
  const before = shopAtStart(firstTickAt);
  await seedShop(documents, shopTable, before);
  screen.header();
  const transferred = await transfers.start(app, documents);
  await run.play(firstTickAt);
  const transferEvidence = await transferred();

  const lastScheduledAt = scheduledAt(firstTickAt, plan.length);
  const { closed, ...rest } = await readShop(documents, shopTable);
  const named = closed.map((order) => ({
    ...order,
    closedBy: instances?.nameOf(order.closedBy) ?? order.closedBy,
  }));
  const { deliveries, events, casualties } = run;
  const evidence = {
    deliveries,
    events,
    casualties,
    plan,
    lastScheduledAt,
    before,
    after: { ...rest, closed: named },
  };
  const checks = [...audit(evidence), ...auditTransfers(transferEvidence)];
  screen.audit(checks);
  const isRight = checks.every(({ ok }) => ok);
  screen.verdict(isRight, conclude(checks, evidence));
  return isRight;
}

function leaseOf(app: LocalApp): number {
  const job = app.spec.functions.find(({ environment }) => environment[environmentNames.job] !== undefined);
  return Number(job?.environment[environmentNames.lockAtMostForMs]);
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
