// EventBridge: a bus of events of the app, which are kept, and of the services; and rules, which pass them on.

import type { RuleSpec, RuleTargetSpec } from "../assembly/types.ts";
import { compileFilters } from "../streams/filter.ts";

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

/** An entry of PutEvents. */
export interface PutEntry {
  readonly Source: string;
  readonly DetailType: string;
  /** JSON. */
  readonly Detail: string;
  readonly EventBusName?: string;
  readonly Resources?: readonly string[];
}

const defaultBus = "default";

/** EventBridge on this machine: takes events, keeps what PutEvents brought, and calls its listeners. */
export class EventBus {
  readonly #listeners = new Set<(event: BusEvent) => void>();
  readonly #events: BusEvent[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
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

  /** PutEvents: keeps the events, and gives their ids. */
  put(entries: readonly PutEntry[]): string[] {
    return entries.map(({ Source, DetailType, Detail, EventBusName = defaultBus, Resources = [] }) => {
      const event: BusEvent = {
        id: crypto.randomUUID(),
        source: Source,
        detailType: DetailType,
        detail: JSON.parse(Detail),
        eventBusName: EventBusName.replace(/^.*event-bus\//, ""),
        resources: Resources,
        time: this.#time(),
      };
      this.#events.push(event);
      this.#pass(event);
      return event.id;
    });
  }

  #pass(event: BusEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #time(): string {
    return new Date(this.#now()).toISOString();
  }
}

/** What rules work with. */
interface RulePorts {
  /** Hands an input to a target; throws what the target refuses it with. */
  readonly send: (targetArn: string, input: string) => void;
  readonly onError: (rule: RuleSpec, error: unknown) => void;
}

/**
 * Gives the function that passes events on to the targets of the rules that match them: once, and not again where a
 * target refuses.
 *
 * Throws UnsupportedFilterError for a pattern that is not known here.
 */
export function eventRules(rules: readonly RuleSpec[], ports: RulePorts): (event: BusEvent) => void {
  const compiled = rules.map((rule) => ({ rule, matches: compileFilters([rule.pattern]) }));
  return (event) => {
    for (const { rule, matches } of compiled) {
      const envelope = envelopeOf(event, rule);
      if (event.eventBusName !== defaultBus || !matches(envelope)) continue;
      for (const target of rule.targets) {
        try {
          ports.send(target.arn, inputOf(target, envelope));
        } catch (error) {
          ports.onError(rule, error);
        }
      }
    }
  };
}

/** An event as a rule and its targets see it: it comes from the rule's own account. */
function envelopeOf(event: BusEvent, { arn }: RuleSpec): Record<string, unknown> {
  const [, , , region, account] = arn.split(":");
  const { id, source, detailType, detail, resources, time } = event;
  const whole = time.replace(/\.\d+Z$/, "Z");
  return {
    version: "0",
    id,
    "detail-type": detailType,
    source,
    account,
    time: whole,
    region,
    resources,
    detail,
  };
}

function inputOf({ template, paths }: RuleTargetSpec, envelope: unknown): string {
  if (template === undefined) return JSON.stringify(envelope);
  return template.replace(/<([\w.-]+)>/g, (placeholder, name: string, offset: number) => {
    const path = paths[name];
    if (path === undefined) return placeholder;
    const value = at(path, envelope) ?? "";
    // A placeholder within a text is filled in as it is; one that stands for a value becomes JSON.
    const quotes = template.slice(0, offset).replaceAll(/\\./g, "").split('"').length - 1;
    return quotes % 2 === 1 && typeof value === "string" ? value : JSON.stringify(value);
  });
}

/** The value at a path such as `$.detail.status`. */
function at(path: string, value: unknown): unknown {
  const names = path.split(".").slice(1);
  return names.reduce(
    (inner: unknown, name) => (inner as Record<string, unknown> | undefined)?.[name],
    value,
  );
}
