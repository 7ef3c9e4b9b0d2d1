import { metricId, type Sample, type Samples, type Undocumented } from "./cloudwatch-alarms.ts";

interface EmbeddedMetrics {
  readonly _aws: {
    readonly Timestamp: number;
    readonly CloudWatchMetrics: readonly {
      readonly Namespace: string;
      readonly Dimensions: readonly (readonly string[])[];
      readonly Metrics: readonly { readonly Name: string }[];
    }[];
  };
  readonly [field: string]: unknown;
}

/** Measurements that a test makes up; each can arrive late. */
export class SyntheticMetrics {
  readonly #samples = new Map<string, Sample[]>();

  get samples(): Samples {
    return this.#samples;
  }

  /** Adds a measurement of a metric that AWS writes. */
  add(metric: string, at: number, value = 1, lateMs = 0): void {
    const known = this.#samples.get(metric) ?? [];
    known.push({ at, arrivesAt: at + lateMs, value });
    this.#samples.set(metric, known);
  }

  /** Adds what CloudWatch finds in a log line in the embedded metric format. */
  addLine(line: string, lateMs = 0): void {
    const fields = JSON.parse(line) as EmbeddedMetrics;
    for (const { Namespace, Dimensions, Metrics } of fields._aws.CloudWatchMetrics) {
      for (const names of Dimensions) {
        const dimensions = Object.fromEntries(names.map((name) => [name, String(fields[name])]));
        for (const { Name } of Metrics) {
          const id = metricId(Namespace, Name, dimensions);
          this.add(id, fields._aws.Timestamp, Number(fields[Name]), lateMs);
        }
      }
    }
  }
}

/** Everything that AWS may do where it does not say what it does. */
export const allUndocumented: readonly Undocumented[] = [0, 2, 10].flatMap((extraPoints) =>
  (["sliding", "begun", "complete"] as const).flatMap((window) =>
    [true, false].map((fillsEmpty) => ({ extraPoints, window, fillsEmpty })),
  ),
);
