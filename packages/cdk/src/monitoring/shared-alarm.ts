import type { Alarm, IAlarmAction } from "aws-cdk-lib/aws-cloudwatch";

/** The actions that were added to each shared alarm already. */
const known = new WeakMap<Alarm, Set<IAlarmAction>>();

/** Adds actions to an alarm that several callers share. Callers may have the same actions. */
export function tellAlso(alarm: Alarm, actions: readonly IAlarmAction[] = []): void {
  const told = known.get(alarm) ?? new Set();
  const more = actions.filter((action) => !told.has(action));
  if (more.length > 0) alarm.addAlarmAction(...more);
  known.set(alarm, new Set([...told, ...more]));
}
