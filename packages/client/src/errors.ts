/** Every code that a {@link LeaseError} can carry. Codes are stable; messages are for people and may change. */
export type LeaseErrorCode =
  | "LEASE_UNAVAILABLE"
  | "LEASE_SLOT_DONE"
  | "LEASE_COMPUTATION_TIMEOUT"
  | "LEASE_CACHED_FAILURE"
  | "LEASE_CACHE_UNREADABLE"
  | "LEASE_CACHE_UNWRITABLE"
  | "LEASE_RUNS_EXHAUSTED"
  | "LEASE_LOST"
  | "LEASE_TASK_LOST"
  | "LEASE_UPGRADE"
  | "LEASE_QUEUE_FULL"
  | "LEASE_INVALID_OPTIONS"
  | "LEASE_TABLE_NOT_FOUND"
  | "LEASE_TABLE_MISMATCH"
  | "LEASE_REGION_MISSING"
  | "LEASE_CREDENTIALS_MISSING"
  | "LEASE_ACCESS_DENIED"
  | "LEASE_THROTTLED"
  | "LEASE_CONFLICT"
  | "LEASE_SERVICE_FAILED"
  | "LEASE_NO_ANSWER"
  | "LEASE_REQUEST_REJECTED";

/** What an error can say besides its message. */
interface LeaseErrorOptions extends ErrorOptions {
  readonly mayHaveLanded?: boolean;
}

/** The base of every error that this package raises; switch on its `code`. */
export class LeaseError extends Error {
  // Written out: a bundler that shortens names shortens those of classes too, and Step Functions matches on it.
  override readonly name: string = "LeaseError";
  readonly code: LeaseErrorCode;
  /** Whether a write that ended with this error may have taken effect all the same. */
  readonly mayHaveLanded: boolean;

  constructor(code: LeaseErrorCode, message: string, options?: LeaseErrorOptions) {
    super(message, options);
    this.code = code;
    this.mayHaveLanded = options?.mayHaveLanded ?? false;
  }
}

/** Somebody else holds the lock, and the time to wait for it is over. Nothing is held. */
export class LeaseUnavailableError extends LeaseError {
  override readonly name: string = "LeaseUnavailableError";
  readonly key: string;
  /** Whether nobody holds it: its last holder released it early, and it stays closed (`lockAtLeastForMs`). */
  readonly closed: boolean;
  /** The holder's owner label, or the last holder's of a closed lock; undefined when the lock was let go at the very moment of giving up. */
  readonly holder: string | undefined;
  /** When the holder's lease ends unless it is renewed, in epoch milliseconds of the holder's clock. */
  readonly expiresAt: number | undefined;
  /** In how many milliseconds another attempt can first hope to take the lock over. At least 0. */
  readonly retryAfterMs: number;

  constructor(
    key: string,
    held: { readonly owner: string; readonly expiresAt: number; readonly closed: boolean } | undefined,
    retryAfterMs: number,
  ) {
    const state = held
      ? `is ${held.closed ? "closed after its use by" : "held by"} ${JSON.stringify(held.owner)} ` +
        `until ${new Date(held.expiresAt).toISOString()}`
      : "was let go as this call gave up";
    super(
      "LEASE_UNAVAILABLE",
      `the lock ${JSON.stringify(key)} ${state}: try again in ${retryAfterMs} ms, or wait for it with waitMs`,
    );
    this.key = key;
    this.closed = held?.closed ?? false;
    this.holder = held?.owner;
    this.expiresAt = held?.expiresAt;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The run that was asked for has been completed already, or a later one has. Nothing is held, and there is nothing to do. */
export class SlotDoneError extends LeaseError {
  override readonly name: string = "SlotDoneError";
  readonly key: string;
  /** The slot that was asked for. */
  readonly slot: string;
  /** The latest slot that is done; not earlier than the one that was asked for. */
  readonly doneSlot: string;

  constructor(key: string, slot: string, doneSlot: string) {
    super(
      "LEASE_SLOT_DONE",
      `the slot ${JSON.stringify(slot)} of ${JSON.stringify(key)} is done` +
        `${doneSlot === slot ? "" : `, for the later ${JSON.stringify(doneSlot)} is`}: leave it, or ask for a later one`,
    );
    this.key = key;
    this.slot = slot;
    this.doneSlot = doneSlot;
  }
}

/**
 * Why a lease protects nothing any more.
 *
 * - `expired`: its time ran out before a renewal was confirmed; nobody need have taken it yet.
 * - `taken`: another acquisition holds the lock.
 * - `revoked`: somebody asked the holder to stop. The lock stays closed until it is released or expires.
 * - `released`: it was released, by its holder or by force.
 */
export type LeaseLostReason = "expired" | "taken" | "revoked" | "released";

const lostAdvice: Record<LeaseLostReason, string> = {
  expired: "it was not renewed in time: lengthen leaseDurationMs, or use heartbeat",
  taken: "another holder has it: stop the work, and fence its writes",
  revoked: "its holder was asked to stop: stop the work and release it",
  released: "it was released: acquire it again",
};

/** The lease is gone; whatever it protected may now be done by somebody else. */
export class LeaseLostError extends LeaseError {
  override readonly name: string = "LeaseLostError";
  readonly key: string;
  readonly reason: LeaseLostReason;

  constructor(key: string, reason: LeaseLostReason, detail?: string) {
    super(
      "LEASE_LOST",
      `the lease of ${JSON.stringify(key)} is lost (${reason}): ${detail ? `${detail}; ` : ""}${lostAdvice[reason]}`,
    );
    this.key = key;
    this.reason = reason;
  }
}

/** An option has a value that cannot work. Raised before any request is sent. */
export class InvalidOptionsError extends LeaseError {
  override readonly name: string = "InvalidOptionsError";
  /** The option's name, as the caller wrote it. */
  readonly option: string;
  /** The value that was refused. */
  readonly value: unknown;
  /** What would be accepted. */
  readonly allowed: string;

  constructor(option: string, value: unknown, allowed: string, options?: ErrorOptions) {
    super("LEASE_INVALID_OPTIONS", `${option} is ${describe(value)}; allowed: ${allowed}`, options);
    this.option = option;
    this.value = value;
    this.allowed = allowed;
  }
}

/** The table does not exist, or its key is not the lease table's. */
export class LeaseTableError extends LeaseError {
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

/** The client lacks what it needs to ask the service at all: a region, credentials, a permission. */
export class LeaseConfigurationError extends LeaseError {
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
 * The service throttled, failed, was busy with a transaction on the same item, did not answer in time or refused the
 * request, retries included.
 */
export class LeaseServiceError extends LeaseError {
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

/** Shows a value in a message: strings quoted, long ones cut. */
function describe(value: unknown): string {
  if (typeof value === "string")
    return JSON.stringify(value.length > 80 ? `${value.slice(0, 77)}...` : value);
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "an array" : "an object";
  if (typeof value === "function") return "a function";
  return typeof value === "bigint" ? `${value}n` : String(value);
}
