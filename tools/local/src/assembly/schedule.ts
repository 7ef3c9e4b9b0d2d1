// Reads AWS::Scheduler::Schedule.

import type { Properties } from "./properties.ts";
import type { ResourceName, ScheduleSpec } from "./types.ts";

/** Reads AWS::Scheduler::Schedule. A flexible time window is not needed here: every schedule fires at its time. */
export function scheduleSpec(name: ResourceName, properties: Properties): ScheduleSpec {
  const target = properties.object("Target");
  return {
    ...name,
    expression: properties.text("ScheduleExpression"),
    timeZone: properties.optionalText("ScheduleExpressionTimezone") ?? "UTC",
    enabled: properties.optionalText("State") !== "DISABLED",
    startDate: date(properties, "StartDate"),
    endDate: date(properties, "EndDate"),
    targetArn: target.text("Arn"),
    input: target.optionalText("Input"),
  };
}

function date(properties: Properties, name: string): Date | undefined {
  const text = properties.optionalText(name);
  if (text === undefined) return undefined;
  const value = new Date(text);
  return Number.isNaN(value.getTime()) ? properties.unsupported(`${name} ${text} is not a time`) : value;
}
