import {
  type DurableContext,
  DurablePromise,
  defaultSerdes,
  StepInterruptedError,
  StepSemantics,
} from "@aws/durable-execution-sdk-js";
import { InvalidOptionsError, type LeaseClient, type LeaseHandle, LeaseLostError } from "@leasehold/client";
import { withMethods } from "@leasehold/client/internal";
import { acquireInSteps } from "./acquiring.ts";
import { type Beat, ExecutionLease, type Loss, type ReleaseOutcome, Workload } from "./execution-lease.ts";
import { leaseErrorIn, portably, retryService } from "./failures.ts";
import { guarded } from "./guarded-context.ts";
import {
  type DurableLease,
  type DurableLeaseOptions,
  type DurableTerms,
  readDurableOptions,
} from "./options.ts";

const contextRule = withMethods("step", "runInChildContext", "waitForCallback", "waitForCondition");

/** How often a release is tried. A lock that is not released frees itself when the lease ends. */
const mostReleases = 5;

/**
 * Runs work under a lease that belongs to the durable execution, and not to one of its invocations.
 *
 * The lease is acquired in a step, so a replay goes on with the same lease. The execution itself renews it, every third
 * of its duration, also while it is suspended. The lease is released when the work has ended, in any way. An execution
 * that was stopped, or that timed out, does not renew it any more: then the lease ends after `leaseDurationMs` at the
 * latest.
 *
 * The work gets its own context, and must use no other. The lease is checked before a step, a condition's check, a
 * callback's submitter or an invocation of another function begins in that context. Once the lease is lost, each of
 * them rejects with LeaseLostError, `lease.signal` aborts, and the execution goes on with LeaseLostError, even from a
 * suspension. As always in a durable function, code that waits has to be in a step: the work is suspended where nothing
 * runs in one.
 *
 * Resolves to the work's result, passed through JSON, if the lease protected the work to its end. That completes its
 * `slot`. Rejects with LeaseUnavailableError, SlotDoneError, LeaseLostError or LeaseServiceError; with the SDK's
 * ChildContextError, whose `cause.name` is the name of the work's own error; and with InvalidOptionsError, before
 * anything is sent.
 *
 * Requests to DynamoDB: 1 to acquire, 2 for each time that it waits; 1 every third of the lease; 1 for the first step
 * of each invocation that comes after; 1 to release. Durable operations: 6, and 4 for each time that it waits.
 *
 * ```ts
 * export const handler = withDurableExecution(async (event: { orderId: string }, context: DurableContext) =>
 *   withDurableLease(context, client, `order/${event.orderId}`, { waitMs: 3_600_000 }, async (lease, context) => {
 *     const quote = await context.step("quote", () => askForQuote(event.orderId, { signal: lease.signal }));
 *     await context.wait({ days: 3 });
 *     return await context.step("accept", () => acceptQuote(quote, lease.fencingToken));
 *   }),
 * );
 * ```
 */
export async function withDurableLease<T>(
  context: DurableContext,
  client: LeaseClient,
  key: string,
  options: DurableLeaseOptions,
  work: (lease: DurableLease, context: DurableContext) => Promise<T>,
): Promise<T> {
  contextRule("context", context);
  if (typeof work !== "function") throw new InvalidOptionsError("work", work, "a function");
  const workload = new Workload();
  const terms = readDurableOptions(client, key, options, () => workload.isWorking);
  let outcome: { readonly result: T } | { readonly error: unknown } | undefined;
  const { promise: isChecked, resolve: begin } = Promise.withResolvers<void>();
  // Virtual: it numbers the operations by themselves among the caller's, and runs in every replay.
  const leasing = context.runInChildContext(
    "lease",
    async (own) => {
      await isChecked;
      try {
        outcome = { result: await holding(own, terms, workload, work) };
      } catch (error) {
        outcome = { error: leaseErrorIn(error) ?? error };
      }
    },
    { virtualContext: true, serdes: defaultSerdes },
  );
  refuseOtherCopy(leasing);
  begin();
  await leasing;
  if (outcome === undefined) throw new Error("the durable execution went on before its work had ended");
  if ("error" in outcome) throw outcome.error;
  return outcome.result;
}

/**
 * Refuses a context of another copy of the SDK, before anything is sent: errors of one copy lose their data in the
 * checkpoints of another.
 */
function refuseOtherCopy(operation: object): void {
  if (operation instanceof DurablePromise || operation.constructor.name !== DurablePromise.name) return;
  const allowed = "a context of the copy that @leasehold/durable loads";
  throw new InvalidOptionsError("context", operation, allowed, {
    finding: "is of another copy of @aws/durable-execution-sdk-js",
    advice: "install the SDK once, and load both packages by import, or both by require",
  });
}

