export type { FunctionTargetOptions } from "./jobs/function-target.ts";
export { InvokeFunction } from "./jobs/invoke-function.ts";
export type {
  IBoundTarget,
  JobOverlap,
  JobRuleTargetProps,
  JobTarget,
  TargetSettings,
} from "./jobs/job-target.ts";
export type { LockedFunctionTargetOptions } from "./jobs/locked-function-target.ts";
export type { LockedTaskTargetOptions } from "./jobs/locked-task-target.ts";
export type {
  BatchJobTargetOptions,
  EcsTaskTargetOptions,
  GlueJobTargetOptions,
} from "./jobs/service-tasks.ts";
export { SingletonJob } from "./jobs/singleton-job.ts";
export type { SingletonJobProps } from "./jobs/singleton-job-props.ts";
export { SingletonJobTarget } from "./jobs/singleton-job-target.ts";
export { SingletonJobTrigger } from "./jobs/singleton-job-trigger.ts";
export { TaskTrigger, type TaskTriggerProps } from "./jobs/task-trigger.ts";
export type { LeasedStateMachine } from "./jobs/workflow-target.ts";
export {
  type AlarmText,
  alarmOnBacklog,
  alarmOnEvent,
  alarmOnLasting,
  alarmOnSilence,
  type NamedMetrics,
  type SilenceTerms,
} from "./monitoring/alarm-kinds.ts";
export { JobAlarms, type JobAlarmsProps, type JobRunMetrics } from "./monitoring/job-alarms.ts";
export { LeaseDashboard, type LeaseDashboardProps } from "./monitoring/lease-dashboard.ts";
export { LeaseHeartbeatAlarms, type LeaseHeartbeatAlarmsProps } from "./monitoring/lease-heartbeat-alarms.ts";
export { LeaseTableAlarms, type LeaseTableAlarmsProps } from "./monitoring/lease-table-alarms.ts";
export { LeaseWakeupAlarms, type LeaseWakeupAlarmsProps } from "./monitoring/lease-wakeup-alarms.ts";
export { LeasedWorkflowAlarms, type LeasedWorkflowAlarmsProps } from "./monitoring/leased-workflow-alarms.ts";
export { alarmOnRedriveGuard } from "./monitoring/redrive-guard-alarm.ts";
export { type AlarmSettings, runbookAnchors } from "./monitoring/runbook.ts";
export type { LeaseKeyScope } from "./table/leading-keys.ts";
export { LeaseHistory, type LeaseHistoryProps } from "./table/lease-history.ts";
export { LeaseTable, type LeaseTableProps } from "./table/lease-table.ts";
export type { ILeaseTable } from "./table/lease-table-base.ts";
export { LeaseTableGrants } from "./table/lease-table-grants.ts";
export type { ILeaseTableRef } from "./table/table-place.ts";
export {
  type GuardOptions,
  type ILeaseHeartbeat,
  LeaseHeartbeat,
  type LeaseHeartbeatAttributes,
  type LeaseHeartbeatProps,
  type StackHeartbeatProps,
} from "./workflow/lease-heartbeat.ts";
export {
  type ILeaseWakeup,
  LeaseWakeup,
  type LeaseWakeupAttributes,
  type LeaseWakeupProps,
} from "./workflow/lease-wakeup.ts";
export { LeasedWorkflow, type LeasedWorkflowProps } from "./workflow/leased-workflow.ts";
export type { ObservabilityProps } from "./workflow/observability.ts";
export type { RedriveGuard } from "./workflow/redrive-guard.ts";
export type { WhenHeld } from "./workflow/workflow-terms.ts";
