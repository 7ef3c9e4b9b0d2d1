/** Errors of leases on their way through checkpoints. A checkpoint keeps only an error's message and one text. */
import { type RetryDecision, StepError } from "@aws/durable-execution-sdk-js";
import {
  LeaseError,
  type LeaseErrorCode,
  LeaseLostError,
  type LeaseLostReason,
  type LeaseRecord,
  LeaseServiceError,
  LeaseUnavailableError,
  SlotDoneError,
  SlotNotDueError,
} from "@leasehold/client";
import { longestChain, mayPass } from "@leasehold/client/internal";

/** What a refusal keeps of the lock's holder. */
export type KeptHolder = Pick<LeaseRecord, "owner" | "expiresAt" | "inCooldown" | "pause">;

/** The parts of an error that are kept. */
type KeptError =
  | { readonly leasehold: "lost"; readonly key: string; readonly reason: LeaseLostReason }
  | {
      readonly leasehold: "unavailable";
      readonly key: string;
      readonly held: KeptHolder | null;
      readonly retryAfterMs: number;
    }
  | {
      readonly leasehold: "done";
      readonly key: string;
      readonly slot: string;
      readonly doneSlot: string;
    }
  | {
      readonly leasehold: "notDue";
      readonly key: string;
      readonly slot: string;
      readonly dueInMs: number;
    }
  | { readonly leasehold: "service"; readonly code: ServiceCode }
  | { readonly leasehold: "other"; readonly code: LeaseErrorCode; readonly name: string };

type ServiceCode = ConstructorParameters<typeof LeaseServiceError>[0];

const mostServiceAttempts = 8;
const longestDelaySeconds = 60;

/** Gives an error the form in which a checkpoint keeps it. Errors that are not of leases stay as they are. */
function portable(error: unknown): unknown {
  const kept = keptOf(error);
  return kept === undefined
    ? error
    : new StepError((error as Error).message, error as Error, JSON.stringify(kept));
}

/** Runs something whose errors a checkpoint keeps. */
export async function portably<T>(body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    throw portable(error);
  }
}

/** Gives the lease error that an error stands for: the error itself, or the one that came out of a checkpoint. */
export function leaseErrorIn(error: unknown): LeaseError | undefined {
  let link = error;
  for (let depth = 0; depth < longestChain && link instanceof Error; depth += 1) {
    if (link instanceof LeaseError) return link;
    const kept = keptErrorIn((link as { errorData?: unknown }).errorData);
    if (kept !== undefined) return Object.assign(madeFrom(kept), { message: link.message });
    link = link.cause;
  }
  return undefined;
}

/** Whether it is a lease error in the form in which a checkpoint keeps it, and not an error of the user's code. */
export function isPortable(error: unknown): boolean {
  return error instanceof StepError && keptErrorIn(error.errorData) !== undefined;
}

/** Whether the service failed in a way that may pass. */
export function isPassing(error: unknown): boolean {
  return mayPass(leaseErrorIn(error));
}

/** Repeats a step whose request to the service failed, with longer and longer pauses: for about 3 minutes. */
export function retryService(error: unknown, attempt: number): RetryDecision {
  if (!isPassing(error) || attempt >= mostServiceAttempts) return { shouldRetry: false };
  return { shouldRetry: true, delay: { seconds: Math.min(2 ** attempt, longestDelaySeconds) } };
}

function keptOf(error: unknown): KeptError | undefined {
  if (error instanceof LeaseLostError) return { leasehold: "lost", key: error.key, reason: error.reason };
  if (error instanceof LeaseUnavailableError) {
    const { key, retryAfterMs } = error;
    return { leasehold: "unavailable", key, held: holderIn(error), retryAfterMs };
  }
  if (error instanceof SlotDoneError) {
    const { key, slot, doneSlot } = error;
    return { leasehold: "done", key, slot, doneSlot };
  }
  if (error instanceof SlotNotDueError) {
    const { key, slot, dueInMs } = error;
    return { leasehold: "notDue", key, slot, dueInMs };
  }
  if (error instanceof LeaseServiceError) return { leasehold: "service", code: error.code as ServiceCode };
  return error instanceof LeaseError ? { leasehold: "other", code: error.code, name: error.name } : undefined;
}

/** The holder that a refusal names; null when it names none. */
export function holderIn(error: LeaseUnavailableError): KeptHolder | null {
  const { holder: owner, expiresAt, inCooldown, pause } = error;
  if (owner === undefined || expiresAt === undefined) return null;
  return { owner, expiresAt, inCooldown, ...(pause && { pause }) };
}

function madeFrom(kept: KeptError): LeaseError {
  switch (kept.leasehold) {
    case "lost":
      return new LeaseLostError(kept.key, kept.reason);
    case "unavailable":
      return new LeaseUnavailableError(kept.key, kept.held ?? undefined, kept.retryAfterMs);
    case "done":
      return new SlotDoneError(kept.key, kept.slot, kept.doneSlot);
    case "notDue":
      return new SlotNotDueError(kept.key, kept.slot, kept.dueInMs);
    case "service":
      return new LeaseServiceError(kept.code, "");
    case "other":
      return Object.assign(new LeaseError(kept.code, ""), { name: kept.name });
  }
}

/** A text in another form is the user's own. */
function keptErrorIn(errorData: unknown): KeptError | undefined {
  if (typeof errorData !== "string") return undefined;
  try {
    const value: unknown = JSON.parse(errorData);
    return isKept(value) ? value : undefined;
  } catch {
    // Ignored: a text that is not JSON is the user's own.
    return undefined;
  }
}

function isKept(value: unknown): value is KeptError {
  const { leasehold, key, reason, held, retryAfterMs, slot, doneSlot, dueInMs, code, name } = Object(value);
  const areTexts = (...values: readonly unknown[]): boolean =>
    values.every((each) => typeof each === "string");
  switch (leasehold) {
    case "lost":
      return areTexts(key, reason);
    case "unavailable":
      return areTexts(key) && Number.isFinite(retryAfterMs) && (held === null || isKeptHolder(held));
    case "done":
      return areTexts(key, slot, doneSlot);
    case "notDue":
      return areTexts(key, slot) && Number.isFinite(dueInMs);
    case "service":
      return areTexts(code);
    default:
      return leasehold === "other" && areTexts(code, name);
  }
}

function isKeptHolder(held: unknown): boolean {
  const { owner, expiresAt } = Object(held);
  return typeof owner === "string" && Number.isFinite(expiresAt);
}
