// What users import: an engine for tests and development, and the errors that say why there is none.

export {
  EndpointUnreachableError,
  type EngineErrorCode,
  EngineStartError,
  EngineUnavailableError,
  InvalidEndpointError,
  InvalidEngineOptionError,
} from "./errors.ts";
export { availableEngines, startEngine } from "./start.ts";
export type { Engine, EngineClientConfig, EngineOptions, LocalEngineName } from "./types.ts";
