export { InvokeFunction } from "./jobs/invoke-function.ts";
export { SingletonJob } from "./jobs/singleton-job.ts";
export type { JobOverlap, SingletonJobProps } from "./jobs/singleton-job-props.ts";
export {
  type BoundTarget,
  type FunctionTargetOptions,
  type LeasedStateMachine,
  SingletonJobTarget,
  type TargetSettings,
} from "./jobs/singleton-job-target.ts";
export { JobAlarms, type JobAlarmsProps, type JobRunMetrics } from "./monitoring/job-alarms.ts";
export { LeaseDashboard, type LeaseDashboardProps } from "./monitoring/lease-dashboard.ts";
export { LeaseTableAlarms, type LeaseTableAlarmsProps } from "./monitoring/lease-table-alarms.ts";
export { runbookAnchors } from "./monitoring/runbook.ts";
export type { LeaseKeyScope } from "./table/leading-keys.ts";
export { LeaseTable, type LeaseTableProps } from "./table/lease-table.ts";
export type { ILeaseTable } from "./table/lease-table-base.ts";
export { LeaseTableGrants } from "./table/lease-table-grants.ts";
export { LeaseHeartbeat, type LeaseHeartbeatProps } from "./workflow/lease-heartbeat.ts";
export { LeaseWakeup, type LeaseWakeupProps } from "./workflow/lease-wakeup.ts";
export { LeasedWorkflow, type LeasedWorkflowProps } from "./workflow/leased-workflow.ts";
export type { RedriveGuard } from "./workflow/redrive-guard.ts";
export type { WhenHeld } from "./workflow/workflow-terms.ts";
