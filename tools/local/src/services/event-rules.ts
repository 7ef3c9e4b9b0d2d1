// EventBridge's rules: which event goes to which target, and as what input.

import type { RuleSpec, RuleTargetSpec } from "../assembly/types.ts";
import { compileFilters } from "../streams/filter.ts";
import type { BusEvent } from "./event-bus.ts";

/** What rules work with. */
export interface RulePorts {
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
  const compiled = rules
    .filter(({ enabled }) => enabled)
    .map((rule) => ({ rule, matches: compileFilters([rule.pattern]) }));
  return (event) => {
    for (const { rule, matches } of compiled) {
      const envelope = envelopeOf(event, rule);
      if (rule.busName !== event.eventBusName || !matches(envelope)) continue;
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

function inputOf({ input, inputPath, template, paths }: RuleTargetSpec, envelope: unknown): string {
  if (input !== undefined) return input;
  if (inputPath !== undefined) return JSON.stringify(at(inputPath, envelope) ?? null);
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
