export { type InstrumentationOptions, instrumentLeasehold } from "./instrument.ts";
export type { KeyDimension } from "./instruments.ts";
export { attributeNames, metricNames, outcomes, spanNames } from "./names.ts";
