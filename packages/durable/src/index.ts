export type { DurableLease, DurableLeaseOptions } from "./options.ts";
export { withDurableLease } from "./with-durable-lease.ts";
