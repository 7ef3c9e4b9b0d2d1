// The entry of the tool: what this repository imports from it.

export type { LocalAppEvent, LocalAppOptions } from "./app/options.ts";
export { LocalApp, startApp, UnknownResourceError } from "./app.ts";
export { readAssembly } from "./assembly/read.ts";
export { resolveApp } from "./assembly/resolve.ts";
export { LambdaRuntime } from "./lambda/runtime.ts";
export type { EnvironmentInfo, InvokeResult } from "./lambda/types.ts";
export { InvalidDefinitionError } from "./state-machines/errors.ts";
export type { ExecutionDescription } from "./state-machines/events.ts";
export { StateMachines } from "./state-machines/state-machines.ts";
