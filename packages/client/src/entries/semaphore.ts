export {
  type DrainOptions,
  mostPermits,
  type PermitOptions,
  Semaphore,
  type SemaphoreOptions,
  type SemaphoreState,
  type TryPermitOptions,
} from "../primitives/seats/semaphore.ts";
