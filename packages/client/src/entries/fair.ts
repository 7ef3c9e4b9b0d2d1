export { type FairOptions, fair } from "../primitives/fair/fair.ts";
export {
  type CheckIn,
  type CheckInOptions,
  type FairAcquireOptions,
  FairLock,
  type FairLockOptions,
  type FairLockState,
} from "../primitives/fair/fair-lock.ts";
export { QueueFullError, type WaitingCaller } from "../primitives/fair/queue-ticket.ts";
export type { QueuePosition } from "../primitives/fair/queue-waiter.ts";
