import { LeaseDashboard, LeaseTable, SingletonJob, SingletonJobTarget } from "@leasehold/cdk";
import { metricNames } from "@leasehold/client/metrics";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { everyFiveMinutes, functionIn, newStack, only, textOf } from "../support/constructs.ts";
import { machineIn } from "../support/jobs.ts";

interface Widget {
  readonly x: number;
  readonly width: number;
  readonly properties: {
    readonly title?: string;
    readonly markdown?: string;
    readonly alarms?: readonly string[];
  };
}

function dashboard(): { widgets: readonly Widget[]; text: string } {
  const stack = newStack();
  const table = new LeaseTable(stack, "Leases");
  const target = SingletonJobTarget.lambda(functionIn(stack));
  const job = new SingletonJob(stack, "Job", { table, jobName: "close", schedule: everyFiveMinutes, target });
  const workflow = machineIn(stack, "Workflow");
  new LeaseDashboard(stack, "Dashboard", { tables: [table], jobs: [job], workflows: [workflow] });
  const { Properties } = only(Template.fromStack(stack).findResources("AWS::CloudWatch::Dashboard"));
  const text = textOf(Properties.DashboardBody);
  return { widgets: JSON.parse(text).widgets, text };
}

describe("the dashboard", () => {
  const { widgets, text } = dashboard();
  const titles = widgets.map(({ properties }) => properties.title);

  test("shows every metric that clients and jobs write, but for single renewals and reported failures", () => {
    const unseen = Object.values(metricNames).filter((name) => !text.includes(`"${name}"`));
    // A renewal is no news, and a failed run is counted by Lambda, which sees crashes as well.
    expect(unseen).toEqual([metricNames.renewed, metricNames.jobFailed]);
    for (const ofTable of ["ConditionalCheckFailedRequests", "ThrottledRequests", "SuccessfulRequestLatency"])
      expect(text).toContain(`"${ofTable}"`);
  });

  test("shows wait and hold times as p50, p95 and maximum", () => {
    for (const title of ["Wait time (ms)", "Hold time (ms)"]) {
      const shown = JSON.stringify(widgets.find(({ properties }) => properties.title === title));
      for (const statistic of ["p50", "p95", "Maximum"]) expect(shown).toContain(`"stat":"${statistic}"`);
    }
  });

  test("has a row for the job with its runs, its dead letters and all of its alarms, and one for the workflow", () => {
    const rows = ["runs", "dead letters", "alarms"].map((part) => `Job close: ${part}`);
    expect(titles).toEqual(expect.arrayContaining(rows));
    const alarms = widgets.find(({ properties }) => properties.alarms);
    expect(alarms?.properties.alarms).toHaveLength(6);
    expect(titles.filter((title) => title?.startsWith("Workflow Test/Workflow"))).toHaveLength(3);
  });

  test("says how to list the holders, which no metric shows", () => {
    const holders = widgets.find(({ properties }) => properties.markdown?.includes("Holders"));
    expect(holders?.properties.markdown).toMatch(
      /SELECT "pk", "owner", "expiresAt", "fence" FROM "<Leases\w+>"/,
    );
    expect(holders?.properties.markdown).toContain(`WHERE "sk" = 'lease' AND "token" IS NOT MISSING`);
  });

  test("has no widget beyond the grid, and needs a table", () => {
    for (const { x, width } of widgets) expect(x + width).toBeLessThanOrEqual(24);
    expect(() => new LeaseDashboard(new Stack(), "Dashboard", { tables: [] })).toThrow(
      "tables is empty: name at least one lease table to show",
    );
  });
});
