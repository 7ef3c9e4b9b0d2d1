export type { Clock } from "../time/clock.ts";
export { ManualClock, settled } from "./manual-clock.ts";
export { MemoryLeaseStore } from "./memory-store.ts";
