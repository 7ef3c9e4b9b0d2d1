import type { Clock, Lease, LeaseEventListener } from "@leasehold/client";
import {
  inMilliseconds,
  type KeyDimension,
  type Measurements,
  type MetricName,
  measurementsOf,
  metricNames,
  metricsLine,
} from "@leasehold/client/metrics";

/** A collector of metrics that the user flushes: the Metrics of Powertools. */
export interface MetricsCollector {
  addMetric(name: string, unit: "Count" | "Milliseconds", value: number): unknown;
}

/** What became of an invocation with a job. */
export type JobOutcome = "jobSucceeded" | "jobFailed" | "jobSkipped" | "jobPaused";

/** CloudWatch takes so many values of a metric in one line. */
const valuesALine = 100;

/** The parts of the metrics of a lock. */
export interface InvocationMetricsTerms {
  /** Undefined until a lease names it, if the user's own client is of another copy of the package. */
  tableName: string | undefined;
  readonly job: string | undefined;
  readonly groupOf: KeyDimension | undefined;
  readonly clock: Clock;
  readonly output: ((line: string) => void) | MetricsCollector;
}

/** Gathers what invocations do with their leases, and writes it in one line at the end of each invocation. */
export class InvocationMetrics {
  readonly #terms: InvocationMetricsTerms;
  /** How often each invocation has begun and not ended: a batch contains the invocations of its records. */
  readonly #running = new Map<unknown, number>();
  /** The measurements of leases, by the value of the dimension `Key`. */
  #ofLeases = new Map<string | undefined, Totals>();
  /** The measurements that are about no single lease. */
  #others = new Totals();

  constructor(terms: InvocationMetricsTerms) {
    this.#terms = terms;
  }

  /** Listens to the events of the lock's own client. Between invocations it writes at once. */
  readonly listen: LeaseEventListener = (event) => {
    const totals = "key" in event ? this.#totalsOf(event.key) : this.#others;
    totals.add(measurementsOf(event));
    if (this.#running.size === 0) this.write();
  };

  /** A lease was granted: it names the table. */
  granted(lease: Lease): void {
    this.#terms.tableName ??= lease.toJSON().tableName;
  }

  /** An invocation begins. It is known by its context. */
  begin(context: unknown): void {
    this.#running.set(context, (this.#running.get(context) ?? 0) + 1);
  }

  /** An invocation ends: writes what was measured since the last line, also by others that run at the same time. */
  end(context: unknown, outcome: JobOutcome | undefined): void {
    if (outcome !== undefined && this.#terms.job !== undefined)
      this.#others.add({ [metricNames[outcome]]: 1 });
    const count = (this.#running.get(context) ?? 1) - 1;
    if (count > 0) {
      this.#running.set(context, count);
      return;
    }
    this.#running.delete(context);
    this.write();
  }

  /** Writes what was measured since the last line. An invocation that may be killed calls it before its end. */
  write(): void {
    const groups = this.#ofLeases;
    const others = this.#others;
    this.#ofLeases = new Map();
    this.#others = new Totals();
    const [first] = groups.values();
    if (first === undefined) groups.set(undefined, others);
    else first.addAll(others);
    for (const [key, totals] of groups) this.#writeGroup(key, totals);
  }

  #writeGroup(key: string | undefined, totals: Totals): void {
    const { tableName, job, clock, output } = this.#terms;
    if (typeof output === "function") {
      if (tableName === undefined) return;
      for (const part of totals.lines())
        callOutput(() => output(metricsLine({ tableName, job, key }, part, clock.now())));
      return;
    }
    for (const [name, values] of totals) {
      const unit = inMilliseconds.includes(name) ? "Milliseconds" : "Count";
      for (const value of values) callOutput(() => output.addMetric(name, unit, value));
    }
  }

  /** Without a group that is a text, an event counts without a key: its error would end the process. */
  #groupOf(key: string): string | undefined {
    const { groupOf } = this.#terms;
    try {
      const group: unknown = groupOf?.(key);
      return typeof group === "string" && group !== "" ? group : undefined;
    } catch (mistake) {
      writeMistake(mistake);
      return undefined;
    }
  }

  #totalsOf(key: string): Totals {
    const group = this.#groupOf(key);
    const present = this.#ofLeases.get(group);
    if (present !== undefined) return present;
    const totals = new Totals();
    this.#ofLeases.set(group, totals);
    return totals;
  }
}

/** Calls the user's output. Its error, also a later one, must not fail an invocation that is done: it would come again. */
function callOutput(call: () => unknown): void {
  new Promise((told) => told(call())).catch(writeMistake);
}

function writeMistake(mistake: unknown): void {
  console.error("metrics failed:", mistake);
}

/** The values of each metric: one sum of a count, every sample of a time. */
class Totals extends Map<MetricName, number[]> {
  add(measurements: Measurements): void {
    for (const [name, value] of Object.entries(measurements) as [MetricName, number][]) {
      const values = this.get(name);
      if (values === undefined) this.set(name, [value]);
      else if (inMilliseconds.includes(name)) values.push(value);
      else values[0] = (values[0] ?? 0) + value;
    }
  }

  /** Adds totals of other metrics. */
  addAll(others: Totals): void {
    for (const [name, values] of others) this.set(name, values);
  }

  /** The measurements of each line: of one, unless a metric has more values than a line takes. */
  *lines(): Generator<Measurements, void, undefined> {
    for (let from = 0; ; from += valuesALine) {
      const parts = [...this].map(
        ([name, values]) => [name, values.slice(from, from + valuesALine)] as const,
      );
      const present = parts.filter(([, values]) => values.length > 0);
      if (present.length === 0) return;
      yield Object.fromEntries(
        present.map(([name, values]) => [name, values.length > 1 ? values : values[0]]),
      );
    }
  }
}
