import {
  type DurableContext,
  defaultSerdes,
  StepInterruptedError,
  StepSemantics,
} from "@aws/durable-execution-sdk-js";
import { InvalidOptionsError, type LeaseClient, LeaseLostError } from "@leasehold/client";
import { acquire } from "./acquiring.ts";
import { leaseErrorIn, portable, retryService } from "./failures.ts";
import { guarded } from "./guarded-context.ts";
import { type Beat, type Ending, HeldLease, Workload } from "./held-lease.ts";
import { type DurableLease, type DurableLeaseOptions, type DurableTerms, readOptions } from "./options.ts";

/** How often a release is tried; what it leaves frees itself when the lease ends. */
const mostReleases = 5;

/**
 * Runs work under a lease that belongs to the durable execution, and not to one of its invocations.
 *
 * Acquired in a step: a replay goes on with the same lease. Renewed by the execution itself, every third of its
 * duration, also while it is suspended. Released when the work has ended, in whatever way; an execution that was stopped,
 * or that timed out, renews it no more, so that it ends after `leaseDurationMs` at the latest.
 *
 * The work gets a context of its own, and may use no other one. Before a step, a condition's check, a callback's submitter or
 * an invocation of another function begins in it, the lease is checked; once it is lost, each of them rejects with
 * LeaseLostError, `lease.signal` aborts, and the execution goes on with LeaseLostError, even from a suspension. As always
 * in a durable function, whatever waits has to be in a step: the work is suspended where nothing runs in one.
 *
 * Resolves to the work's result, passed through JSON, if the lease protected the work to its end, which completes its
 * `slot`. Rejects with LeaseUnavailableError, SlotDoneError, LeaseLostError or LeaseServiceError; with the SDK's
 * ChildContextError, whose `cause.name` tells the work's own error; and with InvalidOptionsError, before anything is sent.
 *
 * Requests to DynamoDB: 1 to acquire, 2 for each time that it waits; 1 every third of the lease; 1 for the first step of
 * each invocation that comes after; 1 to release. Durable operations: 5, and 4 for each time that it waits.
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
  if (typeof work !== "function") throw new InvalidOptionsError("work", work, "a function");
  const workload = new Workload();
  const terms = readOptions(client, key, options, () => workload.isWorking);
  try {
    return await context.runInChildContext("lease", async (own) => {
      try {
        return await holding(own, terms, workload, work);
      } catch (error) {
        throw portable(error);
      }
    });
  } catch (error) {
    throw leaseErrorIn(error) ?? error;
  }
}

async function holding<T>(
  context: DurableContext,
  terms: DurableTerms,
  workload: Workload,
  work: (lease: DurableLease, context: DurableContext) => Promise<T>,
): Promise<T> {
  const { lock } = terms;
  const held = new HeldLease(await acquire(context, terms), workload, lock.leaseDurationMs);
  const loss = untilLost(context, held, lock.leaseDurationMs);
  // Begun before the work, whose steps nobody can count once the loss has ended it at any place.
  const completion = Promise.withResolvers<boolean>();
  const ending = context.runInChildContext(
    "lease:end",
    async (closing) => await release(closing, held, await completion.promise),
    { virtualContext: true, serdes: defaultSerdes },
  );
  let result: T;
  try {
    result = await Promise.race([work(held.lease, guarded(context, held)), loss]);
  } catch (error) {
    completion.resolve(false);
    await ending;
    throw error;
  }
  completion.resolve(true);
  if ((await ending) === "lost") throw new LeaseLostError(lock.key, "taken");
  return result;
}

/** What the renewing of a lease leaves in its checkpoints. */
type Kept = { readonly state: "begun" } | Beat;

/** Renews the lease for as long as the execution goes on. Rejects with LeaseLostError when the lease is lost. */
async function untilLost(
  context: DurableContext,
  held: HeldLease,
  leaseDurationMs: number,
): Promise<never> {
  const everySeconds = Math.max(1, Math.floor(leaseDurationMs / 3_000));
  const soonSeconds = Math.max(1, Math.floor(everySeconds / 3));
  const kept = await context.waitForCondition<Kept | null>(
    "lease:keep",
    async (before) => (before === null ? { state: "begun" } : await held.beat()),
    {
      initialState: null,
      serdes: defaultSerdes,
      waitStrategy: (now) =>
        now?.state === "lost"
          ? { shouldContinue: false }
          : {
              shouldContinue: true,
              delay: { seconds: now?.state === "unanswered" ? soonSeconds : everySeconds },
            },
    },
  );
  if (kept?.state !== "lost") throw new Error("the renewing of the lease has ended before the lease");
  throw Object.assign(new LeaseLostError(held.lease.key, kept.reason), { message: kept.message });
}

/**
 * Lets the lock go in a step. What cannot be released frees itself when the lease ends.
 *
 * At most once for each attempt: only so does an attempt know that an earlier one may have landed.
 */
async function release(context: DurableContext, held: HeldLease, completed: boolean): Promise<Ending> {
  try {
    return await context.step(
      "lease:release",
      async ({ attempt }) => {
        try {
          return await held.end(completed, attempt > 1);
        } catch (error) {
          throw portable(error);
        }
      },
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
