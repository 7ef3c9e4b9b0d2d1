export { LeaseClient } from "./client.ts";
export { type CreateLeaseTableOptions, createLeaseTable } from "./dynamodb/table.ts";
export {
  InvalidOptionsError,
  LeaseConfigurationError,
  LeaseError,
  type LeaseErrorCode,
  LeaseLostError,
  type LeaseLostReason,
  LeaseServiceError,
  LeaseTableError,
  LeaseUnavailableError,
  SlotDoneError,
} from "./errors.ts";
export type {
  AcquiredEvent,
  ContendedEvent,
  LeaseEvent,
  LeaseEventListener,
  LostEvent,
  ReleasedEvent,
  RenewedEvent,
  SkewEvent,
  TakeoverEvent,
  TakeoverGround,
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
export type {
  AcquireOptions,
  DynamoDBSender,
  HoldOptions,
  LeaseClientOptions,
  PlaceInQueue,
  TryAcquireOptions,
  WaitOptions,
} from "./options.ts";
export type { ListOptions, PlaceOptions } from "./oversight.ts";
export type { Randomness } from "./protocol/context.ts";
export type { LeaseRecord } from "./record.ts";
export type { RetryStrategy } from "./retry.ts";
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
