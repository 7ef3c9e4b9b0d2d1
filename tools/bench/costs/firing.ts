import { setTimeout as delay } from "node:timers/promises";
import { waiterSortKeyPrefix } from "@leasehold/client/schema";
import type { Engine } from "@leasehold/engine";
import { type LocalAppEvent, startApp } from "@leasehold/local";
import { engineAt } from "../../../test/support/engine-at.ts";
import { type ProxiedRequest, startProxy } from "../../../test/support/proxy.ts";
import { isRelease } from "./functions.ts";

/** What one firing of a schedule does in an unused app. */
export interface Firing {
  readonly writeUnits: number;
  readonly readUnits: number;
  /** Locks that were released. */
  readonly releases: number;
  /** Characters that the function logs. */
  readonly logged: number;
  /** Namespace, name and dimensions of each metric that it writes. */
  readonly metrics: readonly string[];
}

const reads: ReadonlySet<string> = new Set(["GetItem", "Query", "Scan", "BatchGetItem"]);
/** A function's last lines may come after its answer. */
const lastLinesMs = 500;

/**
 * Runs a synthesized app on an engine, hands each function what its schedule would, one after the other, and counts what
 * that takes of DynamoDB, logs and metrics.
 */
export async function countFirings(
  assemblyDir: string,
  engine: Pick<Engine, "name" | "version"> & { readonly clientConfig: object },
  functions: readonly string[],
): Promise<Firing[]> {
  await using resources = new AsyncDisposableStack();
  const proxy = resources.adopt(await startProxy(engine), (started) => started.close());
  const events: LocalAppEvent[] = [];
  const app = resources.use(
    await startApp({
      engine: engineAt(proxy.clientConfig, engine),
      assemblyDir,
      tableSuffix: `-${crypto.randomUUID().slice(0, 8)}`,
      schedules: false,
      onEvent: (event) => events.push(event),
    }),
  );
  const firings: Firing[] = [];
  for (const name of functions) {
    const count = { writeUnits: 0, readUnits: 0, releases: 0 };
    proxy.reset();
    events.length = 0;
    proxy.always(isOfFunction, async (exchange) => {
      const { operation, body } = exchange.request;
      const answer = await exchange.forward({ ...body, ReturnConsumedCapacity: "TOTAL" });
      if (reads.has(operation)) count.readUnits += unitsIn(answer.body);
      // A refused write does not tell; it is billed like one that succeeds.
      else count.writeUnits += unitsIn(answer.body) || 1;
      if (isRelease({ update: String(body.UpdateExpression) })) count.releases += 1;
      exchange.reply(answer);
    });
    const scheduledTime = new Date(Math.floor(Date.now() / 1000) * 1000).toISOString();
    const { functionError, payload } = await app.invoke(name, { scheduledTime });
    if (functionError !== undefined) throw new Error(`${name} failed: ${JSON.stringify(payload)}`);
    await delay(lastLinesMs);
    const { logged, metrics } = outputIn(events);
    firings.push({ ...count, logged, metrics });
  }
  return firings;
}

/** Not what the table's stream is asked, nor what follows a release through it. */
function isOfFunction({ headers, body, operation }: ProxiedRequest): boolean {
  if (headers["x-amz-target"]?.startsWith("DynamoDBStreams")) return false;
  return !operation.endsWith("Table") && !JSON.stringify(body).includes(waiterSortKeyPrefix);
}

function unitsIn(body: string): number {
  const { ConsumedCapacity = [] } = JSON.parse(body) as { ConsumedCapacity?: { CapacityUnits: number } };
  return [ConsumedCapacity].flat().reduce((sum, { CapacityUnits }) => sum + CapacityUnits, 0);
}

function outputIn(events: readonly LocalAppEvent[]): Pick<Firing, "logged" | "metrics"> {
  let logged = 0;
  const metrics: string[] = [];
  for (const event of events) {
    if (event.type === "log") logged += event.log.line.length;
    if (event.type !== "metric") continue;
    const { namespace, name, dimensions } = event.metric;
    metrics.push(JSON.stringify([namespace, name, dimensions]));
  }
  return { logged, metrics };
}
