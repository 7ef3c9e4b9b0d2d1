export type { AuditEntry, AuditOptions, OperatorAction } from "../admin/audit.ts";
export type { HistoryOptions } from "../admin/history.ts";
export type { DescribedLease, DescribedSeats, DescribedTicket, KeyDetails } from "../admin/key-details.ts";
export {
  type HolderOptions,
  type KeyDescription,
  LeaseAdmin,
  type LeasePage,
  type ListCursor,
  type ListOptions,
  type ListPagesOptions,
  type SortKeyOptions,
  type TakeBackSlotOptions,
} from "../admin/lease-admin.ts";
export {
  type LeaseChange,
  type LeaseChangeKind,
  type LeaseSnapshot,
  leaseChanges,
  snapshotOf,
} from "../admin/lease-changes.ts";
export {
  type BreakOptions,
  LeaseOperator,
  type LeaseOperatorOptions,
  type ResumeOptions,
  type StopOptions,
} from "../admin/lease-operator.ts";
export type { NotPaused, OperatorResult, PauseLeaves, PauseOptions } from "../admin/pause.ts";
export type { LastHolder, Pause } from "../base/lease-record.ts";
export { type LeaseState, type LeaseStateOptions, leaseState, renewedAt } from "../base/lease-record.ts";
