import type { ValueFormat } from "@leasehold/client";
import type { Acquirer, ProtocolContext } from "@leasehold/client/internal";
import type { TaskSetTerms } from "./options.ts";

/** What every part of one task set works with: the client's context, whose `retentionMs` is the set's `keepForMs`. */
export interface TaskContext extends ProtocolContext {
  /** The set's name, and the partition key of its items. */
  readonly set: string;
  readonly terms: TaskSetTerms;
  /** Renews the claims, together with the client's other leases. */
  readonly acquirer: Acquirer;
  readonly format: ValueFormat;
}
