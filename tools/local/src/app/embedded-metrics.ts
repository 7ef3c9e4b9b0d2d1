// Reads metrics from the lines that functions log, in CloudWatch's embedded metric format.

/** A measurement that a function logged in CloudWatch's embedded metric format. */
export interface Metric {
  readonly namespace: string;
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Every dimension of every set. */
  readonly dimensions: Readonly<Record<string, string>>;
  /** Epoch milliseconds. */
  readonly timestamp: number;
}

interface Directive {
  readonly Namespace?: unknown;
  readonly Dimensions?: unknown;
  readonly Metrics?: unknown;
}

/** Reads a log line of embedded metrics; undefined for any other line. */
export function parseEmbeddedMetrics(line: string): Metric[] | undefined {
  if (!line.includes('"_aws"')) return undefined;
  let members: Record<string, unknown>;
  try {
    members = JSON.parse(line) as Record<string, unknown>;
  } catch {
    // Ignored: reading text as JSON throws for nothing but text that is none.
    return undefined;
  }
  const { Timestamp, CloudWatchMetrics } = (members._aws ?? {}) as Record<string, unknown>;
  if (!Array.isArray(CloudWatchMetrics)) return undefined;
  const timestamp = typeof Timestamp === "number" ? Timestamp : 0;
  return CloudWatchMetrics.flatMap((directive: Directive) => metricsOf(directive, members, timestamp));
}

function metricsOf(directive: Directive, members: Record<string, unknown>, timestamp: number): Metric[] {
  const names = Array.isArray(directive.Dimensions) ? directive.Dimensions.flat().map(String) : [];
  const dimensions = Object.fromEntries(names.map((name) => [name, String(members[name])]));
  const metrics = Array.isArray(directive.Metrics) ? directive.Metrics : [];
  return metrics.flatMap(({ Name, Unit }: { Name?: unknown; Unit?: unknown }) => {
    const values = [members[String(Name)]].flat().filter((value) => typeof value === "number");
    return values.map((value) => ({
      namespace: String(directive.Namespace),
      name: String(Name),
      value,
      unit: typeof Unit === "string" ? Unit : "None",
      dimensions,
      timestamp,
    }));
  });
}
