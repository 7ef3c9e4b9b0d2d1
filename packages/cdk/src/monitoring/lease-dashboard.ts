import { type MetricName, metricNames } from "@leasehold/client/metrics";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import { Duration } from "aws-cdk-lib";
import {
  AlarmStatusWidget,
  Dashboard,
  GraphWidget,
  type IMetric,
  type IWidget,
  type Metric,
  Stats,
  TextWidget,
} from "aws-cdk-lib/aws-cloudwatch";
import { Operation } from "aws-cdk-lib/aws-dynamodb";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import type { SingletonJob } from "../jobs/singleton-job.ts";
import {
  aDuration,
  aListOf,
  aStateMachine,
  aTable,
  aText,
  checkProps,
  having,
  type Kinds,
  picked,
} from "../prop-kinds.ts";
import type { LeaseTable } from "../table/lease-table.ts";

/** Properties of {@link LeaseDashboard}. */
export interface LeaseDashboardProps {
  /** @default - a unique name that CloudFormation makes */
  readonly dashboardName?: string;
  /** How far back the graphs look by default. @default - a day */
  readonly defaultInterval?: Duration;
  /** Each job gets a row. @default - none */
  readonly jobs?: SingletonJob[];
  /** Each table gets rows; at least one. */
  readonly tables: LeaseTable[];
  /** State machines to show: leased workflows, and the keepers of leases. @default - none */
  readonly workflows?: IStateMachine[];
}

const kinds: Kinds<LeaseDashboardProps> = {
  dashboardName: aText,
  defaultInterval: aDuration,
  jobs: aListOf(having("a SingletonJob", "runs", "deadLetterQueue", "jobName")),
  tables: aListOf(aTable),
  workflows: aListOf(aStateMachine),
};

/**
 * A dashboard of leases: how often locks are taken, refused and lost, how long callers wait and hold, the table's own
 * metrics, and every job's runs with its alarms.
 *
 * It cannot show the holder of a lock: keys are no dimension of a metric, because CloudWatch would bill each key as a
 * metric. A text says how to list the holders.
 *
 * ```ts
 * new LeaseDashboard(this, "Dashboard", { tables: [table], jobs: [closeUnpaidOrders] });
 * ```
 */
export class LeaseDashboard extends Construct {
  readonly dashboard: Dashboard;

  constructor(scope: Construct, id: string, props: LeaseDashboardProps) {
    super(scope, id);
    const given = checkProps(props, kinds, "tables");
    const { tables, jobs = [], workflows = [] } = given;
    if (tables.length === 0) throw new Error("tables is empty: name at least one lease table to show");
    this.dashboard = new Dashboard(this, "Resource", {
      defaultInterval: Duration.days(1),
      ...picked(given, "dashboardName", "defaultInterval"),
    });
    const rows = [...tables.flatMap(tableRows), ...jobs.map(jobRow), ...workflows.map(workflowRow)];
    for (const widgets of rows) this.dashboard.addWidgets(...widgets);
  }
}

const fullWidth = 24;
const third = { width: fullWidth / 3, height: 6 };

const { acquired, contended, released, takenOver, lost, expired, completionFailed } = metricNames;
const { waitTime, holdTime } = metricNames;

function tableRows(table: LeaseTable): IWidget[][] {
  const counts = (...names: MetricName[]): Metric[] => names.map((name) => table.metric(name));
  const spread = (name: MetricName): Metric[] =>
    [Stats.p(50), Stats.p(95), Stats.MAXIMUM].map((statistic) =>
      table.metric(name, { statistic, label: statistic }),
    );
  const latency = (operation: Operation, statistic: string): Metric =>
    table.table.metricSuccessfulRequestLatency({
      dimensionsMap: { TableName: table.tableName, Operation: operation },
      statistic,
      label: `${operation} ${statistic}`,
    });
  return [
    [new TextWidget({ markdown: `# Leases in ${table.tableName}`, width: fullWidth, height: 1 })],
    row(
      graph("Acquisitions and contention", counts(acquired, contended, released)),
      graph(
        "Taken over, lost, expired, not recorded as done",
        counts(takenOver, lost, expired, completionFailed),
      ),
      graph("Clock skew beyond the allowance (ms)", [table.metricClockSkew({ statistic: Stats.MAXIMUM })]),
    ),
    row(graph("Wait time (ms)", spread(waitTime)), graph("Hold time (ms)", spread(holdTime)), holders(table)),
    row(
      graph("Refused conditional writes", [table.metricConditionalCheckFailedRequests()]),
      graph("Throttled requests", [
        table.table.metricThrottledRequestsForOperations({
          operations: [Operation.UPDATE_ITEM, Operation.GET_ITEM, Operation.BATCH_EXECUTE_STATEMENT],
        }),
      ]),
      graph("Latency of the table (ms)", [
        latency(Operation.UPDATE_ITEM, Stats.p(50)),
        latency(Operation.UPDATE_ITEM, Stats.p(99)),
        latency(Operation.GET_ITEM, Stats.p(99)),
      ]),
    ),
  ];
}

function jobRow(job: SingletonJob): IWidget[] {
  const { runs, deadLetterQueue, alarms, jobName } = job;
  const { succeeded, failed, skipped, paused } = runs;
  const others = [skipped, paused].filter((metric) => metric !== undefined);
  const counted = [succeeded, ...Object.values(failed), ...others];
  const depth = deadLetterQueue.metricApproximateNumberOfMessagesVisible({
    statistic: Stats.MAXIMUM,
    label: "messages",
  });
  return row(
    graph(`Job ${jobName}: runs`, counted),
    graph(`Job ${jobName}: dead letters`, [depth]),
    alarms && new AlarmStatusWidget({ title: `Job ${jobName}: alarms`, alarms: [...alarms.all], ...third }),
  );
}

function workflowRow(workflow: IStateMachine): IWidget[] {
  return row(
    graph(`Workflow ${workflow.node.path}: executions`, [
      workflow.metricStarted(),
      workflow.metricSucceeded(),
    ]),
    graph(`Workflow ${workflow.node.path}: went wrong`, [
      workflow.metricFailed(),
      workflow.metricTimedOut(),
      workflow.metricAborted(),
    ]),
    graph(`Workflow ${workflow.node.path}: duration (ms)`, [
      workflow.metricTime({ statistic: Stats.MAXIMUM }),
    ]),
  );
}

/** A text on how to see what no metric can show. */
function holders(table: LeaseTable): IWidget {
  const { partitionKey, sortKey, token, owner, expiresAt, fence } = attributeNames;
  const columns = [partitionKey, owner, expiresAt, fence].map((name) => `"${name}"`).join(", ");
  return new TextWidget({
    markdown: [
      "### Holders",
      "Keys are no metric's dimension. To see who holds what, call `list()` of a `LeaseAdmin`, or run in DynamoDB's",
      "PartiQL editor (it reads the whole table):",
      "```",
      `SELECT ${columns} FROM "${table.tableName}"`,
      `WHERE "${sortKey}" = '${leaseSortKey}' AND "${token}" IS NOT MISSING`,
      "```",
    ].join("\n"),
    ...third,
  });
}

function graph(title: string, left: IMetric[]): GraphWidget {
  return new GraphWidget({ title, left, leftYAxis: { min: 0 }, ...third });
}

function row(...widgets: (IWidget | undefined)[]): IWidget[] {
  return widgets.filter((widget) => widget !== undefined);
}
