/**
 * For Leasehold's own packages alone: the parts that primitives, constructs and the durable lease are built from.
 * Nothing here is promised from one version to the next, so those packages require exactly their own version of the
 * client. It loads no AWS SDK.
 */

export { traceNow } from "../admin/audit.ts";
export { historyItemOf } from "../admin/history.ts";
export { KeyDetailsReader } from "../admin/key-details.ts";
export { type LeaseChange, leaseChanges, snapshotOf } from "../admin/lease-changes.ts";
export { requestRevocation } from "../admin/statements.ts";
export { isAbortOf, onAbort, untilAborted } from "../base/abort.ts";
export { brandClass } from "../base/brand.ts";
export {
  type AcquisitionTerms,
  checkAcquireOptions,
  checkDue,
  checkHeartbeat,
} from "../base/check-options.ts";
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
} from "../base/check-values.ts";
export { callAfter, deferred, longestTimerMs, settles, sleep, systemClock } from "../base/clock.ts";
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
  saying,
} from "../base/errors.ts";
export { leaseEventTypes } from "../base/events.ts";
export { checkHandle } from "../base/handle.ts";
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
  unlessUnreadable,
  wholeIn,
} from "../base/item-values.ts";
export type { LeaseEnd } from "../base/lease-record.ts";
export { ifOperational, isOperational, longestChain, mayPass, unlessPassing } from "../base/operational.ts";
export { PriorityQueue } from "../base/priority-queue.ts";
export {
  lastDoneSlot,
  lastHolderIn,
  lastReleasedToken,
  readRecord,
  wasReleasedByHolder,
} from "../base/record.ts";
export { type BackoffOptions, backoffMs, retryPauses, wakeSpreadMs } from "../base/retry.ts";
export {
  attributeNames,
  historySortKeyPrefix,
  type ItemKey,
  leaseItemKey,
  leaseSortKey,
  limits,
  taskSortKeyPrefix,
  timeToLive,
  utf8Bytes,
  waiterSortKeyPrefix,
} from "../base/schema.ts";
export { ServiceClock } from "../base/service-clock.ts";
export { pagesOf } from "../base/store.ts";
export type { CallBudget } from "../base/timed-call.ts";
export { acquireChannel, acquireLease, announceGrant } from "../core/acquire.ts";
export { Attempt, type Granted, type Refused } from "../core/attempt.ts";
export { LeaseClient } from "../core/client.ts";
export { type Core, coreOf, query, request, scan, transact, unreadableIn } from "../core/core.ts";
export type { Belief } from "../core/deadline.ts";
export { ExpiryDetector, observedShare } from "../core/expiry-detector.ts";
export { transactItem } from "../core/fencing.ts";
export type { Availability, Ended, Ending, Renewal } from "../core/form.ts";
export { HeldLease, type HeldLeaseTerms } from "../core/held-lease.ts";
export { conditionCheckRules, hasProtected, Lease } from "../core/lease.ts";
export { ClientClosedError, CloseIncompleteError, pauseWhileOpen, whileOpen } from "../core/lifecycle.ts";
export { LockForm } from "../core/lock-form.ts";
export type { AcquireCall } from "../core/order.ts";
export { runTraced, workChannel } from "../core/work-trace.ts";
export {
  fencePrefix,
  isPauseAlone,
  ownerAttribute,
  revocationPrefix,
  type SeatRecord,
  seatCounters,
  seatFlags,
  seatLimits,
  seatSortKeys,
  seatText,
  textPrefix,
  versionDigits,
} from "../primitives/seats/seat.ts";
export { HeldSeat, keptShare, renewSeatUnlessRevoked, SeatForm } from "../primitives/seats/seat-form.ts";
export { clearSeats } from "../primitives/seats/seat-writes.ts";
export { permitLimits } from "../primitives/seats/semaphore.ts";
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
} from "../statements/lock.ts";
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
} from "../statements/parking.ts";
export { everyItem, recordOnly } from "../statements/queries.ts";
export { namesIn, type Part, type Statement, say, type Values, Write } from "../statements/statement.ts";
export { fromAttributeValues, toAttributeValues } from "../stores/sdk/encoding.ts";
export { rejectionFor } from "../stores/sdk/errors.ts";
export { serviceTimeOf } from "../stores/sdk/transport.ts";
