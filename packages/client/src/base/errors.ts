import { brandClass } from "./brand.ts";
import type { LeaseRecord, Pause } from "./lease-record.ts";
import { limits } from "./schema.ts";

/** Every code that a {@link LeaseError} can carry. Codes are stable; messages are for people and may change. */
export type LeaseErrorCode =
  | "LEASE_UNAVAILABLE"
  | "LEASE_SLOT_DONE"
  | "LEASE_ABORTED"
  | "LEASE_SLOT_MISMATCH"
  | "LEASE_COMPLETION_FAILED"
  | "LEASE_SLOT_NOT_DUE"
  | "LEASE_COMPUTATION_TIMEOUT"
  | "LEASE_CACHED_FAILURE"
  | "LEASE_CACHE_UNREADABLE"
  | "LEASE_CACHE_UNWRITABLE"
  | "LEASE_RUNS_EXHAUSTED"
  | "LEASE_LOST"
  | "LEASE_TASK_LOST"
  | "LEASE_UPGRADE"
  | "LEASE_QUEUE_FULL"
  | "LEASE_CLIENT_CLOSED"
  | "LEASE_CLOSE_INCOMPLETE"
  | "LEASE_INVOCATION_ENDING"
  | "LEASE_INVALID_OPTIONS"
  | "LEASE_TABLE_NOT_FOUND"
  | "LEASE_TABLE_MISMATCH"
  | "LEASE_ITEM_UNREADABLE"
  | "LEASE_REGION_MISSING"
  | "LEASE_CREDENTIALS_MISSING"
  | "LEASE_ACCESS_DENIED"
  | "LEASE_THROTTLED"
  | "LEASE_CONFLICT"
  | "LEASE_SERVICE_FAILED"
  | "LEASE_NO_ANSWER"
  | "LEASE_REQUEST_REJECTED"
  | "INVALID_SCHEDULE";

/** The page that has a section for each code. */
export const errorsPage = "https://github.com/leasehold/leasehold/blob/main/docs/errors.md";

/** Properties of an error besides its code and its message: its cause, and what its class declares. */
export interface LeaseErrorProperties extends ErrorOptions {
  readonly mayHaveLanded?: boolean;
  readonly [property: string]: unknown;
}

/** The base of every error that this package raises; switch on its `code`. */
export class LeaseError extends Error {
  static {
    brandClass(LeaseError, "LeaseError");
  }
  declare readonly code: LeaseErrorCode;
  /** The documentation's section on the code: what it means, when it occurs and what to do. */
  declare readonly docs: string;
  /** Whether a write that ended with this error may have taken effect. */
  declare readonly mayHaveLanded: boolean;

  constructor(code: LeaseErrorCode, message: string, properties?: LeaseErrorProperties) {
    super(message, properties);
    const docs = `${errorsPage}#${code.toLowerCase()}`;
    Object.assign(this, { code, docs, mayHaveLanded: false }, properties);
  }
}

/** Parts of a refusal's message besides the holder of the lock. */
export interface RefusalDetails {
  /** The subject of the message, if it is not one lock. @default - the lock of that key */
  readonly what?: string;
  /** For how long the call has waited. @default 0 */
  readonly waitedMs?: number;
  /** How many callers wait in the lock's queue before this caller. @default 0 */
  readonly waiting?: number;
  /** Whether the holder and the caller have the same owner. @default false */
  readonly isOwn?: boolean;
  /** What to do in place of trying again. @default - none */
  readonly advice?: string;
}

/** Another caller holds the lock, and the time to wait for it is over. Nothing is held. */
export class LeaseUnavailableError extends LeaseError {
  static {
    brandClass(LeaseUnavailableError, "LeaseUnavailableError");
  }
  declare readonly key: string;
  /**
   * Whether the lock is not held but in its cooldown: its last holder released it before `lockAtLeastForMs` was over.
   */
  declare readonly inCooldown: boolean;
  /**
   * The holder's owner label, in a cooldown the last holder's. Undefined when the lock was released at the moment of
   * giving up.
   */
  declare readonly holder: string | undefined;
  /** When the holder's lease ends unless it is renewed, in epoch milliseconds of the holder's clock. */
  declare readonly expiresAt: number | undefined;
  /**
   * The operator's pause that keeps the lock closed on purpose; undefined without one. During a pause nothing is stuck.
   */
  declare readonly pause: Pause | undefined;
  /** Milliseconds until another attempt can first take the lock over. At least 0. */
  declare readonly retryAfterMs: number;
  /** Locked: the HTTP status of an API whose error handler, such as middy's http-error-handler, asks the error. */
  declare readonly statusCode: 423;
  /** The same in whole seconds, at least 1, for such a handler. */
  declare readonly headers: { readonly "Retry-After": string };

