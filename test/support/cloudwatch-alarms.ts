import { withStandIns } from "./cloudformation.ts";
import { metricMath, type Series } from "./metric-math.ts";

/** What an alarm says. */
export type AlarmState = "OK" | "ALARM" | "INSUFFICIENT_DATA";

/** One measurement: when it was made, and when CloudWatch has it. In milliseconds. */
export interface Sample {
  readonly at: number;
  readonly arrivesAt: number;
  readonly value: number;
}

/** All measurements, by what {@link metricId} gives. */
export type Samples = ReadonlyMap<string, readonly Sample[]>;

/**
 * What AWS does not document of the evaluation, so that an alarm has to be right whatever it is.
 *
 * - `extraPoints`: by how many points the evaluation range is longer than the evaluation periods.
 * - `window`: whether periods end now (the documented default, "sliding"), or at multiples of the period: then the
 *   last one is the one that has begun, or the last that is complete.
 * - `fillsEmpty`: whether FILL fills a series without any point.
 */
export interface Undocumented {
  readonly extraPoints: number;
  readonly window: "sliding" | "begun" | "complete";
  readonly fillsEmpty: boolean;
}

type Properties = Readonly<Record<string, unknown>>;

const minute = 60_000;

/** Names a metric by its namespace, name and dimensions; references of a template stand for themselves. */
export function metricId(
  namespace: string,
  name: string,
  dimensions: Readonly<Record<string, string>>,
): string {
  const sorted = Object.entries(dimensions).sort(([one], [other]) => (one < other ? -1 : 1));
  return [namespace, name, ...sorted.map((pair) => pair.join("="))].join(" ");
}

interface Query {
  readonly id: string;
  readonly metric: string;
  readonly periodMs: number;
  readonly statistic: string;
}

/** An alarm as the template has it. */
export class TemplateAlarm {
  readonly queries: readonly Query[];
  readonly #expression: string | undefined;
  readonly #properties: Properties;
  readonly #evaluationPeriods: number;
  readonly #datapointsToAlarm: number;
  readonly #warmUpMs: number;

  constructor(properties: Properties) {
    this.#properties = properties;
    this.#evaluationPeriods = Number(properties.EvaluationPeriods);
    this.#datapointsToAlarm = Number(properties.DatapointsToAlarm ?? this.#evaluationPeriods);
    const warmUp = properties.WarmUpConfiguration as Properties | undefined;
    if (warmUp !== undefined && warmUp.OnlyStartEvaluatingAfterWarmUpPeriodEnds !== true) {
      throw new Error("a warm-up that ends early, with the first data, is not known");
    }
    this.#warmUpMs = Number(warmUp?.WarmUpPeriodDurationInMinutes ?? 0) * minute;
    const metrics = properties.Metrics as readonly Properties[] | undefined;
    if (metrics === undefined) {
      this.queries = [queryOf("metric", properties, properties)];
      return;
    }
    const [expression, ...more] = metrics.filter(({ Expression }) => Expression !== undefined);
    if (expression === undefined || more.length > 0) throw new Error("one expression is known, not several");
    this.#expression = String(expression.Expression);
    this.queries = metrics
      .filter((metric) => metric !== expression)
      .map(({ Id, MetricStat }) => {
        const stat = MetricStat as Properties;
        return queryOf(String(Id), stat.Metric as Properties, stat);
      });
    const periods = new Set(this.queries.map(({ periodMs }) => periodMs));
    if (periods.size !== 1) throw new Error("each metric of an expression has to have the same period");
  }

  /** The metrics that it looks at, as {@link metricId} names them. */
  get metrics(): readonly string[] {
    return this.queries.map(({ metric }) => metric);
  }

  /** How long a span it decides by. */
  get spanMs(): number {
    return this.#evaluationPeriods * this.#periodMs;
  }

