/** The tables of docs/costs.md, and the writing of that page and of docs/requests.md. */
import type { JobOverlap } from "@leasehold/cdk";
import { Duration } from "aws-cdk-lib";
import { resourcesOf } from "../../../test/support/cloudformation.ts";
import { leaseholdTemplate } from "../../../test/support/cloudformation-app.ts";
import { requestsReport } from "../operations/index.ts";
import { functionRun, heartbeatHour, wakeUp } from "./functions.ts";
import { dollars, table, writeGenerated } from "./markdown.ts";
import {
  costOf,
  hoursOfMonth,
  minutesOfMonth,
  type Price,
  prices,
  pricesDate,
  pricesRegion,
  sumOf,
  type Usage,
} from "./prices.ts";
import { scaleReport } from "./scale.ts";
import { alarmMetricsIn, alarmsOfJob, heldRun, keeperHour, queuedRun, workflowRun } from "./workflows.ts";

const leases = [Duration.seconds(3), Duration.seconds(30), Duration.minutes(3), Duration.hours(1)];

/** Writes the generated parts of docs/costs.md, docs/requests.md and docs/scale.md anew. */
export async function writeCosts(): Promise<void> {
  await writeGenerated("requests.md", requestsReport());
  await writeGenerated("scale.md", scaleReport());
  await writeGenerated("costs.md", await costReport());
}

/** Gives the tables of docs/costs.md. */
export async function costReport(): Promise<string> {
  const sections = [
    section(
      "A lease that is held, an hour",
      "Renewed by a [keeper](DESIGN.md#the-keeper) or by a process's heartbeat. `renewals: together()` saves requests, not write units.",
      [
        ["lease", "keeper's transitions", "its writes", "$ a month", "heartbeat's writes", "$ a month"],
        ...(await Promise.all(leases.map(leaseRow))),
      ],
    ),
    section(
      "A run of a leased workflow",
      "With its keeper, the default lease of 3 minutes, and a call of the LeaseWakeup's function for each release.",
      [
        ["run", "transitions", "writes", "reads", "Lambda requests", "$ for 1,000"],
        ...(await workflowRows()),
      ],
    ),
    section(
      "A job each minute, a month",
      `${thousands(minutesOfMonth)} runs of a SingletonJob; a function takes 100 ms at 512 MB. Alarms cost the same for a rarer job, and metrics too if it runs each hour. The jobs of a table share half of the metrics, those of a stack the alarms of the keeper and of the redrive guard. \`alarms: false\` of the job and \`metrics: false\` of the middleware save them.`,
      [
        [
          "target and policy",
          "transitions",
          "writes",
          "Lambda requests",
          "$ runs",
          "$ alarms",
          "$ metrics",
          "$ in all",
        ],
        ...(await jobRows()),
      ],
    ),
    section(
      "The app at rest, a month",
      "This repository's app, deployed and not used. What its schedules run, and the metrics of that, come on top.",
      [["part", "$ a month"], ...restingRows()],
    ),
    section(`Prices, ${pricesRegion}, read on ${pricesDate}`, pricesNote, [
      ["for", "$"],
      ...Object.values(prices).map(priceRow),
    ]),
  ];
  return sections.join("\n\n");
}

const pricesNote =
  "Without free tiers, discounts and taxes. Each links to its source: AWS, or a page that quotes it.";

async function leaseRow(lease: Duration): Promise<string[]> {
  const keeper = await keeperHour(lease);
  const heartbeat = await heartbeatHour(lease.toMilliseconds());
  return [
    lease.toHumanString(),
    ...counts(keeper, "transition", "writeUnit"),
    monthly(keeper),
    ...counts(heartbeat, "writeUnit"),
    monthly(heartbeat),
  ];
}

async function workflowRows(): Promise<string[][]> {
  const runs: [string, Usage][] = [
    ["gets the lock at once", await workflowRun("fail")],
    ["finds it held, and skips or fails", await heldRun("skip")],
    ["finds it held, and waits for a dead holder's lease of a minute", await heldRun("wait")],
    ["finds it held, asks that holder to stop, and waits", await heldRun("replace")],
  ];
  return runs.map(([name, usage]) => [
    name,
    ...counts(usage, "transition", "writeUnit", "readUnit", "invocation"),
    dollars(1_000 * costOf(usage)),
  ]);
}

async function jobRows(): Promise<string[][]> {
  const queued = await functionRun("throw");
  const waited = sumOf([await queuedRun(), 1], [queued.run, 1], [wakeUp, 1]);
  type Job = readonly [policy: string, JobOverlap, { readonly run: Usage; readonly month?: Usage }];
  const functions: Job[] = [
    ["skip", "skip", await functionRun("skip")],
    ["skip, every run finds the lock held", "skip", await functionRun("skip", true)],
    ["replace, nobody to replace", "replace", await functionRun("replace")],
    ["queue, nobody to wait for", "queue", { ...queued, run: waited }],
  ];
  const workflows: Job[] = [
    ["fail, skip, wait or replace, lock free", "skip", { run: await workflowRun("fail") }],
    ["skip, every run finds the lock held", "skip", { run: await heldRun("skip") }],
  ];
  const rows = (target: "function" | "workflow", jobs: readonly Job[]): string[][] =>
    jobs.map(([policy, overlap, { run, month: metrics = {} }]) => {
      const runs = sumOf([run, minutesOfMonth], [{ schedule: 1 }, minutesOfMonth]);
      const costs = [runs, alarmsOfJob(target, overlap), metrics].map(costOf);
      const all = costs.reduce((sum, cost) => sum + cost, 0);
      return [
        `${target}: ${policy}`,
        ...counts(runs, "transition", "writeUnit", "invocation"),
        ...[...costs, all].map(dollars),
      ];
    });
  return [...rows("function", functions), ...rows("workflow", workflows)];
}

function restingRows(): string[][] {
  const { json: template } = leaseholdTemplate();
  const alarms = resourcesOf(template, "AWS::CloudWatch::Alarm").length;
  const dashboards = resourcesOf(template, "AWS::CloudWatch::Dashboard").length;
  const alarmMetric = alarmMetricsIn(template);
  return [
    [`${alarms} alarms, on ${alarmMetric} metrics`, dollars(costOf({ alarmMetric }))],
    [`${dashboards} dashboard`, dollars(costOf({ dashboard: dashboards }))],
  ];
}

function priceRow({ usd, for: what, source }: Price): string[] {
  const [per, name] = usd < 0.001 ? [1e6, `1,000,000 ${what}`] : [1, what];
  return [name, `[${Number((usd * per).toPrecision(8))}](${source})`];
}

function counts(usage: Usage, ...names: readonly (keyof Usage)[]): string[] {
  return names.map((name) => thousands(usage[name] ?? 0));
}

function monthly(hour: Usage): string {
  return dollars(hoursOfMonth * costOf(hour));
}

function thousands(count: number): string {
  return count.toLocaleString("en-US", { maximumFractionDigits: 1 });
}

function section(title: string, text: string, rows: readonly (readonly string[])[]): string {
  return [`## ${title}`, "", text, "", table(rows)].join("\n");
}
