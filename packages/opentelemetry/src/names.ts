/** Every name that is sent to OpenTelemetry: of spans, their events, metrics and attributes. Names are stable. */

/** Names of spans, and of the events in them. */
export const spanNames = {
  /** A call to acquire, with its wait, whatever its end is. */
  acquire: "leasehold.acquire",
  /** A lease, from its grant to its release or its loss. */
  hold: "leasehold.hold",
  /** In the span of a call: another caller holds the lock. */
  contended: "leasehold.contended",
  /** In the span of a call: the lock was taken from a holder that had not released it. */
  takeover: "leasehold.takeover",
  /** In the span of a lease: a renewal was confirmed. */
  renewed: "leasehold.renewed",
} as const;

/** Names of metrics. Durations are in seconds. */
export const metricNames = {
  acquireDuration: "leasehold.acquire.duration",
  heldDuration: "leasehold.lease.held.duration",
  held: "leasehold.leases.held",
  lost: "leasehold.lease.lost",
  takeovers: "leasehold.lease.takeovers",
  renewals: "leasehold.lease.renewals",
  contentions: "leasehold.lock.contentions",
  completionFailures: "leasehold.slot.completion_failures",
  mistakes: "leasehold.mistakes",
  clockSkew: "leasehold.clock.skew",
  computeDuration: "leasehold.single_flight.compute.duration",
  served: "leasehold.single_flight.served",
  cacheFailures: "leasehold.single_flight.cache.failures",
} as const;

/** Names of attributes. */
export const attributeNames = {
  /** The lock's key; of a group of locks, all keys. */
  key: "leasehold.lock.key",
  sortKey: "leasehold.lock.sort_key",
  owner: "leasehold.lock.owner",
  holder: "leasehold.lock.holder",
  fencingToken: "leasehold.lock.fencing_token",
  /** How a call or a lease ended; see {@link outcomes}. */
  outcome: "leasehold.lock.outcome",
  lostReason: "leasehold.lost.reason",
  takeoverReason: "leasehold.takeover.reason",
  operation: "leasehold.operation",
  /** Where a value came from: `cache`, `computation`, `otherProcess` or `stale`. */
  source: "leasehold.single_flight.source",
  errorType: "error.type",
  tableNames: "aws.dynamodb.table_names",
} as const;

/** Values of `leasehold.lock.outcome`. */
export const outcomes = {
  acquired: "acquired",
  /** Another caller holds the lock, and the time to wait is over. */
  unavailable: "unavailable",
  /** The lock's queue has no room. */
  queueFull: "queue_full",
  slotDone: "slot_done",
  /** The caller's signal ended the call. */
  aborted: "aborted",
  /** The call ended with an error, which `error.type` names. */
  failed: "failed",
  released: "released",
  /** It was released, but the service did not confirm that. */
  unconfirmed: "unconfirmed",
  lost: "lost",
  /**
   * This process has seen no more events of the lease, as when it was handed to another process; or the instrumentation
   * was ended before.
   */
  unknown: "unknown",
} as const;
