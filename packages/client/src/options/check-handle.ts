import { InvalidOptionsError } from "../errors/errors.ts";
import type { LeaseHandle } from "../lease.ts";
import type { HeldLeaseTerms } from "../protocol/held-lease.ts";
import { isCooldownToken, leaseSortKey, limits } from "../schema.ts";
import { type Seat, type SeatKind, seatCounters, seatLimits } from "../seats/schema.ts";
import {
  check,
  checkData,
  checkKnown,
  checkOptions,
  checkSlot,
  countTo,
  duration,
  isWhole,
  label,
  oneOf,
  type Rule,
  type Rules,
  rule,
  text,
  trueOrFalse,
  unchecked,
} from "./check-values.ts";

const heldToken: Rule<string> = (option, value) => {
  const token = label(option, value);
  if (!isCooldownToken(token)) return token;
  const finding = "is that of a lock that is in its cooldown (lockAtLeastForMs), which nobody holds";
  throw new InvalidOptionsError(option, token, "the token of a lease that is held", { finding });
};
const whole: Rule<number> = rule("the whole number that lease.toJSON() gave", isWhole);

type SeatHandle = NonNullable<LeaseHandle["seat"]>;

const seatRules: Rules<SeatHandle> = {
  kind: oneOf(...(Object.keys(seatCounters) as SeatKind[])),
  permits: whole,
  reentrant: trueOrFalse,
  data: (option, value) => {
    checkData(value, option, seatLimits.dataBytes);
    return value;
  },
};

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
/** A later version may add members, which are ignored; a change of meaning gets another number. */
const format = 1;

const handleRules: Rules<LeaseHandle> = {
  format: unchecked,
  tableName: unchecked,
  ...requiredRules,
  ownClock: trueOrFalse,
  cooldownUntil: whole,
  slot: (path, value) => checkSlot(path, label(path, value)),
  sortKey: text(limits.sortKeyBytes),
  seat: (path, value) => {
    const known = checkKnown(value as SeatHandle, Object.keys(seatRules), path, "ignored");
    return checkOptions(known, seatRules, path, ["kind", "permits", "reentrant"]);
  },
};

/**
 * Checks a handle that came from elsewhere, and returns its lease's terms. It ignores unknown members, so that
 * processes of two versions can hand leases over. It refuses a handle of another format by name.
 */
export function checkHandle(handle: LeaseHandle, tableName: string): HeldLeaseTerms {
  const required = Object.keys(requiredRules) as (keyof LeaseHandle)[];
  const known = checkKnown(handle, Object.keys(handleRules), "handle", "ignored");
  if (known.format !== undefined && known.format !== format) {
    const finding = "is of another version of @leasehold/client";
    const advice = "upgrade the processes that adopt leases before those that hand them over";
    throw new InvalidOptionsError("handle.format", known.format, `${format}, or none`, { finding, advice });
  }
  const given = checkOptions(known, handleRules, "handle", required);
  const isHere = given.tableName === tableName;
  check(isHere, "handle.tableName", given.tableName, `this client's table, ${tableName}`);
  const { tableName: _, format: __, cooldownUntil, slot, sortKey = leaseSortKey, seat, ...held } = given;
  if (seat !== undefined) countTo(seatLimits.handleVersion)("handle.version", held.version);
  const latest = held.acquiredAt + limits.durationMs;
  const endsInTime = cooldownUntil === undefined || cooldownUntil <= latest;
  check(endsInTime, "handle.cooldownUntil", cooldownUntil, `at most ${latest}, a year after acquiredAt`);
  const { reentrant = false, data, ...taken } = seat ?? {};
  const lease = { ...held, sortKey, inCooldown: false, revocation: undefined, reentrant, data };
  const record = seat === undefined ? lease : { ...lease, seat: taken as Seat };
  return { record, leaseDurationMs: held.leaseDurationMs, cooldownUntil, slot };
}
