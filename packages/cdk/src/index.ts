export { type FunctionTargetOptions, InvokeFunction } from "./jobs/function-target.ts";
export type {
  IBoundTarget,
  JobOverlap,
  JobRuleTargetProps,
  JobTarget,
  TargetSettings,
} from "./jobs/job-target.ts";
export type { LockedFunctionTargetOptions, LockedTaskTargetOptions } from "./jobs/locked-target.ts";
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
export {
  alarmOnRedriveGuard,
  LeasedWorkflowAlarms,
  type LeasedWorkflowAlarmsProps,
  LeaseHeartbeatAlarms,
  type LeaseHeartbeatAlarmsProps,
  LeaseTableAlarms,
  type LeaseTableAlarmsProps,
  LeaseWakeupAlarms,
  type LeaseWakeupAlarmsProps,
} from "./monitoring/lease-alarms.ts";
export { LeaseDashboard, type LeaseDashboardProps } from "./monitoring/lease-dashboard.ts";
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
export type { RedriveGuard } from "./workflow/redrive-guard.ts";
export type { ObservabilityProps } from "./workflow/state-machine.ts";
export type { WhenHeld } from "./workflow/workflow-terms.ts";
