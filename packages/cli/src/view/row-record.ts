// A row for other programs: the fields of its lease, and the values that follow from the time.

import type { DescribedLease } from "@leasehold/client/admin";
import type { KeyRow } from "./key-rows.ts";

/** Whether the record has the tokens of leases: with a token, a caller can end its lease. */
export interface RecordOptions {
  /** @default true */
  readonly withTokens?: boolean;
}

/** A lease for other programs: its record, with its state and its times until now. */
export function leaseRecord(lease: DescribedLease, readAt: number, options: RecordOptions = {}): object {
  const { token, ...others } = lease;
  const { withTokens = true } = options;
  return {
    ...(withTokens ? lease : others),
    heldForMs: readAt - lease.acquiredAt,
    remainingMs: lease.expiresAt - readAt,
  };
}

/** A row for other programs. Its field names are those of a lease's record, and a few more. */
export function rowRecord(row: KeyRow, options: RecordOptions = {}): object {
  const { key, primitive, readAt, state, lease, leases, waiting, longestWaitMs, parked, permits, note } = row;
  const others = leases.filter((one) => one !== lease);
  return {
    key,
    primitive,
    readAt,
    ...(lease === undefined ? {} : leaseRecord(lease, readAt, options)),
    state,
    waiting,
    longestWaitMs,
    parked,
    permits,
    leases: others.length === 0 ? undefined : others.map((one) => leaseRecord(one, readAt, options)),
    note,
  };
}
