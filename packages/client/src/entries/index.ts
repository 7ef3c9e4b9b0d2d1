export { brandClass } from "../base/brand.ts";
export { type Clock, type Randomness, systemClock } from "../base/clock.ts";
export {
  InvalidOptionsError,
  LeaseAbortedError,
  LeaseError,
  type LeaseErrorCode,
  LeaseItemError,
  LeaseLostError,
  type LeaseLostReason,
  LeaseServiceError,
  LeaseUnavailableError,
  type RefusalDetails,
  SlotDoneError,
  SlotMismatchError,
  SlotNotDueError,
} from "../base/errors.ts";
export type {
  AcquiredEvent,
  CompletionFailedEvent,
  ContendedEvent,
  LeaseErrorEvent,
  LeaseEvent,
  LeaseEventListener,
  LostEvent,
  ReleasedEvent,
  RenewedEvent,
  ShortLeaseEvent,
  SkewEvent,
  TakeoverEvent,
  TakeoverReason,
  UnreadableEvent,
} from "../base/events.ts";
export type { LeaseHandle } from "../base/handle.ts";
export type { LeaseRecord, LeaseState, Pause, Seat, SeatKind } from "../base/lease-record.ts";
export type {
  AcquireOptions,
  CloseOptions,
  DynamoDBSender,
  HoldOptions,
  LeaseClientOptions,
  Renewals,
  TryAcquireOptions,
  WaitOptions,
  WaitOrder,
} from "../base/options.ts";
export type { RetryStrategy } from "../base/retry.ts";
export type { ServiceTime } from "../base/service-clock.ts";
export type {
  CallOptions,
  GetRequest,
  Item,
  LeaseStore,
  QueryRequest,
  ScanPage,
  ScanRequest,
  TransactionEntry,
  TransactionResult,
  UpdateRequest,
  UpdateResult,
} from "../base/store.ts";
export type { AcquireTrace } from "../core/acquire.ts";
export type {
  CommandValues,
  ConditionCheckOptions,
  Fence,
  FenceOptions,
  LeaseConditionCheck,
  LeaseTransactItem,
  ValueFormat,
} from "../core/fencing.ts";
export { Lease } from "../core/lease.ts";
export { ClientClosedError, CloseIncompleteError, type Leftover } from "../core/lifecycle.ts";
export type { WorkTrace } from "../core/work-trace.ts";
export { LeaseConfigurationError, LeaseTableError } from "../stores/sdk/errors.ts";
export { type CreateLeaseTableOptions, createLeaseTable } from "../stores/sdk/table.ts";
export { LeaseClient } from "./lease-client.ts";
