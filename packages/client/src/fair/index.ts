export { QueueFullError } from "./errors.ts";
export { FairLock, type FairLockState, type WaitingCaller } from "./fair-lock.ts";
export type { FairAcquireOptions, FairLockOptions, PlaceInQueue } from "./options.ts";
