export type { Metric } from "./app/embedded-metrics.ts";
export type { LocalAppEvent, LocalAppListener } from "./app/events.ts";
export { UnknownResourceError } from "./app/names.ts";
export type { LocalAppOptions } from "./app/options.ts";
export { LocalApp, startApp } from "./app.ts";
export {
  AssemblyError,
  type AssemblyErrorCode,
  UnsupportedIntrinsicError,
  UnsupportedResourceError,
} from "./assembly/errors.ts";
export { readAssembly } from "./assembly/read.ts";
export { functionNameOf, type ResolveOptions, resolveApp } from "./assembly/resolve.ts";
export type {
  AppSpec,
  Assembly,
  FunctionSpec,
  Json,
  QueueSpec,
  ResourceName,
  ScheduleSpec,
  StateMachineSpec,
  StreamMappingSpec,
  TableSpec,
} from "./assembly/types.ts";
export {
  EndpointUnreachableError,
  type EngineErrorCode,
  EngineStartError,
  EngineUnavailableError,
  InvalidEndpointError,
} from "./engine/errors.ts";
export { availableEngines, startEngine } from "./engine/start.ts";
export type { Engine, EngineClientConfig, EngineOptions, LocalEngineName } from "./engine/types.ts";
export { LambdaServiceError } from "./lambda/errors.ts";
export { LambdaRuntime } from "./lambda/runtime.ts";
export type {
  AsyncFailureRecord,
  EnvironmentInfo,
  EnvironmentState,
  FunctionDefinition,
  InvokeOptions,
  InvokeResult,
  LambdaEvent,
  LambdaLogLine,
  LambdaRuntimeOptions,
} from "./lambda/types.ts";
export type { Fired, ScheduleEvent } from "./schedules/scheduler.ts";
export type { BusEvent } from "./services/event-bus.ts";
export type { QueueMessage } from "./services/queues.ts";
export { InvalidDefinitionError, StatesError } from "./state-machines/errors.ts";
export type { StateMachineEvent } from "./state-machines/events.ts";
export type { ExecutionDescription, ExecutionStatus } from "./state-machines/execution.ts";
export { StateMachines, type StateMachinesOptions } from "./state-machines/state-machines.ts";
export type { ServiceCall, TaskContext } from "./state-machines/task.ts";
export type { FailedBatch } from "./streams/delivery.ts";
export type { StreamEventRecord } from "./streams/event.ts";
export { UnsupportedFilterError } from "./streams/filter.ts";
