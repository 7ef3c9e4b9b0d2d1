export { QueueFullError } from "../fair/errors.ts";
export type { WaitingCaller } from "../fair/queue.ts";
export type { PlaceInQueue } from "../options/options.ts";
export {
  type CheckIn,
  type CheckInOptions,
  type FairAcquireOptions,
  FairLock,
  type FairLockOptions,
  type FairLockState,
} from "./fair-lock.ts";
