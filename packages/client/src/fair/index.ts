export { QueueFullError } from "./errors.ts";
export { type FairOptions, fair, type QueuePosition } from "./fair.ts";
export {
  type CheckIn,
  type CheckInOptions,
  type FairAcquireOptions,
  FairLock,
  type FairLockOptions,
  type FairLockState,
} from "./fair-lock.ts";
export type { WaitingCaller } from "./queue-ticket.ts";
