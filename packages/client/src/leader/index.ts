export { Leader, type Leadership } from "./leader.ts";
export type { ObserveOptions, Reign } from "./observation.ts";
export type { LeaderOptions } from "./options.ts";
