/**
 * The members of `request.internal` in which Powertools' middlewares leave their clean-up, in the order of Powertools'
 * calls.
 */
const cleanUps = ["tracer", "metrics", "logger", "idempotency"].map((name) => `powertools-for-aws.${name}`);
/** Powertools' idempotency leaves no clean-up. These members hold its own state of the request. */
const idempotency = {
  handler: "powertools-for-aws.idempotency.idempotencyHandler",
  isUnused: "powertools-for-aws.idempotency.skip",
} as const;

/** The methods of Powertools' idempotency; its own middleware calls this one when the handler has failed. */
interface IdempotencyHandler {
  readonly handleMiddyOnError?: () => Promise<void>;
}

/**
 * Cleans up after Powertools' middlewares, whose later hooks do not run after an early answer. It closes the metrics
 * and a trace's segment, resets the logger's keys, and deletes the idempotency record of undone work. Otherwise the
 * first three would leak into the next invocation, and the last would stay "in progress".
 */
export async function cleanUpPowertools(request: { readonly internal: object }): Promise<void> {
  // Each middleware replaces `internal` as a whole.
  const internal = request.internal as Readonly<Record<string, unknown>>;
  for (const name of cleanUps) {
    const cleanUp = internal[name];
    if (typeof cleanUp === "function") await cleanUp(request);
  }
  if (internal[idempotency.isUnused] === true) return;
  await (internal[idempotency.handler] as IdempotencyHandler | undefined)?.handleMiddyOnError?.();
}
