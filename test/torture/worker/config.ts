import type { Primitive } from "../history.ts";

/** What the supervisor tells a process at its start. */
export interface WorkerConfig {
  readonly name: string;
  readonly seed: number;
  /** Its own journal. */
  readonly journal: string;
  /** Where the engine answers: through this process's own faulty proxy. */
  readonly clientConfig: {
    readonly endpoint: string;
    readonly region: string;
    readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  };
  readonly tableName: string;
  /** Where the registers are. */
  readonly itemsTable: string;
  /** Which store its leases go by. */
  readonly store: "sdk" | "light";
  /** How wrong its wall clock is. */
  readonly wallMs: number;
  readonly primitives: readonly Primitive[];
  /** When the run began, on the monotonic clock in microseconds, and its first slot, in epoch milliseconds. */
  readonly startedAt: number;
  readonly firstSlot: number;
  /** At most one turn begins in this time. */
  readonly paceMs: number;
  /** Whether it audits what the others have left behind, in place of working. */
  readonly audits: boolean;
}
