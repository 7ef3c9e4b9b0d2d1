export type { ResultCache } from "./cache.ts";
export type { CachedFailure, CacheEntry } from "./entry.ts";
export {
  CachedFailureError,
  CacheUnreadableError,
  CacheUnwritableError,
  ComputationTimeoutError,
} from "./errors.ts";
export type {
  CacheFailedEvent,
  ComputedEvent,
  ServedEvent,
  SingleFlightEvent,
  SingleFlightListener,
  ValueSource,
} from "./events.ts";
export { singleFlightChannel } from "./events.ts";
export type { ComputeContext, GetOrComputeOptions, SingleFlightOptions } from "./options.ts";
export { SingleFlight, type SourcedValue } from "./single-flight.ts";
export { TableCache } from "./table-cache.ts";
