import { expect } from "vitest";
import type { AlarmState, TemplateAlarm, Undocumented } from "./cloudwatch-alarms.ts";
import { allUndocumented, type SyntheticMetrics } from "./synthetic-metrics.ts";

export const minute = 60_000;
export const hour: number = 60 * minute;
export const day: number = 24 * hour;
/** A midnight, so that periods of all lengths begin here. */
export const start: number = Date.UTC(2026, 10, 22);

interface TimesOn {
  readonly first: number | undefined;
  /** How often it has turned on. */
  readonly turns: number;
  readonly last: AlarmState;
  readonly how: Undocumented;
}

/** When an alarm was on, for all that AWS does not document. */
function timesOn(
  alarm: TemplateAlarm,
  { samples }: SyntheticMetrics,
  from: number,
  to: number,
): readonly TimesOn[] {
  return allUndocumented.map((how) => {
    const history = alarm.history(samples, how, { from, to });
    return {
      how,
      first: history.find(({ state }) => state === "ALARM")?.at,
      turns: history.filter(({ state }, index) => state === "ALARM" && history[index - 1]?.state !== state)
        .length,
      last: history.at(-1)?.state ?? "INSUFFICIENT_DATA",
    };
  });
}

/** Holds an alarm to not being on at any minute. */
export function expectQuiet(alarm: TemplateAlarm, metrics: SyntheticMetrics, from: number, to: number): void {
  for (const { first, how } of timesOn(alarm, metrics, from, to)) {
    const minutes = first === undefined ? undefined : (first - start) / minute;
    expect(minutes, JSON.stringify(how)).toBeUndefined();
  }
}

/** When an alarm has to be on. */
export interface Expected {
  /** When it first turns on. */
  readonly between: readonly [from: number, to: number];
  /** When it is off again. @default - it is still on at the latest time at which it may turn on */
  readonly endsBy?: number;
}

/** Holds an alarm to turning on, once, and in time. */
export function expectAlarm(
  alarm: TemplateAlarm,
  metrics: SyntheticMetrics,
  from: number,
  { between: [earliest, latest], endsBy }: Expected,
): void {
  for (const { first, last, how, turns } of timesOn(alarm, metrics, from, endsBy ?? latest)) {
    const text = JSON.stringify(how);
    expect(first, text).toBeGreaterThanOrEqual(earliest);
    expect(first, text).toBeLessThanOrEqual(latest);
    if (endsBy !== undefined) expect(last, text).toBe("OK");
    // Only where periods end now, as documented, is none of them half empty.
    else if (how.window === "sliding") expect(last, text).toBe("ALARM");
    if (how.window === "sliding") expect(turns, text).toBe(1);
  }
}
