import type { IAlarmAction } from "aws-cdk-lib/aws-cloudwatch";
import { alarmActions, aText, type Kinds } from "../prop-kinds.ts";
import type { AlarmText } from "./alarm-kinds.ts";

/** The alarms' entries in the runbook: the headings of docs/RUNBOOK.md, as anchors. */
export const runbookAnchors = {
  didNotRun: "did-not-run",
  failed: "failed",
  lostLease: "lost-its-lease",
  skippedInARow: "skipped-in-a-row",
  deadLetters: "dead-letters",
  deadLetterLost: "dead-letter-lost",
  leaseExpired: "lease-expired",
  keeperFailed: "keeper-failed",
  keeperThrottled: "keeper-throttled",
  redriveGuardFailed: "redrive-guard-failed",
  wakeupsLost: "wake-ups-lost",
  wakeupsLate: "wake-ups-late",
} as const;

/** The default address of the runbook. */
const defaultRunbookUrl = "docs/RUNBOOK.md";

/** An alarm with an entry in the runbook. */
export type RunbookEntry = keyof typeof runbookAnchors;

/** The runbook and the actions of an alarm. */
export interface AlarmSettings {
  /** @default - none */
  readonly actions?: IAlarmAction[];
  /** Address of the runbook; an anchor is appended. @default "docs/RUNBOOK.md" */
  readonly runbookUrl?: string;
}

/** The kinds of these props. */
export const alarmSettingKinds: Kinds<AlarmSettings> = { actions: alarmActions, runbookUrl: aText };

/** A text on what is wrong and where to read on. */
export function alarmText(
  entry: RunbookEntry,
  what: string,
  { actions = [], runbookUrl = defaultRunbookUrl }: AlarmSettings,
): AlarmText {
  return { actions, description: `${what}\nRunbook: ${runbookUrl}#${runbookAnchors[entry]}` };
}
