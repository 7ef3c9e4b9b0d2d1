export type { Clock } from "../base/clock.ts";
export { ManualClock, settled } from "../stores/memory/manual-clock.ts";
export { MemoryLeaseStore } from "../stores/memory/memory-store.ts";
