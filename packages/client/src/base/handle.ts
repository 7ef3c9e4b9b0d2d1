import {
  check,
  checkOptions,
  checkSlot,
  countTo,
  duration,
  label,
  membersOf,
  oneOf,
  type Rule,
  type Rules,
  rule,
  text,
  trueOrFalse,
} from "./check-values.ts";
import { isWhole } from "./item-values.ts";
import type { LeaseRecord, Seat } from "./lease-record.ts";
import { isCooldownToken, leaseSortKey, limits } from "./schema.ts";

/** A lease in a form that another process can adopt: plain JSON values. */
export interface LeaseHandle
  extends Pick<
    LeaseRecord,
    | "key"
    | "owner"
    | "token"
    | "version"
    | "fencingToken"
    | "acquiredAt"
    | "expiresAt"
    | "ownClock"
    | "leaseDurationMs"
  > {
  /**
   * The handle's format. `adopt` ignores members that it does not know, and refuses another format than 1 by name.
   * @default 1, and left out
   */
  readonly format?: number;
  /** The table that the lease is in. */
  readonly tableName: string;
  /** When the cooldown of the lock ends, in epoch milliseconds; absent when it has none. */
  readonly cooldownUntil?: number;
  /** The sort key under the lock's name. @default "lease" */
  readonly sortKey?: string;
  /** The slot that the lease stands for, if any. */
  readonly slot?: string;
  /** What a seat takes of an item that several leases share. Its renewals write this again. */
  readonly seat?: NonNullable<LeaseRecord["seat"]> &
    Pick<LeaseRecord, "reentrant"> & { readonly data?: unknown };
}

const heldToken: Rule<string> = (option, value) => {
  const token = label(option, value);
  // The holder has released it, and `lockAtLeastForMs` keeps the lock closed. A token is not shown.
  const finding = "is that of a cooldown";
  check(!isCooldownToken(token), option, token, "the token of a lease that is held", { finding });
  return token;
};
const whole: Rule<number> = rule("a whole number", isWhole);

/** What a handle says of a lease that shares its item with others. */
export type SeatHandle = NonNullable<LeaseHandle["seat"]>;

/** A lock has its item to itself. */
const noSeat: Rule<SeatHandle> = rule(
  "nothing: the Semaphore or ReadWriteLock adopts its handles",
  () => false,
);

/** The members that every handle has. */
const requiredRules = {
  key: text(limits.keyBytes),
  owner: label,
  token: heldToken,
  version: countTo(limits.handleVersion),
  fencingToken: whole,
  acquiredAt: whole,
  expiresAt: whole,
  leaseDurationMs: duration(1),
};
const required = Object.keys(requiredRules) as (keyof LeaseHandle)[];

const handleRules: Rules<Omit<LeaseHandle, "tableName" | "seat">> = {
  // A later version may add members, which are ignored; a change of meaning gets another number.
  format: oneOf(1),
  ...requiredRules,
  ownClock: trueOrFalse,
  cooldownUntil: whole,
  slot: (path, value) => checkSlot(path, label(path, value)),
  sortKey: text(limits.sortKeyBytes),
};

/** A lease by its handle. */
export interface CheckedHandle {
  readonly record: LeaseRecord;
  readonly leaseDurationMs: number;
  readonly cooldownUntil: number | undefined;
  readonly slot: string | undefined;
}

/** As `checkOptions`, for data from another process: members that this version does not know are ignored. */
export function checkMembers<Value extends object>(
  value: Value,
  rules: Rules<Value>,
  where: string,
  needed: readonly (keyof Value)[],
): Value {
  return checkOptions(membersOf(value, Object.keys(rules), where), rules, where, needed);
}

/**
 * Checks a handle that came from elsewhere, and returns its lease's terms. It ignores unknown members, so that
 * processes of two versions can hand leases over. It refuses a handle of another format by name. With `checkSeat`, the
 * handle must have a seat; without, it must have none.
 */
export function checkHandle(
  handle: LeaseHandle,
  tableName: string,
  checkSeat?: Rule<SeatHandle>,
): CheckedHandle {
  const rules = { ...handleRules, tableName: oneOf(tableName), seat: checkSeat ?? noSeat };
  const given = checkMembers(handle, rules, "handle", [
    ...required,
    "tableName",
    ...(checkSeat === undefined ? [] : ["seat" as const]),
  ]);
  const { tableName: _, format: __, cooldownUntil, slot, sortKey = leaseSortKey, seat, ...held } = given;
  const latest = held.acquiredAt + limits.durationMs;
  const endsInTime = cooldownUntil === undefined || cooldownUntil <= latest;
  check(endsInTime, "handle.cooldownUntil", cooldownUntil, `at most ${latest}`);
  const { reentrant = false, data, ...taken } = seat ?? {};
  const lease = { ...held, sortKey, inCooldown: false, revocation: undefined, reentrant, data };
  const record = seat === undefined ? lease : { ...lease, seat: taken as Seat };
  return { record, leaseDurationMs: held.leaseDurationMs, cooldownUntil, slot };
}
