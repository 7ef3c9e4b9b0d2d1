import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import type { AcquireTrace, LeaseEvent, WorkTrace } from "@leasehold/client";
import {
  acquireChannel,
  aFunction,
  checkOptions,
  InvalidOptionsError,
  leaseEventTypes,
  type Rules,
  withMethods,
  workChannel,
} from "@leasehold/client/internal";
import { type SingleFlightEvent, singleFlightChannel } from "@leasehold/client/single-flight";
import {
  context,
  diag,
  type MeterProvider,
  metrics,
  type ObservableCallback,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import { Instruments, type KeyDimension, keyAttribute } from "./instruments.ts";
import { metricNames } from "./names.ts";
import { beginCall, type Call, endCall, HeldLeases, leave, noteInCall } from "./spans.ts";

/** Options of {@link instrumentLeasehold}. */
export interface InstrumentationOptions {
  /** Makes the spans. @default - the global one */
  readonly tracerProvider?: TracerProvider;
  /** Makes the metrics. @default - the global one, as it is at the call: start your SDK before */
  readonly meterProvider?: MeterProvider;
  /**
   * Whether metrics have the attribute `leasehold.lock.key`, which spans always have. Each value is a separate time
   * series, so a function can return a group of keys, such as `(key) => key.split("/")[0]`, or undefined for none.
   * @default false
   */
  readonly keyDimension?: boolean | KeyDimension;
}

const rules: Rules<InstrumentationOptions> = {
  tracerProvider: withMethods<TracerProvider>("getTracer"),
  meterProvider: withMethods<MeterProvider>("getMeter"),
  keyDimension: (option, value) => (typeof value === "boolean" ? value : aFunction(option, value)),
};

const scope = "@leasehold/opentelemetry";

/**
 * From now on, creates spans and metrics for all Leasehold clients of this process. The returned function ends that,
 * and also ends the spans of leases that are still held, and of calls that are under way.
 *
 * Call it once, after your OpenTelemetry SDK has started. It sends no requests, and neither tokens nor payloads. Spans of
 * calls to acquire and of leases are children of the span that was active in the call. Work that Leasehold calls under a
 * lease (`withLease`, `leased`, the work of jobs and tasks) runs in the lease's span. Throws InvalidOptionsError.
 *
 * ```ts
 * const stop = instrumentLeasehold({ keyDimension: (key) => key.split("/")[0] });
 * ```
 */
export function instrumentLeasehold(options: InstrumentationOptions = {}): () => void {
  const given = checkOptions(options, rules);
  const { tracerProvider = trace.getTracerProvider(), meterProvider = metrics.getMeterProvider() } = given;
  const { keyDimension = false } = given;
  const keyOf =
    typeof keyDimension === "function"
      ? checkedGroups(keyDimension)
      : (key: string) => (keyDimension ? key : undefined);
  const meter = meterProvider.getMeter(scope);
  const tracer = tracerProvider.getTracer(scope);
  const instruments = new Instruments(meter, keyOf);
  const leases = new HeldLeases(tracer);

  const held = meter.createObservableUpDownCounter(metricNames.held, {
    description: "Leases that this process holds.",
    unit: "{lease}",
  });
  const observe: ObservableCallback = (result) => {
    const counts = new Map<string | undefined, number>(keyDimension === true ? [] : [[undefined, 0]]);
    for (const value of leases.keys().map(keyOf)) counts.set(value, (counts.get(value) ?? 0) + 1);
    for (const [value, count] of counts) result.observe(count, keyAttribute(value));
  };
  held.addCallback(observe);

  const current = new AsyncLocalStorage<Call>();
  const underWay = new Map<AcquireTrace, Call>();
  const calls = tracingChannel<Call, AcquireTrace>(acquireChannel);
  calls.start.bindStore(current, (acquire) => {
    const call = beginCall(tracer, acquire);
    underWay.set(acquire, call);
    return call;
  });
  const stops = [
    listen<AcquireTrace>(`tracing:${acquireChannel}:asyncEnd`, (acquire) => {
      const call = underWay.get(acquire);
      if (call === undefined) return;
      underWay.delete(acquire);
      const ms = performance.now() - call.startedAt;
      instruments.acquire(acquire.keys, ms, endCall(call));
    }),
    ...leaseEventTypes.map((type) =>
      listen<LeaseEvent>(`leasehold:${type}`, (event) => {
        instruments.event(event);
        noteInSpans(event, leases, current.getStore());
      }),
    ),
    listen<WorkTrace>(workChannel, (work) => {
      const span = leases.spanOf(work);
      if (span === undefined) return;
      const inSpan = trace.setSpan(context.active(), span);
      const { run } = work;
      work.run = () => context.with(inSpan, run);
    }),
    listen<SingleFlightEvent>(singleFlightChannel, (event) => instruments.flight(event)),
  ];
  return () => {
    calls.start.unbindStore(current);
    for (const stop of stops) stop();
    held.removeCallback(observe);
    leases.stop();
    for (const { span } of underWay.values()) leave(span);
    underWay.clear();
  };
}

/** A mistake in the user's function leaves the key out: the error of a channel's subscriber would end the process. */
function checkedGroups(groupOf: KeyDimension): KeyDimension {
  return (key) => {
    try {
      const group: unknown = groupOf(key);
      if (group === undefined || typeof group === "string") return group;
      throw new InvalidOptionsError("keyDimension", group, "a function that gives a string or undefined");
    } catch (mistake) {
      diag.error("keyDimension failed", mistake);
      return undefined;
    }
  };
}

function noteInSpans(event: LeaseEvent, leases: HeldLeases, call: Call | undefined): void {
  switch (event.type) {
    case "acquired":
      leases.begin(event, call);
      break;
    case "renewed":
      leases.renew(event);
      break;
    case "lost":
    case "released":
      leases.end(event);
      break;
    case "contended":
    case "takeover":
      noteInCall(call, event);
      break;
  }
}

function listen<Message>(channelName: string, listener: (message: Message) => void): () => void {
  const onMessage = (message: unknown): void => listener(message as Message);
  subscribe(channelName, onMessage);
  return () => void unsubscribe(channelName, onMessage);
}
