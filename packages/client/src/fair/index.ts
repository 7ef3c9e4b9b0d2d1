export type { PlaceInQueue } from "../options.ts";
export { QueueFullError } from "./errors.ts";
export {
  type CheckIn,
  type CheckInOptions,
  type FairAcquireOptions,
  FairLock,
  type FairLockOptions,
  type FairLockState,
  type WaitingCaller,
} from "./fair-lock.ts";
