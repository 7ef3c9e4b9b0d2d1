export type {
  CommandValues,
  ConditionCheckOptions,
  Fence,
  FenceOptions,
  LeaseConditionCheck,
  ValueFormat,
} from "./core/fencing.ts";
export { Lease } from "./core/lease.ts";
export type { AcquireTrace } from "./core/tracing.ts";
export { LeaseConfigurationError, LeaseTableError } from "./dynamodb/errors.ts";
export { LeaseClient } from "./dynamodb/lease-client.ts";
export { type CreateLeaseTableOptions, createLeaseTable } from "./dynamodb/table.ts";
export { brandClass } from "./errors/brand.ts";
export { ClientClosedError, CloseIncompleteError, type Leftover } from "./errors/closing.ts";
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
} from "./errors/errors.ts";
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
} from "./events.ts";
export type { LeaseState } from "./lease-state.ts";
export type { LeaseHandle } from "./options/check-handle.ts";
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
} from "./options/options.ts";
export type { LeaseRecord, Pause, Seat, SeatKind } from "./record.ts";
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
} from "./store.ts";
export { type Clock, type Randomness, systemClock } from "./time/clock.ts";
export type { RetryStrategy } from "./time/retry.ts";
export type { ServiceTime } from "./time/service-clock.ts";
