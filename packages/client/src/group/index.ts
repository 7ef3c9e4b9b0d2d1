export { acquireAll, type GroupOptions } from "./acquire-all.ts";
export { GroupUnavailableError, type HeldKey } from "./errors.ts";
export { LeaseGroup } from "./lease-group.ts";
