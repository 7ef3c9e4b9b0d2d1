import { channel, hasSubscribers } from "node:diagnostics_channel";

/**
 * Work under a lease, as the diagnostics channel `leasehold:work` shows it before the work begins. A tracing tool can
 * replace `run` by a function that calls the earlier `run` in a context of its own.
 */
export interface WorkTrace {
  readonly key: string;
  /** The lease's sort key under its key. */
  readonly sortKey: string;
  readonly fencingToken: number;
  /** Runs the work, and returns what it returns. */
  run: () => unknown;
}

/** The name of the channel of work under leases. */
export const workChannel = "leasehold:work";

/** Runs the user's work under a lease, in the context of the tools that listen. */
export function runTraced<T>({ key, sortKey, fencingToken }: Omit<WorkTrace, "run">, work: () => T): T {
  if (!hasSubscribers(workChannel)) return work();
  const trace: WorkTrace = { key, sortKey, fencingToken, run: work };
  channel(workChannel).publish(trace);
  return trace.run() as T;
}
