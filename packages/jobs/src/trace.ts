import { limits, type Rules, text } from "@leasehold/client/internal";

/** Who acts, for what people and tools do to runs and tasks. */
export interface TraceOptions {
  /**
   * Who acts: a person or a tool. Then a trace of it is written in the same transaction, under the key of the job or of the
   * set; `LeaseOperator.audit` and `leasehold audit` show it for 30 days. It makes the write twice as dear. At most 1024 bytes.
   *
   * @default - no trace
   */
  readonly by?: string;
}

export const traceRules: Rules<TraceOptions> = { by: text(limits.ownerBytes) };
