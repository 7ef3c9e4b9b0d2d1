import { randomUUID } from "node:crypto";
import { CallbackError, type DurableContext, defaultSerdes, StepError } from "@aws/durable-execution-sdk-js";
import { type Lease, type LeaseHandle, LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
import { type DurableLock, longestOwner } from "./durable-lock.ts";
import { holderIn, type KeptHolder, portably, retryService } from "./failures.ts";
import type { DurableTerms } from "./options.ts";

/** The checkpointed result of an attempt. */
type StepAnswer =
  | { readonly state: "granted"; readonly handle: LeaseHandle }
  | { readonly state: "done"; readonly slot: string; readonly doneSlot: string }
  | {
      readonly state: "refused";
      readonly at: number;
      readonly held: KeptHolder | null;
      readonly retryAfterMs: number;
    };

/**
 * When a wake-up is lost, the execution looks again after the holder's lease, and then after longer and longer times
 * up to this.
 */
const longestParkMs = 300_000;
const shortestParkMs = 1_000;
const mostDoublings = 9;

/** The lock is free: there is no holder to wait for. */
const isFree = "the lock is free";

/**
 * Acquires the lock in steps; the execution is suspended while another holder has it.
 *
 * It stores its identity before its first attempt, so that a repeated attempt finds what an earlier one has acquired.
 * Rejects with LeaseUnavailableError, SlotDoneError, SlotNotDueError and LeaseServiceError.
 */
export async function acquireInSteps(
  context: DurableContext,
  { lock, waitMs }: DurableTerms,
): Promise<Lease> {
  const begin = async (): Promise<{ readonly id: string }> => {
    lock.checkDue();
    return { id: randomUUID() };
  };
  const { id } = await context.step("lease:begin", () => portably(begin), {
    serdes: defaultSerdes,
    retryStrategy: retryService,
  });
  const owner = ownerOf(context.executionContext.durableExecutionArn, id);
  // The time of the first refusal: before an answer of the service, this machine's clock may be wrong.
  let firstRefusedAt: number | undefined;
  for (let parks = 0; ; parks += 1) {
    const won: { lease?: Lease } = {};
    const attempt = async (): Promise<StepAnswer> => {
      try {
        won.lease = await lock.attempt(owner);
        return { state: "granted", handle: won.lease.toJSON() };
      } catch (error) {
        return refusedAnswer(error, lock.now());
      }
    };
    const answer = await context.step("lease:acquire", () => portably(attempt), {
      serdes: defaultSerdes,
      retryStrategy: retryService,
    });
    if (answer.state === "granted") return won.lease ?? lock.resume(answer.handle);
    if (answer.state === "done") throw new SlotDoneError(lock.key, answer.slot, answer.doneSlot);
    const { at, held, retryAfterMs } = answer;
    const since: number = firstRefusedAt ?? at;
    firstRefusedAt = since;
    const leftMs = since + waitMs - at;
    if (leftMs <= 0) throw new LeaseUnavailableError(lock.key, held ?? undefined, retryAfterMs);
    const backoffMs = Math.min(1_000 * 2 ** Math.min(parks, mostDoublings), longestParkMs);
    const parkMs = Math.min(Math.max(retryAfterMs, backoffMs), Math.max(leftMs, shortestParkMs));
    await waitForRelease(context, lock, { owner, waitingSince: since }, Math.ceil(parkMs / 1_000));
  }
}

/** Suspends the execution until the release wakes it, or its time is over. */
async function waitForRelease(
  context: DurableContext,
  lock: DurableLock,
  waiter: { readonly owner: string; readonly waitingSince: number },
  seconds: number,
): Promise<void> {
  const submit = async (callbackId: string): Promise<void> => {
    const expiresAt = lock.now() + seconds * 1_000;
    const isParked = await portably(() => lock.park({ ...waiter, callbackId, expiresAt }));
    if (!isParked) throw new StepError(isFree, undefined, isFree);
  };
  try {
    await context.waitForCallback("lease:wait", submit, {
      timeout: { seconds },
      retryStrategy: retryService,
    });
  } catch (error) {
    const isSubmitted = error instanceof CallbackError && error.errorType !== "CallbackSubmitterError";
    if (!isSubmitted && (error as Error).message !== isFree) throw error;
  }
}

/** Throws an error again that is no answer. */
function refusedAnswer(error: unknown, at: number): StepAnswer {
  if (error instanceof SlotDoneError) {
    return { state: "done", slot: error.slot, doneSlot: error.doneSlot };
  }
  if (!(error instanceof LeaseUnavailableError)) throw error;
  return { state: "refused", at, held: holderIn(error), retryAfterMs: error.retryAfterMs };
}

/** Names the execution for people, and this lease of it. The end of the ARN tells executions apart. */
function ownerOf(executionArn: string, id: string): string {
  return `${executionArn.slice(-(longestOwner - id.length - 1))}#${id}`;
}
