export { type LeaseState, type LeaseStateOptions, leaseState, renewedAt } from "../lease-state.ts";
export type { LastHolder, Pause } from "../record.ts";
export type { AuditEntry, OperatorAction } from "./audit-entry.ts";
export type { AuditOptions } from "./audit-trail.ts";
export type { HistoryOptions } from "./history.ts";
export type { DescribedLease, DescribedSeats, DescribedTicket, KeyDetails } from "./key-details.ts";
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
} from "./lease-admin.ts";
export {
  type LeaseChange,
  type LeaseChangeKind,
  type LeaseSnapshot,
  leaseChanges,
  snapshotOf,
} from "./lease-changes.ts";
export {
  type BreakOptions,
  LeaseOperator,
  type LeaseOperatorOptions,
  type OperatorResult,
  type ResumeOptions,
  type StopOptions,
} from "./lease-operator.ts";
export type { NotPaused, PauseLeaves, PauseOptions } from "./pause.ts";
