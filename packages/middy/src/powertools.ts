/** Where Powertools' middlewares leave their clean-up in `request.internal`, in the order in which Powertools calls them. */
const cleanUps = ["tracer", "metrics", "logger", "idempotency"].map((name) => `powertools-for-aws.${name}`);
/** Powertools' idempotency leaves no clean-up. These are where it keeps its own state of the request. */
const idempotency = {
  handler: "powertools-for-aws.idempotency.idempotencyHandler",
  isUnused: "powertools-for-aws.idempotency.skip",
} as const;

/** What Powertools' idempotency can be asked for; its own middleware calls it when the handler has failed. */
interface IdempotencyHandler {
  readonly handleMiddyOnError?: () => Promise<void>;
}

/**
 * Cleans up after Powertools' middlewares, whose later hooks do not run when a request is answered early: metrics and a
 * trace's segment are closed, the logger's keys are reset, and the idempotency record of work that was not done is
 * deleted. Otherwise the first three would leak into the next invocation, and the last would stay "in progress".
 */
export async function cleanUpPowertools(request: { readonly internal: object }): Promise<void> {
  // Each replaces `internal` as a whole.
  const internal = request.internal as Readonly<Record<string, unknown>>;
  for (const name of cleanUps) {
    const cleanUp = internal[name];
    if (typeof cleanUp === "function") await cleanUp(request);
  }
  if (internal[idempotency.isUnused] === true) return;
  await (internal[idempotency.handler] as IdempotencyHandler | undefined)?.handleMiddyOnError?.();
}
