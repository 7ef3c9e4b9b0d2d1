import { check, coreOf, InvalidOptionsError, SlotNotDueError } from "@leasehold/client/internal";
import { limits } from "@leasehold/client/schema";
import type { Context } from "aws-lambda";
import type { WhenHeld } from "./options.ts";
import type { MiddlewareSettings } from "./settings.ts";
import { defaultWhenHeld } from "./trigger.ts";

/** The properties of one invocation that the lock needs. */
export interface Invocation {
  readonly key: string;
  /** Stays the same over Lambda's retries of an asynchronous event; unique without a request id. */
  readonly owner: string;
  readonly slot: string | undefined;
  readonly whenHeld: WhenHeld;
  /** The time of the trigger, in ISO form, if it has one. */
  readonly triggeredAt: string | undefined;
  /** The time that Lambda leaves it; undefined outside Lambda. */
  readonly remainingMs: () => number | undefined;
  /** The same, less the margin before the end in which a handler stops. */
  readonly workMs: () => number | undefined;
}

/** The part of a schedule's event that identifies the run. */
interface TimedEvent {
  readonly scheduledTime?: unknown;
  readonly time?: unknown;
}

/**
 * Reads an invocation. Throws InvalidOptionsError if the event lacks what the options need, and SlotNotDueError if its
 * trigger is dated in the future.
 */
export function readInvocation<TEvent>(
  settings: MiddlewareSettings<TEvent>,
  event: TEvent,
  context: Context,
): Invocation {
  const { remainingMs, marginMs } = readTime(context, settings);
  const { key, once, client } = settings;
  const whenHeld = settings.whenHeld ?? defaultWhenHeld(event, once !== false);
  const asked = typeof key === "string" ? key : key(event, context);
  check(
    typeof asked === "string" && asked !== "",
    "key",
    asked,
    "a function that gives a non-empty string for every event",
  );
  const { scheduledTime, time } = (event ?? {}) as TimedEvent;
  const named = scheduledTime ?? time;
  const date = new Date(typeof named === "string" ? named : Number.NaN);
  const triggeredAt = Number.isNaN(date.getTime()) ? undefined : date.toISOString();
  const { awsRequestId = crypto.randomUUID(), functionName = "function" } = context;
  const name = `${functionName}/${awsRequestId}`;
  let slot: string | undefined;
  // Without a slot the handler would run each time: the client refuses an empty one.
  if (typeof once === "function") slot = once(event, context) ?? "";
  else if (once) {
    if (triggeredAt === undefined) {
      const option = scheduledTime === undefined && time !== undefined ? "event.time" : "event.scheduledTime";
      const allowed = "an ISO time there or in event.time; for events without one, a function as once";
      throw new InvalidOptionsError(option, named, allowed);
    }
    // A slot that is done before its time would refuse every run until then. A slot from a function may be any text.
    const dueInMs = date.getTime() - coreOf(client).clock.now();
    if (dueInMs > limits.slotAheadMs) throw new SlotNotDueError(asked, triggeredAt, dueInMs);
    slot = triggeredAt;
  }
  return {
    key: asked,
    // The holder's label shows the time of its trigger to the invocations that would replace it.
    owner: whenHeld === "replace" && triggeredAt !== undefined ? `${name}@${triggeredAt}` : name,
    slot,
    whenHeld,
    triggeredAt,
    remainingMs,
    workMs: () => {
      const leftMs = remainingMs();
      return leftMs && leftMs - marginMs(leftMs);
    },
  };
}

/** An invocation's time, as its context tells it. */
interface InvocationTime extends Pick<Invocation, "remainingMs"> {
  /** The margin before the end in which a handler stops, for work that begins with this much time left. */
  readonly marginMs: (leftMs: number) => number;
}

/** Reads an invocation's time. Throws InvalidOptionsError if the context is none that is supported. */
export function readTime(
  context: Context,
  { timeoutMarginMs }: Pick<MiddlewareSettings<never>, "timeoutMarginMs">,
): InvocationTime {
  refuseUnsupported(context);
  const remainingMs = (): number | undefined => {
    const leftMs: unknown = context.getRemainingTimeInMillis?.();
    const isTime = typeof leftMs === "number" && leftMs <= limits.durationMs;
    const allowed = `a number of milliseconds, at most ${limits.durationMs}`;
    check(leftMs === undefined || isTime, "context.getRemainingTimeInMillis's answer", leftMs, allowed);
    return leftMs as number | undefined;
  };
  return { remainingMs, marginMs: (leftMs) => Math.min(timeoutMarginMs, leftMs / 4) };
}

/** Whether a holder's trigger is later than this invocation's. */
export function isNewer(holder: string, { triggeredAt }: Invocation): boolean {
  const itsTime = /@(\d{4}-[^@]+Z)$/.exec(holder)?.[1];
  return itsTime !== undefined && triggeredAt !== undefined && itsTime > triggeredAt;
}

/** The members of a context that are read. */
const memberKinds = {
  awsRequestId: "string",
  functionName: "string",
  getRemainingTimeInMillis: "function",
} as const;

function refuseUnsupported(context: Context): void {
  const refuse = (value: unknown, allowed: string): never => {
    throw new InvalidOptionsError("context", value, allowed);
  };
  if (typeof context !== "object" || context === null) refuse(context, "Lambda's context object");
  // A durable execution suspends without a noticeable end, and replays when the lock is another caller's.
  if ("lambdaContext" in context) {
    refuse(
      "that of a durable execution",
      "the context of another function; here use withDurableLease of @leasehold/durable",
    );
  }
  if ("write" in context) {
    refuse("a response stream", "Lambda's context; to stream use leaseLock with middy's streaming mode");
  }
  for (const [name, kind] of Object.entries(memberKinds)) {
    const value: unknown = context[name as keyof typeof memberKinds];
    check(
      value === undefined || typeof value === kind,
      `context.${name}`,
      value,
      `a ${kind}, as Lambda gives it`,
    );
  }
}
