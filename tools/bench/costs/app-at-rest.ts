import { setTimeout as delay } from "node:timers/promises";
import { waiterSortKeyPrefix } from "@leasehold/client/schema";
import type { Engine } from "@leasehold/engine";
import { type LocalAppEvent, startApp } from "@leasehold/local";
import {
  type CloudFormationTemplate,
  referenceTo,
  resourcesOf,
} from "../../../test/support/cloudformation.ts";
import { engineAt } from "../../../test/support/engine-at.ts";
import { type ProxiedRequest, startProxy } from "../../../test/support/proxy.ts";
import { handlerRun, isRelease, wakeUp } from "./functions.ts";
import { minutesOfMonth, sumOf, type Usage } from "./prices.ts";

/** A part of what the unused app costs in a month. */
export interface RestingPart {
  readonly part: string;
  readonly usage: Usage;
}

interface Alarm {
  readonly Metrics?: readonly { readonly MetricStat?: unknown }[];
}

interface ScheduleProperties {
  readonly ScheduleExpression: string;
  readonly State?: string;
  readonly Target: { readonly Arn: unknown };
}

/** What costs in a template of which nothing is used: what is there, and what its schedules fire. */
export async function appAtRest(
  template: CloudFormationTemplate,
  fire: (functions: readonly string[]) => Promise<readonly Firing[]>,
): Promise<RestingPart[]> {
  const alarms = resourcesOf(template, "AWS::CloudWatch::Alarm");
  const alarmMetric = alarmMetricsIn(template);
  const schedules = resourcesOf(template, "AWS::Scheduler::Schedule")
    .map(([, { Properties }]) => Properties as unknown as ScheduleProperties)
    .filter(({ State }) => State !== "DISABLED");
  const firings = await fire(schedules.map(({ Target }) => String(referenceTo(Target.Arn))));
  const fired = schedules.map(({ ScheduleExpression }, index): Usage => {
    const { writeUnits, readUnits, releases, logged } = firings[index] as Firing;
    const once = { schedule: 1, writeUnit: writeUnits, readUnit: readUnits, logGigabyte: logged / 1e9 };
    const run = sumOf([handlerRun, 1], [once, 1], [wakeUp, releases]);
    return sumOf([run, minutesOfMonth / minutesBetween(ScheduleExpression)]);
  });
  const metrics = new Set(firings.flatMap((firing) => firing.metrics));
  const dashboards = resourcesOf(template, "AWS::CloudWatch::Dashboard").length;
  return [
    { part: `${alarms.length} alarms, on ${alarmMetric} metrics`, usage: { alarmMetric } },
    {
      part: `${metrics.size} metrics that the schedules' runs write`,
      usage: { customMetric: metrics.size },
    },
    { part: `${dashboards} dashboard`, usage: { dashboard: dashboards } },
    { part: `${fired.length} schedules`, usage: sumOf(...fired.map((usage) => [usage, 1] as const)) },
  ];
}

/** The metrics of a template's alarms: an alarm on an expression is charged for each metric in it. */
export function alarmMetricsIn(template: CloudFormationTemplate): number {
  const alarms = resourcesOf(template, "AWS::CloudWatch::Alarm").map(
    ([, { Properties }]) => Properties as Alarm,
  );
  return alarms.reduce(
    (sum, { Metrics }) => sum + (Metrics?.filter(({ MetricStat }) => MetricStat !== undefined).length ?? 1),
    0,
  );
}

/** Of the two forms of schedules that the app has. */
function minutesBetween(expression: string): number {
  const found =
    /^rate\((\d+) minutes?\)$/.exec(expression) ?? /^cron\(0\/(\d+) \* \* \* \? \*\)$/.exec(expression);
  if (found === null) throw new Error(`cannot tell how often ${expression} is`);
  return Number(found[1]);
}

/** What one firing of a schedule does in an unused app. */
interface Firing {
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
/** A function's last lines may come after its answer: they have come when nothing has for so long. */
const quietMs = 1_000;

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
    for (let seen = -1; seen < events.length; ) {
      seen = events.length;
      await delay(quietMs);
    }
    // A release starts the waking function at a time of its own.
    const [{ functionName } = { functionName: name }] = app.environments(name);
    const { logged, metrics } = outputIn(events, functionName);
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

function outputIn(
  events: readonly LocalAppEvent[],
  functionName: string,
): Pick<Firing, "logged" | "metrics"> {
  let logged = 0;
  const metrics: string[] = [];
  for (const event of events) {
    if (event.type === "log" && event.log.functionName === functionName) logged += event.log.line.length;
    if (event.type !== "metric" || event.functionName !== functionName) continue;
    const { namespace, name, dimensions } = event.metric;
    metrics.push(JSON.stringify([namespace, name, dimensions]));
  }
  return { logged, metrics };
}
