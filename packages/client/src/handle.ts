import type { LeaseHandle } from "./lease.ts";
import type { LeaseRecord } from "./record.ts";
import { leaseSortKey, limits } from "./schema.ts";
import { check, checkDuration, checkKey, checkKnown, checkSlot, checkText, isWhole } from "./validation.ts";

/** Refuses a field's value, or does nothing. */
type FieldCheck = (field: string, value: unknown) => unknown;

const checkLabel: FieldCheck = (field, value) => checkText(field, value, limits.ownerBytes);
const checkNumber: FieldCheck = (field, value) =>
  check(isWhole(value), field, value, "the whole number that lease.toJSON() gave");

/** What each field of a handle has to be. */
const fieldChecks: Record<keyof LeaseHandle, FieldCheck> = {
  // Compared to the client's own, which has been checked.
  tableName: () => undefined,
  key: (_, value) => checkKey(value),
  owner: checkLabel,
  token: checkLabel,
  version: checkNumber,
  fencingToken: checkNumber,
  acquiredAt: checkNumber,
  expiresAt: checkNumber,
  leaseDurationMs: (field, value) => checkDuration(field, value, 1),
  closedUntil: (field, value) => value === undefined || checkNumber(field, value),
  slot: (field, value) => value === undefined || checkSlot(field, value),
  place: (field, value) => value === undefined || checkText(field, value, limits.sortKeyBytes),
};

/** Checks a handle that came from elsewhere, and gives the record that it stands for. */
export function checkHandle(handle: LeaseHandle, tableName: string): LeaseRecord {
  checkKnown(handle, Object.keys(fieldChecks), "handle");
  const given = { ...handle };
  check(
    given.tableName === tableName,
    "handle.tableName",
    given.tableName,
    `this client's table, ${tableName}`,
  );
  for (const [field, checkField] of Object.entries(fieldChecks)) {
    checkField(`handle.${field}`, given[field as keyof LeaseHandle]);
  }
  const { tableName: _tableName, closedUntil: _closedUntil, slot: _slot, ...record } = given;
  return { place: leaseSortKey, ...record, closed: false, data: undefined, revocation: undefined };
}
