/**
 * The spans: one for each call to acquire, and one for each lease from its grant to its end. Both are children of the
 * span that was active in the call; the lease's span links to the call's. The work under a lease runs in its span.
 */
import type {
  AcquiredEvent,
  AcquireTrace,
  ContendedEvent,
  LostEvent,
  ReleasedEvent,
  RenewedEvent,
  TakeoverEvent,
  WorkTrace,
} from "@leasehold/client";
import { saying } from "@leasehold/client/internal";
import { type Attributes, type Span, SpanStatusCode, type Tracer } from "@opentelemetry/api";
import { errorName, releaseOutcome } from "./instruments.ts";
import { attributeNames, outcomes, spanNames } from "./names.ts";

const { outcome, errorType, lostReason, takeoverReason } = attributeNames;

/** A call to acquire that is under way. */
export interface Call {
  readonly trace: AcquireTrace;
  readonly span: Span;
  /** On the monotonic clock. */
  readonly startedAt: number;
}

/** Outcomes that are answers and not failures, by the code of their error. */
const answers: Readonly<Record<string, string>> = {
  LEASE_UNAVAILABLE: outcomes.unavailable,
  LEASE_QUEUE_FULL: outcomes.queueFull,
  LEASE_SLOT_DONE: outcomes.slotDone,
  LEASE_ABORTED: outcomes.aborted,
};

/** Begins the span of a call. */
export function beginCall(tracer: Tracer, trace: AcquireTrace): Call {
  const { keys, sortKey, owner, tableName } = trace;
  const attributes = {
    [attributeNames.key]: keys.length === 1 ? keys[0] : [...keys],
    [attributeNames.sortKey]: sortKey,
    [attributeNames.owner]: owner,
    [attributeNames.tableNames]: [tableName],
  };
  return { trace, span: tracer.startSpan(spanNames.acquire, { attributes }), startedAt: performance.now() };
}

/** Ends the span of a call; gives its outcome, and the type of its error. */
export function endCall({ trace, span }: Call): Attributes {
  const isGranted = !("error" in trace);
  const { error, signal } = trace;
  const type = isGranted ? undefined : errorName(error);
  const isAborted = signal?.aborted === true && error === signal.reason;
  const answer = isAborted ? outcomes.aborted : answers[type ?? ""];
  const ended: Attributes = {
    [outcome]: isGranted ? outcomes.acquired : (answer ?? outcomes.failed),
    ...(type !== undefined && answer === undefined && { [errorType]: type }),
  };
  span.setAttributes(ended);
  if (!isGranted && answer === undefined) fail(span, saying(error));
  span.end();
  return ended;
}

/** Notes in a call's span what it has met. An event of another call is left out. */
export function noteInCall(call: Call | undefined, event: ContendedEvent | TakeoverEvent): void {
  if (!isOf(call, event)) return;
  const { key, sortKey } = event;
  const about = { [attributeNames.key]: key, [attributeNames.sortKey]: sortKey };
  if (event.type === "contended") {
    call.span.addEvent(spanNames.contended, { ...about, [attributeNames.holder]: event.holder });
  } else {
    const { reason, from } = event;
    call.span.addEvent(spanNames.takeover, {
      ...about,
      [takeoverReason]: reason,
      [attributeNames.holder]: from.owner,
    });
  }
}

function isOf(
  call: Call | undefined,
  { key, owner }: { readonly key: string; readonly owner: string },
): call is Call {
  return call?.trace.keys.includes(key) === true && call.trace.owner === owner;
}

/** After this long without an event since its expiry, a lease goes on in another process, or that process has ended. */
const silenceMs = 60_000;

/** The leases that this process holds, and their spans. */
export class HeldLeases {
  readonly #tracer: Tracer;
  readonly #leases = new Map<string, { readonly key: string; readonly span: Span; expiresAt: number }>();
  #nextSweepAt = 0;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** The keys of the leases that are held now, one for each lease. */
  keys(): string[] {
    this.#sweep();
    return [...this.#leases.values()].map(({ key }) => key);
  }

  /** The span of a lease that is held. */
  spanOf(lease: Omit<WorkTrace, "run">): Span | undefined {
    return this.#leases.get(idOf(lease))?.span;
  }

  /** Begins the span of a lease. */
  begin(event: AcquiredEvent, call: Call | undefined): void {
    this.#sweep();
    const { key, sortKey, owner, fencingToken, expiresAt } = event;
    const attributes = {
      [attributeNames.key]: key,
      [attributeNames.sortKey]: sortKey,
      [attributeNames.owner]: owner,
      [attributeNames.fencingToken]: fencingToken,
    };
    const links = isOf(call, event) ? [{ context: call.span.spanContext() }] : [];
    if (links.length > 0) call?.span.setAttribute(attributeNames.fencingToken, fencingToken);
    const span = this.#tracer.startSpan(spanNames.hold, { attributes, links });
    const id = idOf(event);
    // One of another table, or of a process that was frozen until ttl had removed its item.
    this.#forget(id);
    this.#leases.set(id, { key, span, expiresAt: endOf(expiresAt) });
  }

  /** Notes a renewal. */
  renew(event: RenewedEvent): void {
    const lease = this.#leases.get(idOf(event));
    if (lease === undefined) return;
    lease.expiresAt = endOf(event.expiresAt);
    lease.span.addEvent(spanNames.renewed);
  }

  /** Ends the span of a lease. If a lost lease is released later, its span has ended already. */
  end(event: LostEvent | ReleasedEvent): void {
    const id = idOf(event);
    const span = this.#leases.get(id)?.span;
    this.#leases.delete(id);
    if (span === undefined) return;
    if (event.type === "released") {
      span.setAttribute(outcome, releaseOutcome(event.confirmed));
    } else {
      span.setAttributes({ [outcome]: outcomes.lost, [lostReason]: event.reason });
      // The holder was asked to stop: nothing has failed.
      if (event.reason !== "revoked") {
        span.setAttribute(errorType, "LEASE_LOST");
        fail(span, `the lease is lost (${event.reason})`);
      }
    }
    span.end();
  }

  /** Ends the spans of all leases that are still held here. */
  stop(): void {
    for (const id of [...this.#leases.keys()]) this.#forget(id);
  }

  /** At most once a minute. The time is this machine's, and expiries are the service's. */
  #sweep(): void {
    const now = Date.now();
    if (now < this.#nextSweepAt) return;
    this.#nextSweepAt = now + silenceMs;
    for (const [id, { expiresAt }] of this.#leases) if (expiresAt + silenceMs < now) this.#forget(id);
  }

  #forget(id: string): void {
    const span = this.#leases.get(id)?.span;
    this.#leases.delete(id);
    if (span !== undefined) leave(span);
  }
}

/** By this machine's clock, which may be fast: a lease of which an event tells has not ended. */
function endOf(expiresAt: number): number {
  return Math.max(expiresAt, Date.now());
}

/** Ends a span whose end nobody sees. */
export function leave(span: Span): void {
  span.setAttribute(outcome, outcomes.unknown);
  span.end();
}

function idOf({ key, sortKey, fencingToken }: Omit<WorkTrace, "run">): string {
  return JSON.stringify([key, sortKey, fencingToken]);
}

function fail(span: Span, message: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}
