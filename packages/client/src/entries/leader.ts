export { Leader, type Leadership } from "../primitives/leader/leader.ts";
export type { LeaderRecord, ObserveOptions } from "../primitives/leader/observation.ts";
export type { LeaderOptions } from "../primitives/leader/options.ts";