  constructor(
    key: string,
    held: Pick<LeaseRecord, "owner" | "expiresAt" | "inCooldown" | "pause"> | undefined,
    retryAfterMs: number,
    details: RefusalDetails = {},
  ) {
    const { what = `the lock ${quoted(key)} is`, waitedMs, waiting, isOwn, advice } = details;
    const state =
      held === undefined
        ? "not held"
        : `${held.inCooldown ? "in its cooldown after" : "held by"} ${quoted(held.owner)} until ${isoTime(held.expiresAt)}`;
    const parts = [
      `${what} ${state}`,
      waiting && `${waiting} wait in turn`,
      waitedMs && `waited ${Math.round(waitedMs)} ms`,
      `try again in ${retryAfterMs} ms`,
      advice && `or ${advice}`,
      isOwn && "its owner is the caller's own, see reentrant",
    ];
    super("LEASE_UNAVAILABLE", parts.filter(Boolean).join("; "), {
      key,
      inCooldown: held?.inCooldown ?? false,
      holder: held?.owner,
      expiresAt: held?.expiresAt,
      pause: held?.pause,
      retryAfterMs,
      statusCode: 423,
      headers: { "Retry-After": String(Math.ceil(retryAfterMs / 1_000) || 1) },
    });
  }
}

/** This slot, or a later one, is done already. Nothing is held, and there is nothing to do. */
export class SlotDoneError extends LeaseError {
  static {
    brandClass(SlotDoneError, "SlotDoneError");
  }
  declare readonly key: string;
  /** The slot that was asked for. */
  declare readonly slot: string;
  /** The latest slot that is done; not earlier than `slot`. */
  declare readonly doneSlot: string;

  constructor(key: string, slot: string, doneSlot: string) {
    const text = `${slotOf(key, slot)} is over: ${quoted(doneSlot)} is done`;
    super("LEASE_SLOT_DONE", text, { key, slot, doneSlot });
  }
}

/**
 * The caller's own signal has ended the call for a lock. Nothing is held. Its `cause` is the signal's reason.
 *
 * A reason that is a LeaseError itself, such as the LeaseLostError of another lease's signal, is raised as it is.
 */
export class LeaseAbortedError extends LeaseError {
  static {
    brandClass(LeaseAbortedError, "LeaseAbortedError");
  }
  declare readonly key: string;

  constructor(key: string, reason: unknown) {
    const text = `the call for the lock ${quoted(key)} was aborted by its signal (${saying(reason)})`;
    super("LEASE_ABORTED", text, { cause: reason, key });
  }
}

/**
 * The same owner holds the lock reentrantly, for another slot or for none. A lease is for one slot. The held lease is not
 * changed.
 */
export class SlotMismatchError extends LeaseError {
  static {
    brandClass(SlotMismatchError, "SlotMismatchError");
  }
  declare readonly key: string;
  /** The slot that was asked for. */
  declare readonly slot: string;
  /** The slot of the held lease. */
  declare readonly heldSlot: string | undefined;

  constructor(key: string, slot: string, heldSlot: string | undefined) {
    const held = heldSlot === undefined ? "no slot" : quoted(heldSlot);
    const text = `${slotOf(key, slot)} cannot be had while its owner holds the lock for ${held}`;
    super("LEASE_SLOT_MISMATCH", text, { key, slot, heldSlot });
  }
}

/**
 * The slot is a time more than a minute ahead of this machine's clock. Nothing was sent. A slot that is done refuses
 * every earlier one, so a trigger with a wrong date could stop a job until then.
 */
export class SlotNotDueError extends LeaseError {
  static {
    brandClass(SlotNotDueError, "SlotNotDueError");
  }
  declare readonly key: string;
  /** The slot that was asked for. */
  declare readonly slot: string;
  /** How far it is ahead, in milliseconds. */
  declare readonly dueInMs: number;

  constructor(key: string, slot: string, dueInMs: number) {
    const text = `${slotOf(key, slot)} is due in ${dueInMs} ms; allowed: at most ${limits.slotAheadMs} ms ahead`;
    super("LEASE_SLOT_NOT_DUE", text, { key, slot, dueInMs });
  }
}

/**
 * Why a lease protects nothing any more.
 *
 * - `expired`: it expired before a renewal was confirmed. Another caller may have the lock, or not yet.
 * - `taken`: another acquisition holds the lock.
 * - `revoked`: its holder was asked to stop. The lock stays held until it is released or expires.
 * - `released`: it was released, by its holder or by force.
 * - `failed`: its heartbeat stopped at a mistake in the program, which is the error's `cause`. The lock stays held
 *   until it is released or expires.
 */
export type LeaseLostReason = "expired" | "taken" | "revoked" | "released" | "failed";

