// EventBridge's bus: events of the app, which are kept, and of the services.

/** An event on a bus. */
export interface BusEvent {
  readonly id: string;
  readonly source: string;
  readonly detailType: string;
  readonly detail: unknown;
  readonly eventBusName: string;
  readonly resources: readonly string[];
  /** ISO 8601, in UTC. */
  readonly time: string;
}

/** What PutEvents answers for one entry. */
export type PutResult =
  | { readonly EventId: string }
  | { readonly ErrorCode: string; readonly ErrorMessage: string };

interface Entry {
  readonly Source?: unknown;
  readonly DetailType?: unknown;
  readonly Detail?: unknown;
  readonly EventBusName?: unknown;
  readonly Resources?: unknown;
}

const defaultBus = "default";

/** EventBridge on this machine: takes events, keeps what PutEvents brought, and calls its listeners. */
export class EventBus {
  readonly #listeners = new Set<(event: BusEvent) => void>();
  readonly #events: BusEvent[] = [];
  readonly #now: () => number;
  readonly #onEvent: (event: BusEvent) => void;

  constructor(now: () => number, onEvent: (event: BusEvent) => void) {
    this.#now = now;
    this.#onEvent = onEvent;
  }

  /** Every event so far, the oldest first. */
  get events(): readonly BusEvent[] {
    return this.#events;
  }

  /** Listens to every event: from PutEvents, and from the services themselves. Returns how to end it. */
  subscribe(listener: (event: BusEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Publishes an event of a service's own. It is not kept, since the app did not put it. */
  publish(event: Pick<BusEvent, "source" | "detailType" | "detail" | "resources">): void {
    this.#pass({ ...event, id: crypto.randomUUID(), eventBusName: defaultBus, time: this.#time() });
  }

  /** PutEvents: a malformed entry fails alone. A detail may be JSON text or an object. */
  put(entries: readonly unknown[]): {
    readonly FailedEntryCount: number;
    readonly Entries: readonly PutResult[];
  } {
    const results = entries.map((entry) => this.#take((entry ?? {}) as Entry));
    return {
      FailedEntryCount: results.filter((result) => "ErrorCode" in result).length,
      Entries: results,
    };
  }

  #take({ Source, DetailType, Detail, EventBusName, Resources }: Entry): PutResult {
    if (typeof Source !== "string" || typeof DetailType !== "string" || Detail === undefined) {
      return refused("InvalidArgument", "Source, DetailType and Detail are required");
    }
    const detail = parsed(Detail);
    if (detail === undefined) return refused("MalformedDetail", "Detail is malformed");
    const event: BusEvent = {
      id: crypto.randomUUID(),
      source: Source,
      detailType: DetailType,
      detail,
      eventBusName:
        typeof EventBusName === "string" ? EventBusName.replace(/^.*event-bus\//, "") : defaultBus,
      resources: Array.isArray(Resources) ? Resources.map(String) : [],
      time: this.#time(),
    };
    this.#events.push(event);
    this.#onEvent(event);
    this.#pass(event);
    return { EventId: event.id };
  }

  #pass(event: BusEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #time(): string {
    return new Date(this.#now()).toISOString();
  }
}

function parsed(detail: unknown): unknown {
  if (typeof detail === "object") return detail ?? undefined;
  try {
    const value: unknown = JSON.parse(String(detail));
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    // Ignored: reading text as JSON throws for nothing but text that is none.
    return undefined;
  }
}

function refused(ErrorCode: string, ErrorMessage: string): PutResult {
  return { ErrorCode, ErrorMessage };
}
