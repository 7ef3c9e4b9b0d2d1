import {
  type CloudFormationTemplate,
  referenceTo,
  resourcesOf,
} from "../../../test/support/cloudformation.ts";
import type { Firing } from "./firing.ts";
import { handlerRun, wakeUp } from "./functions.ts";
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
  readonly Description: string;
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
  const fired = schedules.map(({ ScheduleExpression, Description }, index): RestingPart => {
    const { writeUnits, readUnits, releases, logged } = firings[index] as Firing;
    const once = { schedule: 1, writeUnit: writeUnits, readUnit: readUnits, logGigabyte: logged / 1e9 };
    const run = sumOf([handlerRun, 1], [once, 1], [wakeUp, releases]);
    const minutes = minutesBetween(ScheduleExpression);
    const often = minutes === 1 ? "each minute" : `each ${minutes} minutes`;
    return { part: `${often}: ${Description}`, usage: sumOf([run, minutesOfMonth / minutes]) };
  });
  const metrics = new Set(firings.flatMap((firing) => firing.metrics));
  const dashboards = resourcesOf(template, "AWS::CloudWatch::Dashboard").length;
  return [
    { part: `${alarms.length} alarms, on ${alarmMetric} metrics`, usage: { alarmMetric } },
    {
      part: `${metrics.size} metrics that these schedules' runs write`,
      usage: { customMetric: metrics.size },
    },
    { part: `${dashboards} dashboard`, usage: { dashboard: dashboards } },
    ...fired,
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
