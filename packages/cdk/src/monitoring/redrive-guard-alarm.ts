import { Alarm } from "aws-cdk-lib/aws-cloudwatch";
import { aRedriveGuard, checkKind, checkProps } from "../prop-kinds.ts";
import type { RedriveGuard } from "../workflow/redrive-guard.ts";
import { failuresOf } from "../workflow/state-machine.ts";
import { alarmOnEvent } from "./alarm-kinds.ts";
import { type AlarmSettings, alarmSettingKinds, alarmText } from "./runbook.ts";
import { tellAlso } from "./shared-alarm.ts";

/**
 * The alarm of a stack's redrive guard: the guard could not stop a redriven workflow, which may work without a lease.
 * One for each stack; it has the actions of all callers.
 *
 * ```ts
 * alarmOnRedriveGuard(importing.redriveGuard, { actions: [new SnsAction(oncall)] });
 * ```
 */
export function alarmOnRedriveGuard(guard: RedriveGuard, settings: AlarmSettings = {}): Alarm {
  checkKind("guard", guard, aRedriveGuard);
  const given = checkProps(settings, alarmSettingKinds);
  const { actions, ...text } = given;
  const existing = guard.node.tryFindChild("Failed");
  const alarm = existing instanceof Alarm ? existing : defined(guard, text);
  tellAlso(alarm, actions);
  return alarm;
}

function defined(guard: RedriveGuard, settings: AlarmSettings): Alarm {
  const what =
    "A leased workflow was redriven, and could not be stopped: it may be at work without its lease.";
  return alarmOnEvent(guard, "Failed", {
    ...alarmText("redriveGuardFailed", what, settings),
    metrics: failuresOf(guard.stateMachine),
  });
}
