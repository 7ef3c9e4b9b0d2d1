/** Errors of leases on their way through checkpoints. A checkpoint keeps only an error's message and one text. */
import { type RetryDecision, StepError } from "@aws/durable-execution-sdk-js";
import {
  LeaseError,
  LeaseLostError,
  type LeaseRecord,
  LeaseServiceError,
  LeaseUnavailableError,
  SlotDoneError,
  SlotNotDueError,
} from "@leasehold/client";
import { longestChain, mayPass } from "@leasehold/client/internal";

/** What a refusal keeps of the lock's holder. */
export type KeptHolder = Pick<LeaseRecord, "owner" | "expiresAt" | "inCooldown" | "pause">;

/** How errors of a class are kept: their members, each with its check, and how an error is made of them. */
interface Kind {
  readonly type: abstract new (...args: never[]) => LeaseError;
  readonly members: Readonly<Record<string, (value: unknown) => boolean>>;
  readonly make: (kept: never) => LeaseError;
}

const isText = (value: unknown): boolean => typeof value === "string";
const isNumber = (value: unknown): boolean => Number.isFinite(value);
const isKeptHolder = (held: unknown): boolean => {
  const { owner, expiresAt } = Object(held);
  return held === null || (isText(owner) && isNumber(expiresAt));
};

/** What a refusal keeps: its holder in one member. */
type KeptRefusal = Pick<LeaseUnavailableError, "key" | "retryAfterMs"> & { readonly held: KeptHolder | null };

/** By the name that a checkpoint keeps. A subclass stands before its class. */
const kinds: Readonly<Record<string, Kind>> = {
  lost: {
    type: LeaseLostError,
    members: { key: isText, reason: isText },
    make: ({ key, reason }: LeaseLostError) => new LeaseLostError(key, reason),
  },
  unavailable: {
    type: LeaseUnavailableError,
    members: { key: isText, held: isKeptHolder, retryAfterMs: isNumber },
    make: ({ key, held, retryAfterMs }: KeptRefusal) =>
      new LeaseUnavailableError(key, held ?? undefined, retryAfterMs),
  },
  done: {
    type: SlotDoneError,
    members: { key: isText, slot: isText, doneSlot: isText },
    make: ({ key, slot, doneSlot }: SlotDoneError) => new SlotDoneError(key, slot, doneSlot),
  },
  notDue: {
    type: SlotNotDueError,
    members: { key: isText, slot: isText, dueInMs: isNumber },
    make: ({ key, slot, dueInMs }: SlotNotDueError) => new SlotNotDueError(key, slot, dueInMs),
  },
  service: {
    type: LeaseServiceError,
    members: { code: isText },
    make: ({ code }: { readonly code: ServiceCode }) => new LeaseServiceError(code, ""),
  },
  other: {
    type: LeaseError,
    members: { code: isText, name: isText },
    make: ({ code, name }: LeaseError) => Object.assign(new LeaseError(code, ""), { name }),
  },
};

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
    const made = madeFrom((link as { errorData?: unknown }).errorData);
    if (made !== undefined) return Object.assign(made, { message: link.message });
    link = link.cause;
  }
  return undefined;
}

/** Whether it is a lease error in the form in which a checkpoint keeps it, and not an error of the user's code. */
export function isPortable(error: unknown): boolean {
  return error instanceof StepError && madeFrom(error.errorData) !== undefined;
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

/** The parts of an error that are kept. */
function keptOf(error: unknown): object | undefined {
  for (const [leasehold, { type, members }] of Object.entries(kinds)) {
    if (!(error instanceof type)) continue;
    const values = error instanceof LeaseUnavailableError ? { ...error, held: holderIn(error) } : error;
    const kept = Object.keys(members).map((name) => [name, Reflect.get(values, name)]);
    return { leasehold, ...Object.fromEntries(kept) };
  }
  return undefined;
}

/** The holder that a refusal names; null when it names none. */
export function holderIn(error: LeaseUnavailableError): KeptHolder | null {
  const { holder: owner, expiresAt, inCooldown, pause } = error;
  if (owner === undefined || expiresAt === undefined) return null;
  return { owner, expiresAt, inCooldown, ...(pause && { pause }) };
}

/** Makes the error again that a text has kept. A text in another form is the user's own. */
function madeFrom(errorData: unknown): LeaseError | undefined {
  if (typeof errorData !== "string") return undefined;
  try {
    const kept: unknown = JSON.parse(errorData);
    const { leasehold } = Object(kept);
    const { members, make } = (Object.hasOwn(kinds, leasehold) ? kinds[leasehold] : undefined) ?? {};
    const isKept = members && Object.entries(members).every(([name, check]) => check(Object(kept)[name]));
    return isKept ? make?.(kept as never) : undefined;
  } catch {
    // Ignored: a text that is not JSON is the user's own.
    return undefined;
  }
}
