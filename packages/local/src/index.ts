export { type EngineErrorCode, EngineStartError, EngineUnavailableError } from "./engine/errors.ts";
export { availableEngines, startEngine } from "./engine/start.ts";
export type { Engine, EngineClientConfig, EngineOptions, LocalEngineName } from "./engine/types.ts";
