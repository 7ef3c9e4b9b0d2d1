/** What AWS charges, and where that is said: in us-east-1, in US dollars, without the free tiers. */
export interface Price {
  readonly usd: number;
  /** What it is for: one of them, or millions of them where one costs next to nothing. */
  readonly for: string;
  /** AWS's own page, or one that quotes it. */
  readonly source: string;
}

/** When the sources were read. */
export const pricesDate = "2026-11-22";
export const pricesRegion = "us-east-1";

export const prices = {
  transition: {
    usd: 0.025 / 1_000,
    for: "state transitions of a Standard workflow",
    source: "https://aws.amazon.com/step-functions/pricing/",
  },
  writeUnit: {
    usd: 0.625 / 1_000_000,
    for: "write request units",
    source: "https://airbyte.com/data-engineering-resources/dynamodb-pricing",
  },
  readUnit: {
    usd: 0.125 / 1_000_000,
    for: "read request units",
    source: "https://airbyte.com/data-engineering-resources/dynamodb-pricing",
  },
  invocation: {
    usd: 0.2 / 1_000_000,
    for: "Lambda requests",
    source: "https://cloudchipr.com/blog/aws-lambda-pricing",
  },
  gigabyteSecond: {
    usd: 0.0000133334,
    for: "GB-seconds of Lambda on Arm",
    source: "https://cloudchipr.com/blog/aws-lambda-pricing",
  },
  schedule: {
    usd: 1 / 1_000_000,
    for: "invocations by EventBridge Scheduler",
    source: "https://cloudburn.io/blog/amazon-eventbridge-pricing",
  },
  alarmMetric: {
    usd: 0.1,
    for: "a metric of an alarm, a month",
    source: "https://c3x.dev/resources/aws/aws_cloudwatch_metric_alarm",
  },
  customMetric: {
    usd: 0.3,
    for: "an own metric, a month",
    source: "https://www.factualminds.com/blog/amazon-cloudwatch-pricing-metrics-logs-alarms-dashboards/",
  },
  dashboard: {
    usd: 3,
    for: "a dashboard, a month",
    source: "https://www.factualminds.com/blog/amazon-cloudwatch-pricing-metrics-logs-alarms-dashboards/",
  },
} as const satisfies Readonly<Record<string, Price>>;

/** What is charged for: how many of each. */
export type Usage = { readonly [name in keyof typeof prices]?: number };

/** Months as AWS counts them, of 730 hours. */
export const hoursOfMonth = 730;
export const minutesOfMonth: number = hoursOfMonth * 60;

/** What a usage costs, in US dollars. */
export function costOf(usage: Usage): number {
  return Object.entries(usage).reduce(
    (sum, [name, count]) => sum + prices[name as keyof Usage].usd * count,
    0,
  );
}

/** Usages together, each so many times. */
export function sumOf(...parts: readonly (readonly [usage: Usage, times: number])[]): Usage {
  const sum: Record<string, number> = {};
  for (const [usage, times] of parts) {
    for (const [name, count] of Object.entries(usage)) sum[name] = (sum[name] ?? 0) + count * times;
  }
  return sum;
}
