export type { ResultCache } from "../primitives/single-flight/cache.ts";
export { TableCache } from "../primitives/single-flight/cache.ts";
export type { CachedFailure, CacheEntry } from "../primitives/single-flight/entry.ts";
export {
  CachedFailureError,
  CacheUnreadableError,
  CacheUnwritableError,
  ComputationTimeoutError,
} from "../primitives/single-flight/errors.ts";
export type {
  CacheFailedEvent,
  ComputedEvent,
  RefreshFailedEvent,
  ServedEvent,
  SingleFlightEvent,
  SingleFlightListener,
  ValueSource,
} from "../primitives/single-flight/events.ts";
export { singleFlightChannel } from "../primitives/single-flight/events.ts";
export type {
  ComputeContext,
  GetOrComputeOptions,
  SingleFlightOptions,
} from "../primitives/single-flight/options.ts";
export { SingleFlight, type SourcedValue } from "../primitives/single-flight/single-flight.ts";
