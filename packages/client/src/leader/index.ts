export { Leader, type Leadership } from "./leader.ts";
export type { LeaderRecord, ObserveOptions } from "./observation.ts";
export type { LeaderOptions } from "./options.ts";
