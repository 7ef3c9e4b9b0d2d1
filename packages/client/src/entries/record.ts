export { LeaseItemError } from "../base/errors.ts";
export * from "../base/lease-record.ts";
export { type LeaseState, leaseState, renewedAt } from "../base/lease-record.ts";
export * from "../base/record.ts";