/** The lease is lost. Another caller may now do the work that it protected. */
export class LeaseLostError extends LeaseError {
  static {
    brandClass(LeaseLostError, "LeaseLostError");
  }
  declare readonly key: string;
  declare readonly reason: LeaseLostReason;

  constructor(key: string, reason: LeaseLostReason, detail?: string, options?: ErrorOptions) {
    const text = `the lease of ${quoted(key)} is lost (${reason})${detail ? `: ${detail}` : ""}`;
    super("LEASE_LOST", text, { ...options, key, reason });
  }
}

/** Parts of the message that refuses an option. */
export interface RefusalWording extends ErrorOptions {
  /** What is wrong. @default - "is", and the value */
  readonly finding?: string;
  /** What to write instead, when that is known. */
  readonly advice?: string | undefined;
}

/** An option has a value that is not allowed. Thrown before any request is sent. */
export class InvalidOptionsError extends LeaseError {
  static {
    brandClass(InvalidOptionsError, "InvalidOptionsError");
  }
  /** The option's name, as the caller wrote it. */
  declare readonly option: string;
  /** The value that was refused. It may hold credentials or a payload, so a log or JSON of the error does not show it. */
  declare readonly value: unknown;
  /** What would be accepted. */
  declare readonly allowed: string;

  constructor(option: string, value: unknown, allowed: string, wording: RefusalWording = {}) {
    const { finding = `is ${describe(value)}`, advice, ...cause } = wording;
    const text = `${option} ${finding}; allowed: ${allowed}${advice === undefined ? "" : `; ${advice}`}`;
    super("LEASE_INVALID_OPTIONS", text, { ...cause, option, allowed });
    // Not enumerable: a log or JSON of the error does not show it.
    Object.defineProperty(this, "value", { value });
  }
}

/**
 * An item of the lease table is not of the form that this package writes: another program or a person has written it.
 *
 * Nothing is held. The message names the item, the attribute and what is allowed, but shows no token and no payload.
 */
export class LeaseItemError extends LeaseError {
  static {
    brandClass(LeaseItemError, "LeaseItemError");
  }
  /** The item's partition key: the lock's name. */
  declare readonly key: string;
  /** The item's sort key. */
  declare readonly sortKey: string;
  /** The attribute that cannot be read. */
  declare readonly attribute: string;

  constructor(
    item: { readonly key: string; readonly sortKey: string },
    attribute: string,
    finding: string,
    allowed: string,
  ) {
    const { key, sortKey } = item;
    super(
      "LEASE_ITEM_UNREADABLE",
      `the item with the key ${shown(key)} and the sort key ${shown(sortKey)} cannot be read: its attribute ` +
        `${attribute} ${finding}; allowed: ${allowed}`,
      { key, sortKey, attribute },
    );
  }
}

/**
 * The service throttled, failed, was busy with a transaction on the same item, did not reply in time or refused the
 * request, also after retries.
 */
export class LeaseServiceError extends LeaseError {
  static {
    brandClass(LeaseServiceError, "LeaseServiceError");
  }
  /** Whether the same request can succeed later. */
  declare readonly retryable: boolean;

  constructor(
    code:
      | "LEASE_THROTTLED"
      | "LEASE_CONFLICT"
      | "LEASE_SERVICE_FAILED"
      | "LEASE_NO_ANSWER"
      | "LEASE_REQUEST_REJECTED",
    message: string,
    properties?: LeaseErrorProperties,
  ) {
    super(code, message, {
      mayHaveLanded: code === "LEASE_NO_ANSWER" || code === "LEASE_SERVICE_FAILED",
      retryable: code !== "LEASE_REQUEST_REJECTED",
      ...properties,
    });
  }
}

/** A text in quotation marks, as messages show the names that callers have given. */
export function quoted(text: string): string {
  return JSON.stringify(text);
}

/** A time as messages show it. */
export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** The text of a thrown value, or of a reason. */
export function saying(reason: unknown): string {
  try {
    return String(reason instanceof Error ? reason.message : reason);
  } catch {
    // Ignored: the value has no text, or is a proxy that refuses to show it.
    return describe(reason);
  }
}

function slotOf(key: string, slot: string): string {
  return `the slot ${quoted(slot)} of ${quoted(key)}`;
}

const longestShown = 80;

function shown(text: string): string {
  return quoted(text.length > longestShown ? `${text.slice(0, longestShown - 3)}...` : text);
}

/** Shows a value in a message: strings quoted, long ones cut, objects and functions by their class. */
export function describe(value: unknown): string {
  if (typeof value === "string") return shown(value);
  if (Object(value) !== value) return `${String(value)}${typeof value === "bigint" ? "n" : ""}`;
  try {
    return `an instance of ${Object.getPrototypeOf(value).constructor.name}`;
  } catch {
    // Ignored: it has no prototype or constructor, or is a proxy that refuses to show them.
    return "an object";
  }
}
