import type { ValueFormat } from "../fencing.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import type { ExpiryDetector } from "../protocol/expiry-detector.ts";
import type { Heartbeat } from "../protocol/heartbeat.ts";
import type { TaskSetTerms } from "./options.ts";

/** What every part of one task set works with. */
export interface TaskDesk {
  /** The set's name, and the partition key of its items. */
  readonly set: string;
  readonly terms: TaskSetTerms;
  /** The client's, but that claims keep their items for as long as the set says. */
  readonly context: ProtocolContext;
  readonly detector: ExpiryDetector;
  readonly heartbeat: Heartbeat;
  readonly format: ValueFormat;
}
