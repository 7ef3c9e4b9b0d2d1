/** Lambda's own bounds. */
export const lambdaLimits = {
  /** A synchronous request: 6 MB. */
  requestBytes: 6_291_456,
  /** An answer may be 100 bytes larger than a request. */
  responseBytes: 6_291_556,
  /** An asynchronous request: 1 MB. */
  asyncRequestBytes: 1_048_576,
  /** How long code may take to load before its first invocation. */
  initMs: 10_000,
  /** How long a process has after SIGTERM. Lambda gives 300 to 500 ms where an internal extension asked for it. */
  shutdownMs: 400,
} as const;
