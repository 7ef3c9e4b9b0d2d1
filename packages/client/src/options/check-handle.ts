import { InvalidOptionsError } from "../errors/errors.ts";
import type { LeaseHandle } from "../lease.ts";
import type { HeldLeaseTerms } from "../protocol/held-lease.ts";
import { isCooldownToken, leaseSortKey, limits } from "../schema.ts";
import { seatCounters, seatLimits } from "../seats/schema.ts";
import {
  check,
  checkData,
  checkDuration,
  checkKey,
  checkKnown,
  checkSlot,
  checkText,
  isWhole,
} from "./check-values.ts";

/** Refuses a field's value, or does nothing. */
type FieldCheck = (field: string, value: unknown) => unknown;

const checkLabel: FieldCheck = (field, value) => checkText(field, value, limits.ownerBytes);
const checkToken: FieldCheck = (field, value) => {
  const token = checkText(field, value, limits.ownerBytes);
  if (!isCooldownToken(token)) return;
  const finding =
    "is that of a lock that was released and stays closed (lockAtLeastForMs), which nobody holds";
  throw new InvalidOptionsError(field, token, "the token of a lease that is held", { finding });
};
const checkNumber: FieldCheck = (field, value) =>
  check(isWhole(value), field, value, "the whole number that lease.toJSON() gave");

/** What each field of a handle has to be. */
const fieldChecks: Record<keyof LeaseHandle, FieldCheck> = {
  // Compared to the client's own, which has been checked.
  tableName: () => undefined,
  key: (_, value) => checkKey(value),
  owner: checkLabel,
  token: checkToken,
  version: checkNumber,
  fencingToken: checkNumber,
  acquiredAt: checkNumber,
  expiresAt: checkNumber,
  leaseDurationMs: (field, value) => checkDuration(field, value, 1),
  cooldownUntil: (field, value) => value === undefined || checkNumber(field, value),
  slot: (field, value) => value === undefined || checkSlot(field, checkLabel(field, value)),
  sortKey: (field, value) => value === undefined || checkText(field, value, limits.sortKeyBytes),
  seat: (field, value) => value === undefined || checkSeat(field, value as NonNullable<LeaseHandle["seat"]>),
};

function checkSeat(field: string, seat: NonNullable<LeaseHandle["seat"]>): void {
  const { kind, permits, reentrant, data } = checkKnown(
    seat,
    ["kind", "permits", "reentrant", "data"],
    field,
  );
  check(
    Object.hasOwn(seatCounters, String(kind)),
    `${field}.kind`,
    kind,
    Object.keys(seatCounters).join(", "),
  );
  checkNumber(`${field}.permits`, permits);
  check(typeof reentrant === "boolean", `${field}.reentrant`, reentrant, "true or false");
  checkData(data, `${field}.data`, seatLimits.dataBytes);
}

/** Checks a handle that came from elsewhere, and gives what it says of its lease. */
export function checkHandle(handle: LeaseHandle, tableName: string): HeldLeaseTerms {
  const given = checkKnown(handle, Object.keys(fieldChecks), "handle");
  check(
    given.tableName === tableName,
    "handle.tableName",
    given.tableName,
    `this client's table, ${tableName}`,
  );
  for (const [field, checkField] of Object.entries(fieldChecks)) {
    checkField(`handle.${field}`, given[field as keyof LeaseHandle]);
  }
  const { tableName: _tableName, cooldownUntil, slot, sortKey = leaseSortKey, seat, ...held } = given;
  const lease = { ...held, sortKey, inCooldown: false, revocation: undefined };
  if (seat === undefined) {
    const record = { ...lease, reentrant: false, data: undefined };
    return { record, leaseDurationMs: held.leaseDurationMs, cooldownUntil, slot };
  }
  const { kind, permits, reentrant, data } = seat;
  const record = { ...lease, reentrant, data, seat: { kind, permits } };
  return { record, leaseDurationMs: held.leaseDurationMs, cooldownUntil, slot };
}
