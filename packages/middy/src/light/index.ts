export type { LeasedBatchOptions, LeasedBatchResponse } from "../batch.ts";
export type { BatchItemFailure } from "../batch-records.ts";
export { CompletionFailedError } from "../completion.ts";
export type { MetricsCollector } from "../invocation-metrics.ts";
export type { LeaseLockMiddleware, LeaseLockRequest } from "../lease-lock.ts";
export type { LeasedHandler, LeasedMethodDecorator } from "../leased.ts";
export type { LeaseLockOptions, SkipReason, SkipResult, WhenHeld } from "../options.ts";
export { InvocationEndingError, type Lock } from "../signal.ts";
export { leased, leasedBatch, leaseLock } from "./lock.ts";
