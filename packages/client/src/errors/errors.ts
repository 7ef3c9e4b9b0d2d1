import { limits } from "../schema.ts";
import { brandClass } from "./brand.ts";

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

/** Properties of an error besides its message. */
interface LeaseErrorOptions extends ErrorOptions {
  readonly mayHaveLanded?: boolean;
}

/** The base of every error that this package raises; switch on its `code`. */
export class LeaseError extends Error {
  static {
    brandClass(LeaseError, "LeaseError");
  }
  // Written out: a bundler that shortens names shortens those of classes too, and Step Functions matches on it.
  override readonly name: string = "LeaseError";
  readonly code: LeaseErrorCode;
  /** Whether a write that ended with this error may have taken effect. */
  readonly mayHaveLanded: boolean;

  constructor(code: LeaseErrorCode, message: string, options?: LeaseErrorOptions) {
    super(message, options);
    this.code = code;
    this.mayHaveLanded = options?.mayHaveLanded ?? false;
  }
}

/** What a refusal's message says, besides the holder of the lock. */
export interface RefusalDetails {
  /** What is held, where it is not one lock. @default - the lock of that key */
  readonly what?: string;
  /** For how long the call has waited. @default 0 */
  readonly waitedMs?: number;
  /** How many wait in the lock's queue before this caller. @default 0 */
  readonly waiting?: number;
  /** Whether the holder and the caller have the same owner. @default false */
  readonly isOwn?: boolean;
}

/** Another caller holds the lock, and the time to wait for it is over. Nothing is held. */
export class LeaseUnavailableError extends LeaseError {
  static {
    brandClass(LeaseUnavailableError, "LeaseUnavailableError");
  }
  override readonly name: string = "LeaseUnavailableError";
  readonly key: string;
  /** Whether it is not held but in its cooldown: its last holder released it before `lockAtLeastForMs` was over. */
  readonly inCooldown: boolean;
  /**
   * The holder's owner label, in a cooldown the last holder's. Undefined when the lock was released at the moment of
   * giving up.
   */
  readonly holder: string | undefined;
  /** When the holder's lease ends unless it is renewed, in epoch milliseconds of the holder's clock. */
  readonly expiresAt: number | undefined;
  /** In how many milliseconds another attempt can first hope to take the lock over. At least 0. */
  readonly retryAfterMs: number;
  /** Locked: what an HTTP API answers, where a handler of errors such as middy's http-error-handler asks the error. */
  readonly statusCode = 423;
  /** The same in whole seconds, at least 1, for such a handler. */
  readonly headers: { readonly "Retry-After": string };

  constructor(
    key: string,
    held: { readonly owner: string; readonly expiresAt: number; readonly inCooldown: boolean } | undefined,
    retryAfterMs: number,
    details: RefusalDetails = {},
  ) {
    super(
      "LEASE_UNAVAILABLE",
      `${refusalState(key, held, details)}: ${refusalAdvice(retryAfterMs, details)}`,
    );
    this.key = key;
    this.inCooldown = held?.inCooldown ?? false;
    this.holder = held?.owner;
    this.expiresAt = held?.expiresAt;
    this.retryAfterMs = retryAfterMs;
    this.headers = { "Retry-After": String(Math.max(1, Math.ceil(retryAfterMs / 1_000))) };
  }
}

function refusalState(
  key: string,
  held: { readonly owner: string; readonly expiresAt: number; readonly inCooldown: boolean } | undefined,
  { what = `the lock ${JSON.stringify(key)} is`, waiting = 0 }: RefusalDetails,
): string {
  const queue = waiting === 1 ? "1 caller waits" : `${waiting} callers wait`;
  if (held === undefined)
    return waiting > 0
      ? `${what} not held, but ${queue} for it in turn`
      : `${what} no longer held, but this call had ended by then`;
  const holder = `${held.inCooldown ? "closed after its use by" : "held by"} ${JSON.stringify(held.owner)}`;
  const state = `${what} ${holder} until ${new Date(held.expiresAt).toISOString()}`;
  return waiting > 0 ? `${state}, and ${queue} for it in turn` : state;
}

