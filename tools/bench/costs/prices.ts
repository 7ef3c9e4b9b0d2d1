/** What AWS charges, and where that is said: in us-east-1, in US dollars, without the free tiers. */
export interface Price {
  readonly usd: number;
  /** What it is for, with the number of them. */
  readonly for: string;
  readonly source: string;
  /** Whether the source is AWS's own page, or a page that quotes it. */
  readonly confirmed: boolean;
}

/** When the sources were read. */
export const pricesDate = "2026-11-22";
export const pricesRegion = "us-east-1";

export const prices = {
  transition: {
    usd: 0.025 / 1_000,
    for: "a state transition of a Standard workflow",
    source: "https://aws.amazon.com/step-functions/pricing/",
    confirmed: true,
  },
  writeUnit: {
    usd: 0.625 / 1_000_000,
    for: "a write request unit, on demand",
    source: "https://airbyte.com/data-engineering-resources/dynamodb-pricing",
    confirmed: false,
  },
  readUnit: {
    usd: 0.125 / 1_000_000,
    for: "a read request unit, on demand",
    source: "https://airbyte.com/data-engineering-resources/dynamodb-pricing",
    confirmed: false,
  },
  invocation: {
    usd: 0.2 / 1_000_000,
    for: "a Lambda request",
    source: "https://cloudchipr.com/blog/aws-lambda-pricing",
    confirmed: false,
  },
  gigabyteSecond: {
    usd: 0.0000133334,
    for: "a GB-second of Lambda on Arm",
    source: "https://cloudchipr.com/blog/aws-lambda-pricing",
    confirmed: false,
  },
  schedule: {
    usd: 1 / 1_000_000,
    for: "an invocation by EventBridge Scheduler",
    source: "https://cloudburn.io/blog/amazon-eventbridge-pricing",
    confirmed: false,
  },
  customEvent: {
    usd: 1 / 1_000_000,
    for: "an event of one's own on EventBridge; those of AWS's services are free",
    source: "https://cloudburn.io/blog/amazon-eventbridge-pricing",
    confirmed: false,
  },
  alarmMetric: {
    usd: 0.1,
    for: "a metric of an alarm, a month",
    source: "https://c3x.dev/resources/aws/aws_cloudwatch_metric_alarm",
    confirmed: false,
  },
  customMetric: {
    usd: 0.3,
    for: "a metric of one's own, a month",
    source: "https://www.factualminds.com/blog/amazon-cloudwatch-pricing-metrics-logs-alarms-dashboards/",
    confirmed: false,
  },
  dashboard: {
    usd: 3,
    for: "a dashboard, a month",
    source: "https://www.factualminds.com/blog/amazon-cloudwatch-pricing-metrics-logs-alarms-dashboards/",
    confirmed: false,
  },
  logGigabyte: {
    usd: 0.5,
    for: "a GB of logs, taken in",
    source: "https://www.factualminds.com/blog/amazon-cloudwatch-pricing-metrics-logs-alarms-dashboards/",
    confirmed: false,
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
