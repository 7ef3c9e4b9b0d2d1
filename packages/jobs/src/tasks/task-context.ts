import type { Core } from "@leasehold/client/internal";
import type { TaskSetTerms } from "./options.ts";

/** The parts that one task set uses. */
export interface TaskContext {
  readonly core: Core;
  /** The set's name, and the partition key of its items. */
  readonly set: string;
  readonly terms: TaskSetTerms;
}
