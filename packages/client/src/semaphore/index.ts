export {
  mostPermits,
  permitNumber,
  permitPlace,
  permitSortKeyPrefix,
  turnPlace,
} from "../schema-semaphore.ts";
export type { PermitOptions, SemaphoreOptions, TryPermitOptions } from "./options.ts";
export { Semaphore, type SemaphoreState } from "./semaphore.ts";
