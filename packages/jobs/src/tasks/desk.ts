import type { ValueFormat } from "@leasehold/client";
import type { Heartbeat, Judge, ProtocolContext } from "@leasehold/client/internal";
import type { TaskSetTerms } from "./options.ts";

/** What every part of one task set works with. */
export interface TaskDesk {
  /** The set's name, and the partition key of its items. */
  readonly set: string;
  readonly terms: TaskSetTerms;
  /** The client's, but that claims keep their items for as long as the set says. */
  readonly context: ProtocolContext;
  readonly judge: Judge;
  readonly heartbeat: Heartbeat;
  readonly format: ValueFormat;
}
