// The entry of the tool: what this repository imports from it.

export type { LocalAppEvent, LocalAppOptions } from "./app/options.ts";
export { type LocalApp, startApp } from "./app.ts";
export type { EnvironmentInfo, InvokeResult } from "./lambda/types.ts";
export type { ExecutionDescription } from "./state-machines/events.ts";
export { openShard, readShard } from "./streams/shard.ts";
