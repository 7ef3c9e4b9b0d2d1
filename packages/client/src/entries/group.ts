export { acquireAll, type GroupOptions } from "../primitives/group/acquire-all.ts";
export { GroupUnavailableError, type HeldKey } from "../primitives/group/errors.ts";
export { LeaseGroup } from "../primitives/group/lease-group.ts";
