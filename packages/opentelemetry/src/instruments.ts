/** The metrics: the counts and measurements of each event. They have a lock's key only if the user asks for it. */
import type { LeaseEvent } from "@leasehold/client";
import type { SingleFlightEvent } from "@leasehold/client/single-flight";
import type { Attributes, Counter, Meter, MetricAdvice } from "@opentelemetry/api";
import { attributeNames, metricNames, outcomes } from "./names.ts";

/** Returns the value of `leasehold.lock.key` on metrics: a group of keys, or undefined for none. */
export type KeyDimension = (key: string) => string | undefined;

const seconds = (ms: number): number => ms / 1_000;

/** From one request to DynamoDB to a wait in a queue. */
const shortTimes: MetricAdvice = {
  explicitBucketBoundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
};
/** From a critical section to a job of hours. */
const longTimes: MetricAdvice = {
  explicitBucketBoundaries: [0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 1_800, 3_600, 14_400],
};

/** Creates the instruments, and records with them. */
export class Instruments {
  readonly #keyOf: KeyDimension;
  readonly #recordAcquire: (ms: number, attributes: Attributes) => void;
  readonly #recordEvent: (event: LeaseEvent, of: Attributes) => void;
  readonly #recordFlight: (event: SingleFlightEvent, of: Attributes) => void;

  constructor(meter: Meter, keyOf: KeyDimension) {
    this.#keyOf = keyOf;
    const histogram = (name: string, description: string, advice: MetricAdvice) => {
      const made = meter.createHistogram(name, { description, unit: "s", advice });
      return (ms: number, attributes: Attributes): void => made.record(seconds(ms), attributes);
    };
    const counter = (name: string, unit: string, description: string): Counter =>
      meter.createCounter(name, { description, unit: `{${unit}}` });

    const { acquireDuration, heldDuration, computeDuration } = metricNames;
    this.#recordAcquire = histogram(
      acquireDuration,
      "How long calls to acquire took, with their wait, whatever their end was.",
      shortTimes,
    );
    const recordHeld = histogram(heldDuration, "How long leases were held.", longTimes);
    const lost = counter(metricNames.lost, "lease", "Leases that ended before they were released.");
    const takeovers = counter(
      metricNames.takeovers,
      "takeover",
      "Locks that were taken from a holder that had not released them.",
    );
    const renewals = counter(metricNames.renewals, "renewal", "Renewals that were confirmed.");
    const contentions = counter(
      metricNames.contentions,
      "contention",
      "Leases of other callers that calls to acquire met.",
    );
    const completionFailures = counter(
      metricNames.completionFailures,
      "slot",
      "Slots whose work is done and could not be recorded, so that it will run again.",
    );
    const mistakes = counter(
      metricNames.mistakes,
      "error",
      "Errors of the program that heartbeats, releases and other work in the background met.",
    );
    const skew = meter.createGauge(metricNames.clockSkew, {
      description:
        "By how much this machine's clock and the service's differ at least, where that is too much.",
      unit: "s",
    });
    const { lostReason, takeoverReason, outcome, operation, errorType, source } = attributeNames;

    this.#recordEvent = (event, of) => {
      switch (event.type) {
        case "lost":
          lost.add(1, { ...of, [lostReason]: event.reason });
          recordHeld(event.heldMs, { ...of, [outcome]: outcomes.lost });
          break;
        case "released":
          recordHeld(event.heldMs, { ...of, [outcome]: releaseOutcome(event.confirmed) });
          break;
        case "takeover":
          takeovers.add(1, { ...of, [takeoverReason]: event.reason });
          break;
        case "renewed":
          renewals.add(1, of);
          break;
        case "contended":
          contentions.add(1, of);
          break;
        case "completionFailed":
          completionFailures.add(1, { ...of, [errorType]: event.code });
          break;
        case "error":
          mistakes.add(1, { ...of, [operation]: event.operation, [errorType]: event.error.name });
          break;
        case "skew":
          skew.record(seconds(Math.max(0, event.offsetMinMs, -event.offsetMaxMs)));
          break;
      }
    };

    const recordCompute = histogram(computeDuration, "How long computations took.", shortTimes);
    const served = counter(metricNames.served, "value", "Values that callers of a SingleFlight got.");
    const cacheFailures = counter(
      metricNames.cacheFailures,
      "failure",
      "Failures of a SingleFlight's cache.",
    );
    this.#recordFlight = (event, of) => {
      switch (event.type) {
        case "computed":
          recordCompute(
            event.tookMs,
            event.error === undefined ? of : { ...of, [errorType]: errorName(event.error) },
          );
          break;
        case "served":
          served.add(1, { ...of, [source]: event.source });
          break;
        case "cacheFailed":
          cacheFailures.add(1, { ...of, [operation]: event.operation });
          break;
      }
    };
  }

  /** Records a call to acquire that has ended. */
  acquire(keys: readonly string[], ms: number, attributes: Attributes): void {
    const [key] = keys;
    this.#recordAcquire(ms, { ...attributes, ...(keys.length === 1 && this.#about(key)) });
  }

  /** Records an event of a client. */
  event(event: LeaseEvent): void {
    this.#recordEvent(event, this.#about("key" in event ? event.key : undefined));
  }

  /** Records an event of a SingleFlight. */
  flight(event: SingleFlightEvent): void {
    this.#recordFlight(event, this.#about(event.key));
  }

  #about(key: string | undefined): Attributes {
    return keyAttribute(key === undefined ? undefined : this.#keyOf(key));
  }
}

/** The attributes of metrics for a lock's key. */
export function keyAttribute(value: string | undefined): Attributes {
  return value === undefined ? {} : { [attributeNames.key]: value };
}

/** The outcome of a released lease. */
export function releaseOutcome(isConfirmed: boolean): string {
  return isConfirmed ? outcomes.released : outcomes.unconfirmed;
}

/** The value of `error.type` for an error: its code, such as `LEASE_LOST`, else its class. */
export function errorName(error: unknown): string {
  if (!(error instanceof Error)) return "_OTHER";
  const { code, name } = error as Error & { readonly code?: unknown };
  return typeof code === "string" && code !== "" ? code : name;
}
