/**
 * For Leasehold's own packages alone: the parts that primitives, constructs and the durable lease are built from.
 * Nothing here is promised from one version to the next, so those packages require exactly their own version of the
 * client. It loads no AWS SDK.
 */

export { traceNow } from "./admin/audit-entry.ts";
export { historyItemOf } from "./admin/history.ts";
export { KeyDetailsReader } from "./admin/key-details.ts";
export { type LeaseChange, leaseChanges, snapshotOf } from "./admin/lease-changes.ts";
export {
  type AcquireCall,
  acquireLease,
  announceGrant,
} from "./core/acquire.ts";
export { Attempt, type Granted, type Refused } from "./core/attempt.ts";
export { LeaseClient } from "./core/client.ts";
export { type Core, coreOf } from "./core/core.ts";
export type { Belief } from "./core/deadline.ts";
export { ExpiryDetector, observedShare } from "./core/expiry-detector.ts";
export type { Ended, Ending, Prospect, Renewal } from "./core/form.ts";
export { HeldLease, type HeldLeaseTerms, keepAlive } from "./core/held-lease.ts";
export { Lease } from "./core/lease.ts";
export { pauseWhileOpen, whileOpen } from "./core/lifecycle.ts";
export { LockForm } from "./core/lock-form.ts";
export { query, request, scan, transact } from "./core/requests.ts";
export { acquireChannel } from "./core/tracing.ts";
export { fromAttributeValues, toAttributeValues } from "./dynamodb/attribute-values.ts";
export { rejectionFor } from "./dynamodb/errors.ts";
export { isAbortOf, untilAborted } from "./errors/aborted.ts";
export { brandClass } from "./errors/brand.ts";
export { CloseIncompleteError } from "./errors/closing.ts";
export {
  InvalidOptionsError,
  LeaseAbortedError,
  LeaseError,
  LeaseItemError,
  LeaseLostError,
  LeaseServiceError,
  LeaseUnavailableError,
  SlotDoneError,
  SlotNotDueError,
} from "./errors/errors.ts";
export { ifOperational, isOperational, longestChain, mayPass, unlessPassing } from "./errors/operational.ts";
export { leaseEventTypes } from "./events.ts";
export { unlessUnreadable, unreadableIn } from "./looks.ts";
export { checkHandle } from "./options/check-handle.ts";
export {
  type AcquisitionTerms,
  checkAcquireOptions,
  checkDue,
  checkHeartbeat,
} from "./options/check-options.ts";
export {
  aFunction,
  check,
  checkData,
  checkDuration,
  checkKey,
  checkKnown,
  checkOptions,
  checkSignal,
  checkText,
  checkWork,
  countTo,
  duration,
  isFunction,
  label,
  listeners,
  oneOf,
  type Rule,
  type Rules,
  readable,
  rule,
  text,
  trueOrFalse,
  unchecked,
  withMethods,
} from "./options/check-values.ts";
export {
  type LeaseEnd,
  lastDoneSlot,
  lastHolderIn,
  lastReleasedToken,
  readRecord,
  wasReleasedByHolder,
} from "./record.ts";
export {
  attributeNames,
  historySortKeyPrefix,
  type ItemKey,
  leaseItemKey,
  leaseSortKey,
  limits,
  timeToLive,
  utf8Bytes,
  waiterSortKeyPrefix,
} from "./schema.ts";
export { HeldSeat, keptShare, renewSeatUnlessRevoked } from "./seats/held-seat.ts";
export { seatCounters, seatLimits, seatSortKeys } from "./seats/schema.ts";
export {
  fencePrefix,
  isPauseAlone,
  ownerAttribute,
  revocationPrefix,
  type SeatRecord,
  seatFlags,
  seatText,
  textPrefix,
  versionDigits,
} from "./seats/seat.ts";
export { SeatForm } from "./seats/seat-form.ts";
export { clearSeats } from "./seats/seat-writes.ts";
export { permitLimits } from "./semaphore/semaphore.ts";
export { requestRevocation } from "./statements/admin.ts";
export {
  acquire,
  asJudged,
  type Cancellation,
  type Cooldown,
  cancel,
  endKept,
  endText,
  free,
  type Grant,
  type Judged,
  judgedValues,
  type LeaseAddress,
  type LockEnding,
  letGo,
  mine,
  mineByToken,
  mineOrFree,
  noHolder,
  notGrantedSince,
  noWishes,
  proofValues,
  release,
  renew,
  renewUnlessRevoked,
  revokeToken,
  slotDone,
  take,
  takeOver,
  tokenRevoked,
} from "./statements/lock.ts";
export {
  endCalls,
  heldBySomebody,
  markCalls,
  park,
  parkCallback,
  removeWaiter,
  takeOverCalls,
  type WaitsBy,
  waitersOf,
} from "./statements/parking.ts";
export { everyItem, recordOnly } from "./statements/queries.ts";
export { namesIn, type Part, type Statement, say, type Values, Write } from "./statements/statement.ts";
export {
  isWhole,
  jsonIn,
  optionalTextIn,
  optionalTimeIn,
  optionalWholeIn,
  optionalWordIn,
  parsedJson,
  sortKeyOf,
  textIn,
  timeIn,
  wholeIn,
} from "./store/item-values.ts";
export { pagesOf } from "./store/pages.ts";
export { type BackoffOptions, backoffMs } from "./time/backoff.ts";
export { deferred, settles, sleep, systemClock } from "./time/clock.ts";
export { onAbort } from "./time/on-abort.ts";
export { retryPauses, wakeSpreadMs } from "./time/retry.ts";
