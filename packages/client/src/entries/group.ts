export {
  acquireAll,
  type GroupOptions,
  GroupUnavailableError,
  type HeldKey,
} from "../primitives/group/acquire-all.ts";
export { LeaseGroup } from "../primitives/group/lease-group.ts";
