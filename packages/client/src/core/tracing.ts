/**
 * Lets tracing tools follow a call to acquire from its beginning to its end, whatever the outcome. The tools see no
 * token and no payload.
 */
import { tracingChannel } from "node:diagnostics_channel";

/**
 * One call to acquire, as Node's tracing channel `leasehold:acquire` shows it. Node adds `error` to it when the call
 * rejects.
 */
export interface AcquireTrace {
  readonly tableName: string;
  /** One key, or all keys of a group. */
  readonly keys: readonly string[];
  readonly sortKey: string;
  readonly owner: string;
  /** How long the call waits for a lock that is held, in milliseconds. */
  readonly waitMs: number;
  /** Ends the call: its reason is the error then. */
  readonly signal: AbortSignal | undefined;
  readonly error?: unknown;
}

/** The name of the tracing channel of all calls to acquire. */
export const acquireChannel = "leasehold:acquire";

const calls = tracingChannel<unknown, AcquireTrace>(acquireChannel);

/** Whether a tool listens. */
export function isTraced(): boolean {
  return calls.hasSubscribers;
}

/** Runs a call to acquire so that listening tools can trace it. */
export async function traced<T>(
  { tableName }: Pick<AcquireTrace, "tableName">,
  keys: readonly string[],
  { sortKey, owner, waitMs, signal }: Omit<AcquireTrace, "tableName" | "keys">,
  call: () => Promise<T>,
): Promise<T> {
  let result: T | undefined;
  // The tools must not see the result.
  const show = async (): Promise<void> => {
    result = await call();
  };
  await calls.tracePromise(show, { tableName, keys, sortKey, owner, waitMs, signal });
  return result as T;
}
