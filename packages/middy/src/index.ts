export { CompletionFailedError } from "./completion.ts";
export { type LeaseLockMiddleware, type LeaseLockRequest, leaseLock } from "./lease-lock.ts";
export { type LeasedHandler, leased } from "./leased.ts";
export type { LeaseLockOptions, SkipReason, SkipResult, WhenHeld } from "./options.ts";
export { InvocationEndingError, type Lock } from "./signal.ts";
