import { InvalidOptionsError } from "./errors.ts";
import type { LeaseHandle } from "./lease.ts";
import type { LeaseRecord } from "./record.ts";
import { limits } from "./schema.ts";
import { checkDuration, checkKey, checkKnown, checkSlot, checkText } from "./validation.ts";

const handleFields: readonly (keyof LeaseHandle)[] = [
  "tableName",
  "key",
  "owner",
  "token",
  "version",
  "fencingToken",
  "acquiredAt",
  "expiresAt",
  "leaseDurationMs",
  "closedUntil",
  "slot",
];

/** Checks a handle that came from elsewhere, and gives the record that it stands for. */
export function checkHandle(handle: LeaseHandle, tableName: string): LeaseRecord {
  checkKnown(handle, handleFields, "handle");
  if (handle.tableName !== tableName) {
    throw new InvalidOptionsError("handle.tableName", handle.tableName, `this client's table, ${tableName}`);
  }
  if (handle.slot !== undefined) checkSlot("handle.slot", handle.slot);
  if (handle.closedUntil !== undefined) checkInteger("handle.closedUntil", handle.closedUntil);
  return {
    key: checkKey(handle.key),
    owner: checkText("handle.owner", handle.owner, limits.ownerBytes),
    token: checkText("handle.token", handle.token, limits.ownerBytes),
    version: checkInteger("handle.version", handle.version),
    fencingToken: checkInteger("handle.fencingToken", handle.fencingToken),
    acquiredAt: checkInteger("handle.acquiredAt", handle.acquiredAt),
    expiresAt: checkInteger("handle.expiresAt", handle.expiresAt),
    leaseDurationMs: checkDuration("handle.leaseDurationMs", handle.leaseDurationMs, 1),
    closed: false,
    data: undefined,
    revocation: undefined,
  };
}

function checkInteger(option: string, value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new InvalidOptionsError(option, value, "the whole number that lease.toJSON() gave");
}
