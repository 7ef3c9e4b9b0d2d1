import type { ValueFormat } from "@leasehold/client";
import type { Heartbeat, ProtocolContext } from "@leasehold/client/internal";
import type { TaskSetTerms } from "./options.ts";

/**
 * What every part of one task set works with: the client's context, with a `retentionMs` and a `detector` of the
 * set's own.
 */
export interface TaskContext extends ProtocolContext {
  /** The set's name, and the partition key of its items. */
  readonly set: string;
  readonly terms: TaskSetTerms;
  readonly heartbeat: Heartbeat;
  readonly format: ValueFormat;
}
