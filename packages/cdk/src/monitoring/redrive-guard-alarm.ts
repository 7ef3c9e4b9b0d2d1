import { Alarm, type IAlarmAction } from "aws-cdk-lib/aws-cloudwatch";
import { aRedriveGuard, checkKind, checkProps } from "../prop-kinds.ts";
import type { RedriveGuard } from "../workflow/redrive-guard.ts";
import { failuresOf } from "../workflow/state-machine.ts";
import { alarmOnEvent } from "./alarm-kinds.ts";
import { type AlarmSettings, alarmSettingKinds, alarmText } from "./runbook.ts";

/** Whom each alarm tells already: one guard serves many workflows, whose alarms may tell the same people. */
const told = new WeakMap<Alarm, Set<IAlarmAction>>();

/**
 * The alarm of a stack's redrive guard: it could not stop a workflow that was redriven, which may be at work without a
 * lease. One for each stack; it tells everybody that any of its callers names.
 *
 * ```ts
 * alarmOnRedriveGuard(importing.redriveGuard, { actions: [new SnsAction(oncall)] });
 * ```
 */
export function alarmOnRedriveGuard(guard: RedriveGuard, settings: AlarmSettings = {}): Alarm {
  checkKind("guard", guard, aRedriveGuard);
  const given = checkProps(settings, alarmSettingKinds);
  const { actions = [] } = given;
  const existing = guard.node.tryFindChild("Failed");
  if (existing instanceof Alarm) {
    const known = told.get(existing) ?? new Set();
    existing.addAlarmAction(...actions.filter((action) => !known.has(action)));
    told.set(existing, new Set([...known, ...actions]));
    return existing;
  }
  const what =
    "A leased workflow was redriven, and could not be stopped: it may be at work without its lease.";
  const alarm = alarmOnEvent(guard, "Failed", {
    ...alarmText("redriveGuardFailed", what, given),
    metrics: failuresOf(guard.stateMachine),
  });
  told.set(alarm, new Set(actions));
  return alarm;
}
