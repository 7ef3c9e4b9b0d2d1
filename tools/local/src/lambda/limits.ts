/** Lambda's own bounds. */
export const lambdaLimits = {
  /** How long code may take to load before its first invocation. */
  initMs: 10_000,
  /** How long a process has after SIGTERM. Lambda gives 300 to 500 ms where an internal extension asked for it. */
  shutdownMs: 400,
} as const;
