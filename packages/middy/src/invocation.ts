import { InvalidOptionsError, SlotNotDueError } from "@leasehold/client";
import { limits } from "@leasehold/client/schema";
import type { Context } from "aws-lambda";
import type { WhenHeld } from "./options.ts";
import type { Settings } from "./settings.ts";
import { hasRecords } from "./trigger.ts";

/** What one invocation means for the lock. */
export interface Invocation {
  readonly key: string;
  /** Stays the same over Lambda's retries of an asynchronous event; unique where there is no request id. */
  readonly owner: string;
  readonly slot: string | undefined;
  readonly whenHeld: WhenHeld;
  /** The trigger's own time, in ISO form, if it has one. */
  readonly triggeredAt: string | undefined;
  /** What Lambda leaves it; undefined outside Lambda. */
  readonly remainingMs: () => number | undefined;
}

/** The part of a schedule's event that names the run. */
interface TimedEvent {
  readonly scheduledTime?: unknown;
  readonly time?: unknown;
}

/**
 * Reads an invocation. Throws InvalidOptionsError where the event lacks what the options ask of it, and SlotNotDueError
 * where its trigger is dated in the future.
 */
export function readInvocation<TEvent>(
  settings: Settings<TEvent>,
  event: TEvent,
  context: Context,
): Invocation {
  refuseUnsupported(context);
  const { key, once } = settings;
  const whenHeld = settings.whenHeld ?? (hasRecords(event) ? "throw" : "skip");
  const triggeredAt = triggerTime(event);
  const asked = typeof key === "string" ? key : key(event, context);
  if (typeof asked !== "string" || asked === "") {
    throw new InvalidOptionsError("key", asked, "a function that gives a non-empty string for every event");
  }
  const { awsRequestId = crypto.randomUUID(), functionName = "function" } = context;
  const name = `${functionName}/${awsRequestId}`;
  return {
    key: asked,
    // A holder's label tells those that would replace it how new it is.
    owner: whenHeld === "replace" && triggeredAt !== undefined ? `${name}@${triggeredAt}` : name,
    // The trigger's own slot is known to be a time, and so to be over; one that a function names may be any text.
    slot:
      typeof once === "function"
        ? once(event, context)
        : once
          ? dueSlot(asked, slotOf(event, triggeredAt), settings.clock.now())
          : undefined,
    whenHeld,
    triggeredAt,
    remainingMs: () => context.getRemainingTimeInMillis?.(),
  };
}

/** Whether a holder was triggered later than this invocation. */
export function isNewer(holder: string, { triggeredAt }: Invocation): boolean {
  const itsTime = /@(\d{4}-[^@]+Z)$/.exec(holder)?.[1];
  return itsTime !== undefined && triggeredAt !== undefined && itsTime > triggeredAt;
}

function triggerTime(event: unknown): string | undefined {
  const { scheduledTime, time } = (event ?? {}) as TimedEvent;
  const named = scheduledTime ?? time;
  const date = typeof named === "string" ? new Date(named) : undefined;
  return date === undefined || Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

function slotOf(event: unknown, triggeredAt: string | undefined): string {
  if (triggeredAt !== undefined) return triggeredAt;
  const { scheduledTime, time } = (event ?? {}) as TimedEvent;
  const name = scheduledTime === undefined && time !== undefined ? "event.time" : "event.scheduledTime";
  const allowed =
    "an ISO time there or in event.time, for once is true and names the slot by it; " +
    "for an event without a time, give a function that names the slot as once";
  throw new InvalidOptionsError(name, scheduledTime ?? time, allowed);
}

/** A slot that is done before its time would keep out every run until then. */
function dueSlot(key: string, slot: string, now: number): string {
  const dueInMs = Date.parse(slot) - now;
  if (dueInMs > limits.slotAheadMs) throw new SlotNotDueError(key, slot, dueInMs);
  return slot;
}

function refuseUnsupported(context: Context): void {
  if (typeof context !== "object" || context === null) {
    throw new InvalidOptionsError("context", context, "Lambda's context object");
  }
  // A durable execution suspends without an end that could be noticed, and its replay comes when the lock is another's.
  if ("lambdaContext" in context) {
    const allowed =
      "the context of a function that is not durable: a lease does not outlive the suspension of a durable " +
      "execution; in a durable function, use withDurableLease of @leasehold/durable";
    throw new InvalidOptionsError("context", "that of a durable execution", allowed);
  }
  if ("write" in context) {
    const allowed =
      "Lambda's context: for awslambda.streamifyResponse use leaseLock with middy's streaming mode";
    throw new InvalidOptionsError("context", "a response stream", allowed);
  }
}
