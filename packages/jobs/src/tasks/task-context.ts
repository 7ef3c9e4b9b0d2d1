import type { ValueFormat } from "@leasehold/client";
import type { Acquirer, ProtocolContext } from "@leasehold/client/internal";
import type { TaskSetTerms } from "./options.ts";

/** The parts that one task set uses: the client's context, with the set's `keepForMs` as its `retentionMs`. */
export interface TaskContext extends ProtocolContext {
  /** The set's name, and the partition key of its items. */
  readonly set: string;
  readonly terms: TaskSetTerms;
  /** Renews the claims, together with the client's other leases. */
  readonly acquirer: Acquirer;
  readonly format: ValueFormat;
}
