// The entry of the tool: what this repository imports from it, and the errors that it throws.

export type { LocalAppEvent } from "./app/events.ts";
export { UnknownResourceError } from "./app/names.ts";
export type { LocalAppOptions } from "./app/options.ts";
export { LocalApp, startApp } from "./app.ts";
export { AssemblyError, UnsupportedIntrinsicError, UnsupportedResourceError } from "./assembly/errors.ts";
export { readAssembly } from "./assembly/read.ts";
export { resolveApp } from "./assembly/resolve.ts";
export type { AppSpec } from "./assembly/types.ts";
export { LambdaServiceError } from "./lambda/errors.ts";
export { LambdaRuntime } from "./lambda/runtime.ts";
export type { EnvironmentInfo, InvokeResult } from "./lambda/types.ts";
export { InvalidDefinitionError, StatesError } from "./state-machines/errors.ts";
export type { ExecutionDescription } from "./state-machines/execution.ts";
export { StateMachines } from "./state-machines/state-machines.ts";
export type { ServiceCall, TaskContext } from "./state-machines/task.ts";
export { UnsupportedFilterError } from "./streams/filter.ts";
