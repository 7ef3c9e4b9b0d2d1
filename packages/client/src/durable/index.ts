export {
  DurableLock,
  type DurableLockOptions,
  longestOwner,
  type Outcome,
  type Waiter,
} from "./durable-lock.ts";
