export type { ConformanceCheck, ConformanceGroup, ConformanceOptions } from "./check.ts";
export { conformanceChecks } from "./checks.ts";
export type { ConformanceMeasurements } from "./measurements.ts";
export type { ClockOffset, ConformanceCost } from "./metered-store.ts";
export {
  type ConformanceReport,
  type ConformanceResult,
  type ConformanceRunOptions,
  runConformance,
} from "./run.ts";