/** Runs the work, and renews its lease beside it. */
async function holding<T>(
  context: DurableContext,
  terms: DurableTerms,
  workload: Workload,
  work: (lease: DurableLease, context: DurableContext) => Promise<T>,
): Promise<T> {
  const { key } = terms.lock;
  const acquired = Promise.withResolvers<ExecutionLease>();
  const workEnded = Promise.withResolvers<boolean>();
  const keeping = context.runInChildContext(
    "lease:hold",
    (own) => portably(() => keep(own, terms, workload, acquired.resolve, workEnded.promise)),
    { serdes: defaultSerdes },
  );
  // A replay after the end finds only how it has ended.
  const kept = keeping.then(({ handle, loss }) => {
    if (loss !== undefined) throw lossErrorOf(key, loss);
    return handle;
  });
  const held = await Promise.race([
    acquired.promise,
    kept.then((handle) => newHeld(terms, workload, handle)),
  ]);
  const working = context.runInChildContext("lease:work", async (own) => {
    // Not so when a replay finds the work's end in its checkpoint.
    held.workIs("runs");
    return await portably(() => work(held.lease, guarded(own, held)));
  });
  let result: T;
  try {
    result = await Promise.race([working, kept.then(() => working)]);
  } catch (error) {
    held.workIs("ended");
    workEnded.resolve(false);
    // Ignored: the work's own error comes first, and a lease that was not released ends by itself.
    await keeping.catch(() => undefined);
    throw error;
  }
  held.workIs("ended");
  workEnded.resolve(true);
  await kept;
  const { ending } = await keeping;
  if (typeof ending === "object") throw lossErrorOf(key, ending);
  return result;
}

/** How the lease has ended. */
interface DurableHold {
  readonly handle: LeaseHandle;
  readonly ending: ReleaseOutcome;
  /** The loss that the renewals have found. */
  readonly loss?: Loss;
}

/** Acquires the lease, renews it until it is lost or the work has ended, and releases it. */
async function keep(
  context: DurableContext,
  terms: DurableTerms,
  workload: Workload,
  onAcquired: (held: ExecutionLease) => void,
  workEnded: Promise<boolean>,
): Promise<DurableHold> {
  const lease = await acquireInSteps(context, terms);
  const handle = lease.toJSON();
  const held = new ExecutionLease(lease, terms.lock, workload);
  const losing = untilLost(context, held, terms.lock.leaseDurationMs);
  onAcquired(held);
  const end = await Promise.race([workEnded, losing]);
  const ending = await releaseInStep(context, held, end === true);
  return typeof end === "boolean" ? { handle, ending } : { handle, ending, loss: end };
}

function newHeld({ lock }: DurableTerms, workload: Workload, handle: LeaseHandle): ExecutionLease {
  return new ExecutionLease(lock.resume(handle), lock, workload);
}

function lossErrorOf(key: string, { reason, message }: Loss): LeaseLostError {
  return Object.assign(new LeaseLostError(key, reason), { message });
}

/** The checkpointed results of a lease's renewals. */
type RenewalState = { readonly state: "new" | "begun" } | Beat;

/** Renews the lease for as long as the execution goes on. Resolves when the lease is lost. */
async function untilLost(
  context: DurableContext,
  held: ExecutionLease,
  leaseDurationMs: number,
): Promise<Loss> {
  const everySeconds = Math.max(1, Math.floor(leaseDurationMs / 3_000));
  const soonSeconds = Math.max(1, Math.floor(everySeconds / 3));
  const kept = await context.waitForCondition<RenewalState>(
    "lease:keep",
    async (before) => (before.state === "new" ? { state: "begun" } : await held.beat()),
    {
      initialState: { state: "new" },
      serdes: defaultSerdes,
      waitStrategy: (now) =>
        now.state === "lost"
          ? { shouldContinue: false }
          : {
              shouldContinue: true,
              delay: { seconds: now.state === "unanswered" ? soonSeconds : everySeconds },
            },
    },
  );
  if (kept.state !== "lost") throw new Error("the renewing of the lease has ended before the lease");
  return kept;
}

/**
 * Releases the lock in a step. A lock that cannot be released frees itself when the lease ends.
 *
 * At most once for each attempt: only then does an attempt know that an earlier one may have landed.
 */
async function releaseInStep(
  context: DurableContext,
  held: ExecutionLease,
  completed: boolean,
): Promise<ReleaseOutcome> {
  try {
    return await context.step(
      "lease:release",
      ({ attempt }) => portably(() => held.end(completed, attempt > 1)),
      {
        serdes: defaultSerdes,
        semantics: StepSemantics.AtMostOncePerRetry,
        retryStrategy: (error, attempt) =>
          error instanceof StepInterruptedError && attempt < mostReleases
            ? { shouldRetry: true, delay: { seconds: 1 } }
            : retryService(error, attempt),
      },
    );
  } catch (error) {
    const isInterrupted = ((error as Error).cause as Error | undefined)?.name === "StepInterruptedError";
    if (leaseErrorIn(error) === undefined && !isInterrupted) throw error;
    return "unknown";
  }
}