function refusalAdvice(retryAfterMs: number, { waitedMs = 0, isOwn = false }: RefusalDetails): string {
  const advice =
    waitedMs > 0
      ? `waited ${Math.round(waitedMs)} ms for it; wait longer with waitMs, or try again in ${retryAfterMs} ms`
      : `try again in ${retryAfterMs} ms, or wait for it with waitMs`;
  return isOwn
    ? `${advice}; the holder is this caller's own owner: where both are one piece of work, give both reentrant: true and that owner`
    : advice;
}

/** This slot is done already, or a later one is. Nothing is held, and there is nothing to do. */
export class SlotDoneError extends LeaseError {
  static {
    brandClass(SlotDoneError, "SlotDoneError");
  }
  override readonly name: string = "SlotDoneError";
  readonly key: string;
  /** The slot that was asked for. */
  readonly slot: string;
  /** The latest slot that is done; not earlier than `slot`. */
  readonly doneSlot: string;

  constructor(key: string, slot: string, doneSlot: string) {
    const run = `the slot ${JSON.stringify(slot)} of ${JSON.stringify(key)}`;
    super(
      "LEASE_SLOT_DONE",
      doneSlot === slot
        ? `${run} is done already: leave it, or ask for a later one`
        : `${run} is not run any more: the later slot ${JSON.stringify(doneSlot)} is done already, and slots are done in their order; ask for a later one`,
    );
    this.key = key;
    this.slot = slot;
    this.doneSlot = doneSlot;
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
  override readonly name: string = "LeaseAbortedError";
  readonly key: string;

  constructor(key: string, reason: unknown) {
    const why = reason instanceof Error ? reason.message : String(reason);
    super(
      "LEASE_ABORTED",
      `the call for the lock ${JSON.stringify(key)} was aborted by its signal (${why}): nothing is held; ` +
        "give the signal more time, or bound the wait with waitMs, which tells who holds the lock",
      { cause: reason },
    );
    this.key = key;
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
  override readonly name: string = "SlotMismatchError";
  readonly key: string;
  /** The slot that was asked for. */
  readonly slot: string;
  /** The slot of the held lease. */
  readonly heldSlot: string | undefined;

  constructor(key: string, slot: string, heldSlot: string | undefined) {
    const held = heldSlot === undefined ? "without a slot" : `for the slot ${JSON.stringify(heldSlot)}`;
    super(
      "LEASE_SLOT_MISMATCH",
      `this owner holds ${JSON.stringify(key)} ${held}, and asks for the slot ${JSON.stringify(slot)} of it: ` +
        "end that lease first, or ask for the same slot or for none",
    );
    this.key = key;
    this.slot = slot;
    this.heldSlot = heldSlot;
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
  override readonly name: string = "SlotNotDueError";
  readonly key: string;
  /** The slot that was asked for. */
  readonly slot: string;
  /** How far it is ahead, in milliseconds. */
  readonly dueInMs: number;

  constructor(key: string, slot: string, dueInMs: number) {
    super(
      "LEASE_SLOT_NOT_DUE",
      `the slot ${JSON.stringify(slot)} of ${JSON.stringify(key)} is due in ${dueInMs} ms; allowed: at most ` +
        `${limits.slotAheadMs} ms ahead of this machine's clock: correct the trigger's date, or the clock`,
    );
    this.key = key;
    this.slot = slot;
    this.dueInMs = dueInMs;
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

const lostAdvice: Record<LeaseLostReason, string> = {
  expired: "it was not renewed in time: lengthen leaseDurationMs, or use heartbeat",
  taken: "another holder has it: stop the work, and fence its writes",
  revoked: "its holder was asked to stop: stop the work and release it",
  released: "it was released: acquire it again",
  failed:
    "its heartbeat stopped at an error that is not the service's: stop the work, and fix what the cause shows",
};

/** The lease is lost. Another caller may now do the work that it protected. */
export class LeaseLostError extends LeaseError {
  static {
    brandClass(LeaseLostError, "LeaseLostError");
  }
  override readonly name: string = "LeaseLostError";
  readonly key: string;
  readonly reason: LeaseLostReason;

  constructor(key: string, reason: LeaseLostReason, detail?: string, options?: ErrorOptions) {
    super(
      "LEASE_LOST",
      `the lease of ${JSON.stringify(key)} is lost (${reason}): ${detail ? `${detail}; ` : ""}${lostAdvice[reason]}`,
      options,
    );
    this.key = key;
    this.reason = reason;
  }
}

/** Parts of the message that refuses an option. */
interface RefusalWording extends ErrorOptions {
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
  override readonly name: string = "InvalidOptionsError";
  /** The option's name, as the caller wrote it. */
  readonly option: string;
  /** The value that was refused. */
  readonly value: unknown;
  /** What would be accepted. */
  readonly allowed: string;

  constructor(option: string, value: unknown, allowed: string, wording: RefusalWording = {}) {
    const { finding = `is ${describe(value)}`, advice } = wording;
    const text = `${option} ${finding}; allowed: ${allowed}${advice === undefined ? "" : `; ${advice}`}`;
    super("LEASE_INVALID_OPTIONS", text, "cause" in wording ? { cause: wording.cause } : undefined);
    this.option = option;
    this.value = value;
    this.allowed = allowed;
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
  override readonly name: string = "LeaseItemError";
  /** The item's partition key: the lock's name. */
  readonly key: string;
  /** The item's sort key. */
  readonly sortKey: string;
  /** The attribute that cannot be read. */
  readonly attribute: string;

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
        `${attribute} ${finding}; allowed: ${allowed}; another program or a person has written it: correct the ` +
        "attribute, or delete the item if it is no lease, and keep other data in a table of its own",
    );
    this.key = key;
    this.sortKey = sortKey;
    this.attribute = attribute;
  }
}

/** The table does not exist, or its key is not the lease table's. */
export class LeaseTableError extends LeaseError {
  static {
    brandClass(LeaseTableError, "LeaseTableError");
  }
  override readonly name: string = "LeaseTableError";
  readonly tableName: string;

  constructor(
    code: "LEASE_TABLE_NOT_FOUND" | "LEASE_TABLE_MISMATCH",
    tableName: string,
    message: string,
    options?: LeaseErrorOptions,
  ) {
    super(code, message, options);
    this.tableName = tableName;
  }
}

/** The client lacks what it needs to reach the table: a region, credentials, a permission. */
export class LeaseConfigurationError extends LeaseError {
  static {
    brandClass(LeaseConfigurationError, "LeaseConfigurationError");
  }
  override readonly name: string = "LeaseConfigurationError";
  constructor(
    code: "LEASE_REGION_MISSING" | "LEASE_CREDENTIALS_MISSING" | "LEASE_ACCESS_DENIED",
    message: string,
    options?: LeaseErrorOptions,
  ) {
    super(code, message, options);
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
  override readonly name: string = "LeaseServiceError";
  /** Whether the same request can succeed later. */
  readonly retryable: boolean;

  constructor(
    code:
      | "LEASE_THROTTLED"
      | "LEASE_CONFLICT"
      | "LEASE_SERVICE_FAILED"
      | "LEASE_NO_ANSWER"
      | "LEASE_REQUEST_REJECTED",
    message: string,
    options?: LeaseErrorOptions,
  ) {
    const isSilent = code === "LEASE_NO_ANSWER" || code === "LEASE_SERVICE_FAILED";
    super(code, message, { mayHaveLanded: isSilent, ...options });
    this.retryable = code !== "LEASE_REQUEST_REJECTED";
  }
}

const longestShown = 80;

function shown(text: string): string {
  return JSON.stringify(text.length > longestShown ? `${text.slice(0, longestShown - 3)}...` : text);
}

/** Shows a value in a message: strings quoted, long ones cut, objects by their class. */
export function describe(value: unknown): string {
  if (typeof value === "string") return shown(value);
  if (typeof value === "object" && value !== null) return withArticle(classOf(value));
  if (typeof value === "function") return "a function";
  return typeof value === "bigint" ? `${value}n` : String(value);
}

function withArticle(name: string): string {
  return `${/^[aeiou]/i.test(name) ? "an" : "a"} ${name}`;
}

function classOf(value: object): string {
  if (Array.isArray(value)) return "array";
  try {
    const { name } = Object.getPrototypeOf(value).constructor;
    return typeof name === "string" && name !== "Object" && name !== "" ? name : "object";
  } catch {
    // Ignored: it has no prototype or constructor, or is a proxy that refuses to show them.
    return "object";
  }
}
