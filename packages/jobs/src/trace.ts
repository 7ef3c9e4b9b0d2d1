import { limits, type Rules, text } from "@leasehold/client/internal";

/** The person or tool that acts on runs and tasks. */
export interface TraceOptions {
  /**
   * The person or tool that acts. With it, the same transaction writes a trace, under the key of the job or of the set;
   * `LeaseOperator.audit` and `leasehold audit` show it for 30 days. The write then costs twice as much. At most 1024
   * bytes.
   *
   * @default - no trace
   */
  readonly by?: string;
}

export const traceRules: Rules<TraceOptions> = { by: text(limits.ownerBytes) };