  get #periodMs(): number {
    return this.queries[0]?.periodMs ?? 0;
  }

  /**
   * Gives the alarm's states from its creation on, one for each minute, with the minute.
   *
   * See "Configuring how CloudWatch alarms treat missing data", "Alarm evaluation" and "Alarm warm-up periods":
   * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
   * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
   * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-warm-up.html
   */
  history(
    samples: Samples,
    undocumented: Undocumented,
    { from, to }: { readonly from: number; readonly to: number },
  ): { readonly at: number; readonly state: AlarmState }[] {
    const states: { at: number; state: AlarmState }[] = [];
    const feeds = this.queries.map((query) => new Feed(query, samples.get(query.metric) ?? []));
    let state: AlarmState = "INSUFFICIENT_DATA";
    // An alarm that looks back on more than a day is evaluated once an hour, on whole hours.
    const every = this.spanMs > 24 * 60 * minute ? 60 * minute : minute;
    for (let at = from; at <= to; at += minute) {
      if (at - from >= this.#warmUpMs && at % every === 0) {
        state = this.#evaluated(this.#points(feeds, undocumented, at), state);
      }
      states.push({ at, state });
    }
    return states;
  }

  #points(feeds: readonly Feed[], { extraPoints, window, fillsEmpty }: Undocumented, now: number): Series {
    const period = this.#periodMs;
    const end = {
      sliding: now,
      begun: Math.ceil(now / period) * period,
      complete: Math.floor(now / period) * period,
    }[window];
    const count = this.#evaluationPeriods + extraPoints;
    const series = feeds.map((feed) => [feed.query.id, feed.points(now, end, count)] as const);
    if (this.#expression === undefined) return series[0]?.[1] ?? [];
    return metricMath(this.#expression, Object.fromEntries(series), { fillsEmpty });
  }

  #evaluated(points: Series, state: AlarmState): AlarmState {
    return evaluatePoints(
      points.map((value) => (value === undefined ? undefined : this.#breaches(value))),
      {
        evaluationPeriods: this.#evaluationPeriods,
        datapointsToAlarm: this.#datapointsToAlarm,
        treatMissingData: String(this.#properties.TreatMissingData ?? "missing"),
      },
      state,
    );
  }

  #breaches(value: number): boolean {
    const threshold = Number(this.#properties.Threshold);
    switch (this.#properties.ComparisonOperator) {
      case "GreaterThanOrEqualToThreshold":
        return value >= threshold;
      case "LessThanThreshold":
        return value < threshold;
      default:
        throw new Error(`the comparison ${this.#properties.ComparisonOperator} is not known`);
    }
  }
}

/** How an alarm decides. */
interface Deciding {
  readonly evaluationPeriods: number;
  readonly datapointsToAlarm: number;
  readonly treatMissingData: string;
}

/**
 * Decides by the points of the evaluation range, the oldest first: whether each breaches; undefined where it is missing.
 *
 * Real points come first, however old; what is missing beyond them is treated as the alarm says.
 */
function evaluatePoints(
  range: readonly (boolean | undefined)[],
  { evaluationPeriods, datapointsToAlarm, treatMissingData }: Deciding,
  state: AlarmState,
): AlarmState {
  const real = range.filter((breaches) => breaches !== undefined).slice(-evaluationPeriods);
  const missing = evaluationPeriods - real.length;
  const breaching = real.filter(Boolean).length;
  const decided = (count: number): AlarmState => (count >= datapointsToAlarm ? "ALARM" : "OK");
  if (missing === 0 || breaching >= datapointsToAlarm) return decided(breaching);
  switch (treatMissingData) {
    case "breaching":
      return decided(breaching + missing);
    case "notBreaching":
      return "OK";
    case "ignore":
      return breaching < real.length ? "OK" : state;
    default:
      throw new Error(`${treatMissingData} is no treatment of missing data`);
  }
}

/** A metric's measurements, read by one evaluation after the other. */
class Feed {
  readonly query: Query;
  readonly #samples: readonly Sample[];
  #first = 0;

  constructor(query: Query, samples: readonly Sample[]) {
    this.query = query;
    this.#samples = [...samples].sort((one, other) => one.at - other.at);
  }

  /** Gives the last periods before `end`, by what has arrived now. Both have to grow from call to call. */
  points(now: number, end: number, count: number): Series {
    const { periodMs, statistic } = this.query;
    const samples = this.#samples;
    const buckets: number[][] = Array.from({ length: count }, () => []);
    const isPast = ({ at }: Sample): boolean => minuteOf(at) < end - count * periodMs;
    for (let next = samples[this.#first]; next && isPast(next); next = samples[this.#first]) this.#first += 1;
    for (let index = this.#first; index < samples.length; index += 1) {
      const { at, arrivesAt, value } = samples[index] as Sample;
      const age = Math.ceil((end - minuteOf(at)) / periodMs) - 1;
      if (age < 0) break;
      if (arrivesAt <= now) buckets[count - 1 - age]?.push(value);
    }
    return buckets.map((values) => aggregate(statistic, values));
  }
}

/** Metrics of standard resolution are kept by the minute. */
function minuteOf(at: number): number {
  return Math.floor(at / minute) * minute;
}

function queryOf(id: string, metric: Properties, stat: Properties): Query {
  const dimensions = withStandIns(metric.Dimensions ?? [], (...names) => names.join(".")) as readonly {
    readonly Name: string;
    readonly Value: string;
  }[];
  return {
    id,
    metric: metricId(
      String(metric.Namespace),
      String(metric.MetricName),
      Object.fromEntries(dimensions.map(({ Name, Value }) => [Name, Value])),
    ),
    periodMs: Number(stat.Period) * 1_000,
    statistic: String(stat.Statistic ?? stat.Stat),
  };
}

function aggregate(statistic: string, values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  switch (statistic) {
    case "Sum":
      return values.reduce((all, one) => all + one);
    case "Maximum":
      return Math.max(...values);
    default:
      throw new Error(`the statistic ${statistic} is not known`);
  }
}
