import { LeaseDashboard, LeaseTable, SingletonJob, SingletonJobTarget } from "@leasehold/cdk";
import { metricNames } from "@leasehold/client/metrics";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { DefinitionBody, Pass, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";

interface Widget {
  readonly type: string;
  readonly x: number;
  readonly width: number;
  readonly properties: {
    readonly title?: string;
    readonly markdown?: string;
    readonly metrics?: readonly unknown[];
    readonly alarms?: readonly string[];
  };
}

function dashboard(): { widgets: readonly Widget[]; text: string } {
  const stack = new Stack(new App(), "Test", { env: { account: "111122223333", region: "eu-west-1" } });
  const table = new LeaseTable(stack, "Leases");
  const fn = new LambdaFunction(stack, "Work", {
    runtime: Runtime.NODEJS_24_X,
    handler: "index.handler",
    code: Code.fromInline("exports.handler = async () => {};"),
    timeout: Duration.seconds(50),
  });
  const job = new SingletonJob(stack, "Job", {
    table,
    jobName: "close-unpaid-orders",
    schedule: ScheduleExpression.rate(Duration.minutes(1)),
    target: SingletonJobTarget.lambda(fn),
  });
  const workflow = new StateMachine(stack, "Workflow", {
    definitionBody: DefinitionBody.fromChainable(new Pass(stack, "Pass")),
  });
  new LeaseDashboard(stack, "Dashboard", { tables: [table], jobs: [job], workflows: [workflow] });
  const [resource] = Object.values(Template.fromStack(stack).findResources("AWS::CloudWatch::Dashboard"));
  const parts: unknown[] = resource?.Properties.DashboardBody["Fn::Join"][1];
  const text = parts.map((part) => (typeof part === "string" ? part : "TOKEN")).join("");
  return { widgets: JSON.parse(text).widgets, text };
}

describe("the dashboard", () => {
  const { widgets, text } = dashboard();
  const titles = widgets.map(({ properties }) => properties.title);

  test("shows every metric that clients and jobs write, but for single renewals and reported failures", () => {
    const unseen = Object.values(metricNames).filter((name) => !text.includes(`"${name}"`));
    // A renewal is no news, and a failed run is counted by Lambda, which sees crashes as well.
    expect(unseen).toEqual([metricNames.renewed, metricNames.jobFailed]);
  });

  test("shows wait and hold times as p50, p95 and maximum", () => {
    for (const title of ["Wait time (ms)", "Hold time (ms)"]) {
      const shown = JSON.stringify(widgets.find(({ properties }) => properties.title === title));
      for (const statistic of ["p50", "p95", "Maximum"]) expect(shown).toContain(`"stat":"${statistic}"`);
    }
  });

  test("shows what the table says: refusals, throttles and latency", () => {
    expect(text).toContain('"ConditionalCheckFailedRequests"');
    expect(text).toContain('"ThrottledRequests"');
    expect(text).toContain('"SuccessfulRequestLatency"');
  });

  test("has a row for the job with its runs, its dead letters and all of its alarms", () => {
    expect(titles).toEqual(
      expect.arrayContaining([
        "Job close-unpaid-orders: runs",
        "Job close-unpaid-orders: dead letters",
        "Job close-unpaid-orders: alarms",
      ]),
    );
    const alarms = widgets.find(({ properties }) => properties.alarms);
    expect(alarms?.properties.alarms).toHaveLength(6);
  });

  test("has a row for the workflow", () => {
    expect(titles.filter((title) => title?.startsWith("Workflow Test/Workflow"))).toHaveLength(3);
  });

  test("says how to list the holders, which no metric shows", () => {
    const holders = widgets.find(({ properties }) => properties.markdown?.includes("Holders"));
    expect(holders?.properties.markdown).toContain('SELECT "pk", "owner", "expiresAt", "fence" FROM "TOKEN"');
    expect(holders?.properties.markdown).toContain(`WHERE "sk" = 'lease' AND "token" IS NOT MISSING`);
  });

  test("has no widget beyond the grid", () => {
    for (const { x, width } of widgets) expect(x + width).toBeLessThanOrEqual(24);
  });

  test("needs a table", () => {
    expect(() => new LeaseDashboard(new Stack(), "Dashboard", { tables: [] })).toThrow(
      "tables is empty: name at least one lease table to show",
    );
  });
});
