export type { ConformanceCheck, ConformanceGroup, ConformanceOptions } from "../checks/conformance/check.ts";
export { conformanceChecks } from "../checks/conformance/checks.ts";
export type {
  ClockOffset,
  ConformanceCost,
  ConformanceMeasurements,
} from "../checks/conformance/measurements.ts";
export {
  type ConformanceReport,
  type ConformanceResult,
  type ConformanceRunOptions,
  runConformance,
} from "../checks/conformance/run.ts";
