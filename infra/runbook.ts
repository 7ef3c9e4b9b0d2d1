/** The entries of docs/systems/alarms.md: the alarms of the app, besides those of the constructs. */
export const systemRunbookAnchors = {
  importFailed: "import-failed",
  ordersParked: "orders-parked",
  functionFailing: "function-failing",
  eventsDropped: "events-dropped",
  scheduleStalled: "schedule-stalled",
  expiriesUnreported: "expiries-unreported",
  longWaits: "long-waits",
} as const;

/** An alarm of the app's own. */
export type SystemRunbookEntry = keyof typeof systemRunbookAnchors;

/** The text of an alarm: what is wrong, and where to read on. */
export function systemAlarmText(entry: SystemRunbookEntry, what: string): { readonly description: string } {
  return { description: `${what}\nRunbook: docs/systems/alarms.md#${systemRunbookAnchors[entry]}` };
}
