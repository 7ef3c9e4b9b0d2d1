/** The numbers that the workers use and the checker judges by. Short leases: so much can happen to them in a minute. */
export const terms = {
  leaseDurationMs: 2_500,
  /** Shorter than its holder's work. */
  shortLeaseMs: 400,
  clockSkewMs: 300,
  /** How long a lock stays closed at least, where its caller wants that. */
  lockAtLeastForMs: 2_000,
  /** What is closed until a time may open so much earlier: the service tells whole seconds. */
  earlyMs: 1_200,
  /** Of the semaphore. */
  permits: 3,
  /** Of the fair lock's line. */
  maxWaiters: 12,
  /** How long a caller waits in the fair lock's line. Dead waiters hold it up for 11 s. */
  fairWaitMs: 20_000,
  /** A lock that is free for less is free for too short a time to pass a silent waiter, even a dead one. */
  undisturbedMs: 9_000,
  /** How long the other callers wait. */
  waitMs: 3_000,
  /** How long a value of single flight is fresh. */
  freshForMs: 400,
  /** How long the auditor waits for each lock: dead holders and a line of dead waiters are over by then. */
  auditWaitMs: 30_000,
} as const;

/** What is fought over. Few keys, so that callers meet. */
export const keys = {
  lock: ["lock/1", "lock/2"],
  shared: ["shared/1"],
  operated: ["operated/1"],
  fair: ["fair/1"],
  semaphore: ["semaphore/1"],
  readWrite: ["read-write/1"],
  group: ["group/1", "group/2", "group/3"],
  leader: ["leader/1"],
  singleFlight: ["flight/1", "flight/2"],
  runs: ["job/1"],
  tasks: ["tasks/1"],
} as const satisfies Readonly<Record<string, readonly [string, ...string[]]>>;
