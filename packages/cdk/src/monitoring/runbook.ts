/** The alarms' entries in the runbook: the headings of docs/RUNBOOK.md, as anchors. */
export const runbookAnchors = {
  didNotRun: "did-not-run",
  failed: "failed",
  lostLease: "lost-its-lease",
  skippedInARow: "skipped-in-a-row",
  deadLetters: "dead-letters",
  leaseExpired: "lease-expired",
} as const;

/** Where the runbook is unless an alarm's props say otherwise. */
export const defaultRunbookUrl = "docs/RUNBOOK.md";

/** An alarm with an entry in the runbook. */
export type RunbookEntry = keyof typeof runbookAnchors;

/** Says what is wrong and where to read on. */
export function alarmDescription(what: string, entry: RunbookEntry, runbookUrl: string): string {
  return `${what}\nRunbook: ${runbookUrl}#${runbookAnchors[entry]}`;
}
