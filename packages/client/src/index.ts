export { LeaseClient } from "./dynamodb/lease-client.ts";
export { type CreateLeaseTableOptions, createLeaseTable } from "./dynamodb/table.ts";
export { brandClass } from "./errors/brand.ts";
export { ClientClosedError, CloseIncompleteError, type Leftover } from "./errors/closing.ts";
export {
  InvalidOptionsError,
  LeaseAbortedError,
  LeaseConfigurationError,
  LeaseError,
  type LeaseErrorCode,
  LeaseItemError,
  LeaseLostError,
  type LeaseLostReason,
  LeaseServiceError,
  LeaseTableError,
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
export type {
  CommandValues,
  ConditionCheckOptions,
  Fence,
  FenceOptions,
  LeaseConditionCheck,
  ValueFormat,
} from "./fencing.ts";
export { Lease, type LeaseHandle } from "./lease.ts";
export type { LeaseState } from "./lease-state.ts";
export type {
  AcquireOptions,
  CloseOptions,
  DynamoDBSender,
  HoldOptions,
  LeaseClientOptions,
  TryAcquireOptions,
  WaitOptions,
} from "./options/options.ts";
export type { Randomness } from "./protocol/context.ts";
export type { AcquireTrace } from "./protocol/tracing.ts";
export type { WaitOrder } from "./protocol/wait-order.ts";
export type { LeaseRecord, Pause } from "./record.ts";
export type { Seat, SeatKind } from "./seats/schema.ts";
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
export { type Clock, systemClock } from "./time/clock.ts";
export type { RetryStrategy } from "./time/retry.ts";
export type { ServiceTime } from "./time/service-clock.ts";
