export type { DrainOptions, PermitOptions, SemaphoreOptions, TryPermitOptions } from "./options.ts";
export { mostPermits } from "./options.ts";
export { Semaphore, type SemaphoreState } from "./semaphore.ts";
