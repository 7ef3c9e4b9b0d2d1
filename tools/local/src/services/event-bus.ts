// EventBridge: what PutEvents brings is kept, and rules pass on what Step Functions tells of its executions.

import type { RuleSpec, RuleTargetSpec } from "../assembly/types.ts";
import { compileFilters } from "../streams/filter.ts";

/** An event that was put on a bus. */
export interface BusEvent {
  readonly source: string;
  readonly detailType: string;
  readonly detail: unknown;
  readonly eventBusName: string;
}

/** An entry of PutEvents. */
export interface PutEntry {
  readonly Source: string;
  readonly DetailType: string;
  /** JSON. */
  readonly Detail: string;
  readonly EventBusName?: string;
}

/** The event of an entry. */
export function busEvent({ Source, DetailType, Detail, EventBusName = "default" }: PutEntry): BusEvent {
  return {
    source: Source,
    detailType: DetailType,
    detail: JSON.parse(Detail),
    eventBusName: EventBusName.replace(/^.*event-bus\//, ""),
  };
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
export function eventRules(
  rules: readonly RuleSpec[],
  { send, onError }: RulePorts,
): (event: object) => void {
  const compiled = rules.map((rule) => ({ rule, matches: compileFilters([rule.pattern]) }));
  return (event) => {
    for (const { rule } of compiled.filter(({ matches }) => matches(event))) {
      for (const target of rule.targets) {
        try {
          send(target.arn, inputOf(target, event));
        } catch (error) {
          onError(rule, error);
        }
      }
    }
  };
}

/** Placeholders stand for values: the CDK takes the quotes away that a text would have. */
function inputOf({ template, paths }: RuleTargetSpec, event: object): string {
  if (template === undefined) return JSON.stringify(event);
  return template.replace(/<([\w.-]+)>/g, (placeholder, name: string) => {
    const path = paths[name];
    return path === undefined ? placeholder : JSON.stringify(at(path, event) ?? "");
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
